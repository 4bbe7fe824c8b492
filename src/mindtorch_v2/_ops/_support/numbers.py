"""Python numbers on their way into tensors, under torch's rules of what fits a dtype."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.layout import on_the_way

# The largest number of float32.
MOST = float(np.finfo(np.float32).max)
_array = np.array


def number_of(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """A number as a 0-d array; RuntimeError where the dtype cannot hold it. Negative integers wrap around in unsigned types."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int):
        check_width(value)
    kind = dtype.kind
    if kind == "b":
        return _array(bool(value))
    if isinstance(value, complex) and kind not in "cW":
        if value.imag:
            raise overflow(dtype)
        value = value.real
    if kind in "iu":
        limits = np.iinfo(dtype)
        lowest = limits.min if kind == "i" else -limits.max if isinstance(value, int) else 0
        if not (cmath.isfinite(value) and lowest <= value <= limits.max) or (isinstance(value, float) and value >= 2.0**63):
            raise overflow(dtype)
        return _array(int(value) & (1 << limits.bits) - 1, f"u{dtype.itemsize}").view(dtype)
    array = on_the_way(_array(value), dtype).astype(dtype)
    if cmath.isfinite(value) and not np.isfinite(array):
        raise overflow(dtype)
    return array


def check_width(value: int) -> None:
    """OverflowError for an integer beyond 64 bits."""
    if not -(1 << 63) <= value < 1 << 64:
        raise OverflowError("int too big to convert")


def overflow(dtype: np.dtype[Any]) -> RuntimeError:
    """torch's RuntimeError for a number that a dtype cannot hold."""
    kind = dt.from_numpy(dtype)
    name = kind.cpp_name if dtype.kind not in "iu" or kind is dt.int32 else f"{kind.name}_t"
    return RuntimeError(f"value cannot be converted to type {name} without overflow")
