"""Distributions made of others: multivariate normals, independent events, mixtures."""

from __future__ import annotations

import math
from typing import Any

from .. import _surface as _torch
from .._core.size import Size
from . import constraints
from .discrete import Categorical
from .distribution import Distribution
from .utils import _standard_normal, _sum_rightmost, lazy_property

torch: Any = _torch


def _precision_to_scale_tril(precision: Any) -> Any:
    """The factor of an inverse from the factor of the reversed matrix: an inverse may be no more definite."""
    factor = torch.flip(torch.linalg_cholesky(torch.flip(precision, (-2, -1))), (-2, -1)).mT
    eye = torch.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return torch.linalg_solve_triangular(factor, eye.expand(factor.shape), upper=False)


class MultivariateNormal(Distribution):
    """MultivariateNormal(loc, covariance_matrix), or with a precision_matrix or scale_tril instead."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _shared_parameters = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        parametrizations = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        chosen = {name: value for name, value in parametrizations.items() if value is not None}
        if len(chosen) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = chosen.items()
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = torch.broadcast_tensors([torch.empty(matrix.shape[:-2]), torch.empty(loc.shape[:-1])])[0].shape
        n = loc.shape[-1]
        self.loc = loc.expand(batch + Size((n,)))
        setattr(self, name, matrix.expand(batch + Size((n, n))))
        super().__init__(batch, Size((n,)), validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = torch.linalg_cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    @lazy_property
    def scale_tril(self) -> Any:
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        factor = self._unbroadcasted_scale_tril
        return torch.matmul(factor, factor.mT).expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Any:
        return torch.linalg_inv(self.covariance_matrix)

    mean = mode = property(lambda self: self.loc)
    variance = property(
        lambda self: self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)
    )

    def rsample(self, sample_shape: Any = ()) -> Any:
        eps = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + torch.matmul(self._unbroadcasted_scale_tril, eps.unsqueeze(-1)).squeeze(-1)

    def _log_determinant(self) -> Any:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        difference = (value - self.loc).unsqueeze(-1)
        solved = torch.linalg_solve_triangular(self._unbroadcasted_scale_tril, difference, upper=False).squeeze(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + solved.pow(2).sum(-1)) - self._log_determinant()

    def entropy(self) -> Any:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_determinant()
        return entropy.expand(self._batch_shape)


class Independent(Distribution):
    """Independent(base, n): the last `n` batch dims of a distribution become part of the event."""

    arg_constraints: dict[str, Any] = {}

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(batch)}"
            )
        shape = batch + base_distribution.event_shape
        split = len(batch) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:split], shape[split:], validate_args=validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)  # type: ignore[assignment]
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    @constraints.dependent_property
    def support(self) -> Any:
        support = self.base_dist.support
        return constraints.independent(support, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else support

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        inner = tuple(self._event_shape[: self.reinterpreted_batch_ndims])
        return Independent(self.base_dist.expand(tuple(batch_shape) + inner), self.reinterpreted_batch_ndims)

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """MixtureSameFamily(Categorical, components): the components lie along the last batch dim."""

    arg_constraints: dict[str, Any] = {}

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        batch, event = component_distribution.batch_shape[:-1], component_distribution.event_shape
        self._num_component = component_distribution.batch_shape[-1]
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args=validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)
    support = constraints.dependent_property(  # type: ignore[assignment]
        lambda self: constraints.MixtureSameFamilyConstraint(self._component_distribution.support)
    )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = (*batch_shape, self._num_component)
        return MixtureSameFamily(
            self._mixture_distribution.expand(tuple(batch_shape)), self._component_distribution.expand(shape)
        )

    def _weights(self) -> Any:
        weights = self._mixture_distribution.probs
        return weights.reshape(weights.shape + Size((1,) * len(self._event_shape)))

    def _average(self, values: Any) -> Any:
        return (self._weights() * values).sum(-1 - len(self._event_shape))

    mean = property(lambda self: self._average(self._component_distribution.mean))

    @property
    def variance(self) -> Any:
        means = self._component_distribution.mean
        within = self._average(self._component_distribution.variance)
        return within + self._average((means - self.mean.unsqueeze(-1 - len(self._event_shape))).pow(2.0))

    def sample(self, sample_shape: Any = ()) -> Any:
        chosen = self._mixture_distribution.sample(sample_shape)
        drawn = self._component_distribution.sample(sample_shape)
        axis = chosen.ndim
        index = chosen.reshape(chosen.shape + Size((1,) * (len(self._event_shape) + 1)))
        index = index.expand((*chosen.shape, 1, *self._event_shape))
        return torch.gather(drawn, axis, index).squeeze(axis)

    def cdf(self, value: Any) -> Any:
        reached = self._component_distribution.cdf(value.unsqueeze(-1 - len(self._event_shape)))
        return (reached * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value = value.unsqueeze(-1 - len(self._event_shape))
        scores = self._component_distribution.log_prob(value)
        return torch.logsumexp(scores + torch.log_softmax(self._mixture_distribution.logits, -1), (-1,))

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
