"""Transforms of vectors and matrices: simplices, triangular factors, positive definite matrices."""

from __future__ import annotations

import math
from typing import Any

from ... import _surface as _torch
from ..._core import dtype as dt
from ..._core.size import Size
from ..._dispatch.registry import aten
from .. import constraints
from ..utils import tril_matrix_to_vec, vec_to_tril_matrix
from ._combining import Transform
from ._elementwise import clipped_sigmoid

torch: Any = _torch


class CorrCholeskyTransform(Transform):
    """A vector of D * (D - 1) / 2 numbers as the Cholesky factor of a D x D correlation matrix.

    The numbers are brought into (-1, 1) by tanh; row by row each takes its part of what is left of the row's unit length.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        x = torch.tanh(x)
        eps = dt.finfo(x.dtype).eps
        x = x.clamp(min=-1 + eps, max=1 - eps)
        r = vec_to_tril_matrix(x, diag=-1)
        z = r**2
        left = (1 - z).sqrt().cumprod(-1)
        r = r + torch.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * aten.pad(left[..., :-1], [1, 0], value=1.0)

    def _inverse(self, y: Any) -> Any:
        left = 1 - torch.cumsum(y * y, dim=-1)
        shifted = aten.pad(left[..., :-1], [1, 0], value=1.0)
        y_vec = tril_matrix_to_vec(y, diag=-1)
        left_vec = tril_matrix_to_vec(shifted, diag=-1)
        t = y_vec / left_vec.sqrt()
        return (t.log1p() - t.neg().log1p()) / 2  # atanh

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        left = 1 - (y * y).cumsum(dim=-1)
        left_vec = tril_matrix_to_vec(left, diag=-2)
        stretch = 0.5 * left_vec.log().sum(-1)
        return stretch - 2 * (x + aten.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = shape[-1]
        dim = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if dim * (dim - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], dim, dim))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        dim = shape[-1]
        return Size((*shape[:-2], dim * (dim - 1) // 2))


class SoftmaxTransform(Transform):
    """Unconstrained vectors to probabilities; one number too many, so it has no inverse."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Vectors of K - 1 numbers to K probabilities: each number says which part of the rest of a stick is broken off."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = object.__hash__

    def _offset(self, like: Any) -> Any:
        return like.shape[-1] + 1 - like.new_ones(like.shape[-1]).cumsum(-1)

    def _call(self, x: Any) -> Any:
        z = clipped_sigmoid(x - self._offset(x).log())
        left = (1 - z).cumprod(-1)
        return aten.pad(z, [0, 1], value=1) * aten.pad(left, [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        cropped = y[..., :-1]
        offset = y.shape[-1] - cropped.new_ones(cropped.shape[-1]).cumsum(-1)
        rest = 1 - cropped.cumsum(-1)
        # The rest is a sum of probabilities: not below the smallest number, so that its logarithm is finite.
        rest = torch.clamp(rest, min=dt.finfo(y.dtype).tiny)
        return cropped.log() - rest.log() + offset.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._offset(x).log()
        return (-x + aten.log_sigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """Square matrices to lower triangular ones with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Square matrices to positive definite ones."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(torch.linalg_cholesky(y))
