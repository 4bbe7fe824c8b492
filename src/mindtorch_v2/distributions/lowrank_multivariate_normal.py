"""LowRankMultivariateNormal: normals whose covariance is a thin product and a diagonal."""

from __future__ import annotations

import math
from typing import Any

from .. import _surface as _torch
from .._core.size import Size
from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

torch: Any = _torch


def _batch_mv(matrix: Any, vector: Any) -> Any:
    return torch.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _batch_capacitance_tril(w: Any, d: Any) -> Any:
    """The Cholesky factor of I + W.T @ inv(D) @ W, a small matrix."""
    size = w.size(-1)
    product = torch.matmul(w.mT / d.unsqueeze(-2), w).contiguous()
    product.view(-1, size * size)[:, :: size + 1] += 1
    return torch.linalg_cholesky(product)


def _batch_lowrank_logdet(d: Any, capacitance_tril: Any) -> Any:
    """log det of the covariance, by the matrix determinant lemma."""
    return 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + d.log().sum(-1)


def _batch_lowrank_mahalanobis(w: Any, d: Any, x: Any, capacitance_tril: Any) -> Any:
    """x.T @ inv(covariance) @ x, by the Woodbury identity."""
    projected = _batch_mv(w.mT / d.unsqueeze(-2), x)
    whole = (x.pow(2) / d).sum(-1)
    solved = torch.linalg_solve_triangular(capacitance_tril, projected.unsqueeze(-1), upper=False)
    return whole - solved.squeeze(-1).pow(2).sum(-1)


class LowRankMultivariateNormal(Distribution):
    """LowRankMultivariateNormal(loc, cov_factor, cov_diag): covariance = cov_factor @ cov_factor.T + diag(cov_diag)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            wide, diagonal = torch.broadcast_tensors([loc.unsqueeze(-1), cov_diag.unsqueeze(-1)])
            batch = torch.broadcast_shapes(wide.shape[:-2], cov_factor.shape[:-2])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = wide[..., 0].expand(Size(batch) + event_shape)
        self.cov_diag = diagonal[..., 0].expand(Size(batch) + event_shape)
        self.cov_factor = cov_factor.expand(Size(batch) + cov_factor.shape[-2:])
        super().__init__(Size(batch), event_shape, validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)

    _shared_parameters = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Any:  # type: ignore[override]
        own = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return own.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance: D^(1/2) times that of I + D^(-1/2) W W.T D^(-1/2), which is more exact."""
        n = self._event_shape[0]
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        product = torch.matmul(scaled, scaled.mT).contiguous()
        product.view(-1, n * n)[:, :: n + 1] += 1
        return (root * torch.linalg_cholesky(product)).expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        factor = self._unbroadcasted_cov_factor
        covariance = torch.matmul(factor, factor.mT) + torch.diag_embed(self._unbroadcasted_cov_diag)
        return covariance.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance, by the Woodbury identity."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        solved = torch.linalg_solve_triangular(self._capacitance_tril, scaled, upper=False)
        precision = torch.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - solved.mT @ solved
        return precision.expand(self._batch_shape + self._event_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        thin = shape[:-1] + self.cov_factor.shape[-1:]
        eps_w = _standard_normal(thin, dtype=self.loc.dtype, device=self.loc.device)
        eps_d = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, eps_w) + self._unbroadcasted_cov_diag.sqrt() * eps_d

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        distance = _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, value - self.loc, self._capacitance_tril
        )
        log_det = _batch_lowrank_logdet(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Any:
        log_det = _batch_lowrank_logdet(self._unbroadcasted_cov_diag, self._capacitance_tril)
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return entropy if len(self._batch_shape) == 0 else entropy.expand(self._batch_shape)
