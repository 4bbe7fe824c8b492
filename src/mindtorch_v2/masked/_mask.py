"""Helpers of the masked functions: the mask broadcast to the input, the dims, and neutral values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _surface as torch
from .._core import dtype as dt
from .._core.memory_format import strided
from .._core.tensor import Tensor
from .._ops._support.common import normal_dim

Dims = int | Sequence[int] | None
# Functions that torch computes of sparse tensors, too.
_SPARSE_IN_TORCH = ("sum", "prod", "amax", "amin")


def check_strided(name: str, *tensors: Tensor) -> None:
    """ValueError or NotImplementedError for a sparse tensor, as torch.masked has them."""
    for tensor in tensors:
        if tensor.layout is not strided:
            if name in _SPARSE_IN_TORCH:
                raise NotImplementedError(f"torch.masked.{name} of {tensor.layout} tensors")
            raise ValueError(f"masked {name} expects strided tensor (got {tensor.layout} tensor)")


def all_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Dims counted from the front, in order; all of them for None or none."""
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return tuple(range(ndim))
    dims: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        normalized = normal_dim(d, ndim)
        if normalized in dims:
            raise RuntimeError(f"dim={normalized} appears multiple times in the list of dims")
        dims.append(normalized)
    return tuple(sorted(dims))


def one_dim(dim: Dims, ndim: int) -> int:
    """The first of the dims, for functions that work along one."""
    return all_dims(dim, ndim)[0] if ndim else 0


def full_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The mask in the shape of the input."""
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    dense = mask if mask.layout is strided else mask.to_dense()
    return torch.broadcast_to(dense, input.shape).to(dt.bool_)


def fill(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """The input with a value where the mask is False."""
    if mask is None:
        return input
    return torch.where(full_mask(input, mask), input, torch.scalar_tensor(value, dtype=input.dtype, device=input.device))


def lowest(name: str, dtype: dt.dtype) -> Any:
    """The neutral value of a maximum: the lowest of the dtype."""
    return _end(name, dtype, largest=False)


def highest(name: str, dtype: dt.dtype) -> Any:
    """The neutral value of a minimum: the highest of the dtype."""
    return _end(name, dtype, largest=True)


def _end(name: str, dtype: dt.dtype, largest: bool) -> Any:
    if dtype.is_floating_point:
        return math.inf if largest else -math.inf
    if dtype is dt.bool_:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    limits = dt.iinfo(dtype)
    return limits.max if largest else limits.min
