"""Half precision: kernels of several steps compute in float32 and round once, at the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..._core.half_precision import F16, F32, cast, is_half


def is_narrow(kind: np.dtype[Any]) -> bool:
    """Whether sums of a float type are made in float32: half precision, and the types of one byte."""
    return kind.kind == "V" or kind == F16


def _widened(value: Any) -> Any:
    return cast(value, F32) if isinstance(value, np.ndarray) and is_half(value.dtype) else value


def in_float32(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that meets half precision as float32: arrays are widened, results rounded to the first one's dtype.

    The dtype of the first argument decides; kernels whose every step is a single rounding need none of this.
    """

    @wraps(kernel)
    def run(first: Any, *rest: Any) -> Any:
        if first.dtype.itemsize != 2 or not is_half(first.dtype):
            return kernel(first, *rest)
        kind = first.dtype
        result = kernel(_widened(first), *map(_widened, rest))
        if result.__class__ is tuple:
            return tuple(cast(part, kind) if part.dtype == F32 else part for part in result)
        return cast(result, kind) if result.dtype.kind != "c" else result

    return run


def rounded_once(compute: Callable[..., Any], out: Any, first: Any, *rest: Any) -> Any:
    """What `compute` gives for arrays of half precision, widened, in the dtype of the first: products inside of it and the
    numbers that it takes keep their digits until the end."""
    result = cast(compute(_widened(first), *map(_widened, rest)), first.dtype)
    return result if out is None else np.positive(result, out)  # which broadcasts no target, as copyto would
