"""What distributions share: parameters brought to one shape, logits and probabilities, properties computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as _torch
from .._autograd.grad_mode import enable_grad
from .._core import dtype as dt
from .._core.tensor import Tensor

torch: Any = _torch

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060  # Euler's gamma


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape."""
    if not all(isinstance(v, Tensor | int | float) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    kind = dt.get_default_dtype() if like is None else like.dtype
    return tuple(torch.broadcast_tensors([v if isinstance(v, Tensor) else torch.tensor(v, dtype=kind) for v in values]))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Samples of N(0, 1), drawn as torch draws them, so that seeds give the same numbers."""
    return torch.empty(shape, dtype=dtype, device=device).normal_()


def clamp_probs(probs: Any) -> Any:
    """Probabilities away from 0 and 1, so that their logarithms are finite."""
    eps = dt.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities from log odds, or from unnormalized log probabilities along the last dim."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, -1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Logits of probabilities, which are kept a little away from 0 and 1."""
    clamped = clamp_probs(probs)
    return torch.log(clamped) - torch.log1p(-clamped) if is_binary else torch.log(clamped)


def _sum_rightmost(value: Any, dim: int) -> Any:
    """The sum over the last `dim` dims."""
    return value if dim == 0 else value.reshape((*value.shape[: value.ndim - dim], -1)).sum(-1)


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """A lower triangular matrix of the numbers of a vector, row by row, up to a diagonal."""
    # D of D * (D + 1) / 2 = length, for the main diagonal; one more for each below it.
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    eps = dt.finfo(vec.dtype).eps
    if round(n) - n > eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    size = round(n)
    matrix = torch.zeros((*vec.shape[:-1], size, size), dtype=vec.dtype, device=vec.device)
    places = torch.tril_indices(size, size, diag)
    matrix[..., places[0], places[1]] = vec
    return matrix


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The numbers of a matrix on and below a diagonal, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    places = torch.tril_indices(n, n, diag)
    return mat[..., places[0], places[1]]


class lazy_property:
    """A property that is computed once and then is an attribute."""

    name = ""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.name = wrapped.__name__
        self.__doc__ = wrapped.__doc__

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.name] = value
        return value
