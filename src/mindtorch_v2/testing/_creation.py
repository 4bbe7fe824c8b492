"""make_tensor: random tensors of any type and range."""

from __future__ import annotations

import math
from typing import Any

from .. import _surface as torch
from .._core import dtype as dt
from .._core.tensor import Tensor


def make_tensor(
    *shape: Any,
    dtype: dt.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor with values drawn uniformly from [low, high).

    Without bounds they are -9 and 9 for floats, -9 and 10 for signed integers, 0 and 10 for unsigned ones, 0 and 2 for
    bools.
    """
    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], list | tuple) else tuple(shape)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    drawn_size = (*size[:-1], 2 * size[-1]) if noncontiguous and size and size[-1] > 1 else size
    if dtype is dt.bool_:
        tensor: Any = torch.randint(*_bounds(low, high, 0, 2, dtype), drawn_size).to(dtype)  # type: ignore[attr-defined]
    elif dtype.is_floating_point:
        tensor = _uniform(drawn_size, *_bounds(low, high, -9, 9, dtype), dtype)
    elif dtype.is_complex:
        bounds = _bounds(low, high, -9, 9, dtype)
        part = dt.float64 if dtype is dt.complex128 else dt.float32
        tensor = torch.complex(
            _uniform(drawn_size, *bounds, part),  # type: ignore[attr-defined]
            _uniform(drawn_size, *bounds, part),
        ).to(dtype)
    else:
        first = -9 if dtype.is_signed else 0
        lowest, highest = _bounds(low, high, first, 10, dtype)
        tensor = torch.randint(math.ceil(lowest), math.ceil(highest), drawn_size).to(dtype)  # type: ignore[attr-defined]
    tensor = tensor.to(device)
    if drawn_size is not size:
        tensor = tensor[..., ::2]
    if memory_format is not None:
        tensor = tensor.clone(memory_format=memory_format)
    if exclude_zero:
        smallest = dt.finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1
        tensor[tensor == 0] = smallest
    if requires_grad and (dtype.is_floating_point or dtype.is_complex):
        tensor.requires_grad_()
    return tensor  # type: ignore[no-any-return]


def _uniform(size: tuple[int, ...], low: float, high: float, dtype: dt.dtype) -> Any:
    wide = dt.float64 if dtype is dt.float64 else dt.float32
    return (torch.rand(size, dtype=wide) * (high - low) + low).to(dtype)  # type: ignore[attr-defined]


def _bounds(low: float | None, high: float | None, lowest: float, highest: float, dtype: dt.dtype) -> tuple[float, float]:
    start, end = lowest if low is None else low, highest if high is None else high
    for name, value in (("low", start), ("high", end)):
        if isinstance(value, float) and math.isnan(value):
            raise ValueError(f"`low` and `high` cannot be NaN, but got {name}={value}")
    if start >= end:
        raise ValueError(f"`low` must be less than `high`, but got {start} >= {end}")
    if not (dtype.is_floating_point or dtype.is_complex):
        return start, end
    limits = dt.finfo(dtype)
    return max(start, limits.min), min(end, limits.max)
