"""Wishart: random covariance matrices."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import _surface as _torch
from .._core.size import Size
from .._core.tensor import Tensor
from . import constraints
from .continuous import Chi2
from .distribution import ExponentialFamily
from .multivariate import _precision_to_scale_tril
from .utils import lazy_property

torch: Any = _torch


def _mvdigamma(x: Any, p: int) -> Any:
    """The derivative of the logarithm of the multivariate gamma function."""
    return torch.digamma(x.unsqueeze(-1) - torch.arange(p, dtype=x.dtype, device=x.device).div(2).expand((*x.shape, -1))).sum(
        -1
    )


class Wishart(ExponentialFamily):
    """Wishart(df, covariance_matrix), or with a precision_matrix or scale_tril: the scatter of `df` normal vectors."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = [matrix for matrix in (covariance_matrix, precision_matrix, scale_tril) if matrix is not None]
        assert len(given) == 1, "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        param = given[0]
        if param.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, int | float):
            batch = Size(param.shape[:-2])
            self.df = torch.tensor(df, dtype=param.dtype, device=param.device)
        else:
            batch = Size(torch.broadcast_shapes(param.shape[:-2], df.shape))
            self.df = df.expand(batch)
        event = param.shape[-2:]
        if bool(self.df.le(event[-1] - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        name = "scale_tril" if scale_tril is not None else "covariance_matrix"
        name = "precision_matrix" if precision_matrix is not None else name
        setattr(self, name, param.expand(batch + Size((-1, -1))))
        if bool(self.df.lt(event[-1]).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.", stacklevel=2
            )
        self.arg_constraints = {**type(self).arg_constraints, "df": constraints.greater_than(event[-1] - 1)}
        super().__init__(batch, event, validate_args=validate_args)
        self._batch_dims = [-(x + 1) for x in range(len(self._batch_shape))]
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = torch.linalg_cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)
        self._attach_chi2()

    def _attach_chi2(self) -> None:
        steps = torch.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - steps.expand(self._batch_shape + Size((-1,))))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = Size(batch_shape)
        matrix = shape + self._event_shape
        expanded = type(self).__new__(type(self)) if _instance is None else _instance
        expanded.__dict__.update(self.__dict__)
        expanded._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(matrix)
        expanded.df = self.df.expand(shape)
        expanded._batch_dims = [-(x + 1) for x in range(len(shape))]
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if isinstance(self.__dict__.get(name), Tensor):
                expanded.__dict__[name] = self.__dict__[name].expand(matrix)
        expanded._batch_shape = shape
        expanded._attach_chi2()
        return expanded

    @lazy_property
    def scale_tril(self) -> Any:
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Any:
        eye = torch.eye(
            self._event_shape[-1], device=self._unbroadcasted_scale_tril.device, dtype=self._unbroadcasted_scale_tril.dtype
        )
        return torch.cholesky_solve(eye, self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape)

    mean = property(lambda self: self.df.view(self._batch_shape + Size((1, 1))) * self.covariance_matrix)

    @property
    def mode(self) -> Any:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = torch.where(factor <= 0, torch.full_like(factor, math.nan), factor)
        return factor.view(self._batch_shape + Size((1, 1))) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(self._batch_shape + Size((1, 1))) * (v.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Any:
        p = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed(dim1=-2, dim2=-1)
        i, j = torch.tril_indices(p, p, offset=-1)
        draws = torch.randn(
            Size(sample_shape) + self._batch_shape + Size((int(p * (p - 1) / 2),)), dtype=noise.dtype, device=noise.device
        )
        below = torch.zeros_like(noise)
        below[..., i, j] = draws
        chol = self._unbroadcasted_scale_tril @ (noise + below)
        return chol @ chol.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Any:
        """A draw by Bartlett's decomposition; singular matrices are drawn again up to `max_try_correction` times."""
        if max_try_correction is None:
            max_try_correction = 3
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        is_singular = self._singular(sample, sample_shape)
        if bool(is_singular.any()):
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(max_try_correction):
                fresh = self._bartlett_sampling(is_singular[is_singular].shape) if not self._batch_shape else None
                if fresh is None:
                    fresh = self._bartlett_sampling(sample_shape)
                    sample = torch.where(is_singular[..., None, None], fresh, sample)
                else:
                    sample[is_singular] = fresh
                is_singular = self._singular(sample, sample_shape)
                if not bool(is_singular.any()):
                    break
        return sample

    def _singular(self, sample: Any, sample_shape: Any) -> Any:
        return ~constraints.positive_definite.check(sample)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        return (
            -nu * (p * math.log(2) / 2 + factor.diagonal(dim1=-2, dim2=-1).log().sum(-1))
            - torch.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * torch.linalg_slogdet(value)[1]
            - torch.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2
        )

    def entropy(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        return (
            (p + 1) * (p * math.log(2) / 2 + factor.diagonal(dim1=-2, dim2=-1).log().sum(-1))
            + torch.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> Any:
        p = self._event_shape[-1]
        return -self.precision_matrix / 2, (self.df - p - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        p = self._event_shape[-1]
        return (y + (p + 1) / 2) * (-torch.linalg_slogdet(-2 * x)[1] + math.log(2) * p) + torch.mvlgamma(y + (p + 1) / 2, p=p)
