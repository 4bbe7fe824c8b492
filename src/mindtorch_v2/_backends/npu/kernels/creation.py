"""Tensors from sizes and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._core.dtype import get_default_dtype
from .. import memory
from ..streams import current_stream
from ._call import COMPUTED, Call, kernel


def _zeroed(array: np.ndarray, index: int) -> np.ndarray:
    memory.fill_bytes(array, 0, current_stream(index))
    return array


def _filled(call: Call, array: np.ndarray, value: Any) -> Any:
    if array.dtype not in COMPUTED:
        return NotImplemented
    if array.size:
        call.run("InplaceFillScalar", array, value)
    return array


@kernel("empty.memory_format", "empty_like", "new_empty")
def empty(call: Call, *args: Any) -> Any:
    return call.output()


@kernel("empty_strided")
def empty_strided(call: Call, size: Any, stride: Any, dtype: Any, *options: Any) -> np.ndarray:
    kind = (get_default_dtype() if dtype is None else dtype).np
    extent = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    flat = call.empty((extent,), kind)
    strides = [s * kind.itemsize for s in stride]
    return np.ndarray(tuple(size), kind, flat, strides=strides)


@kernel("zeros", "zeros_like", "new_zeros")
def zeros(call: Call, *args: Any) -> np.ndarray:
    return _zeroed(call.output(), call.index)


@kernel("ones", "ones_like", "new_ones", needs="InplaceFillScalar")
def ones(call: Call, *args: Any) -> Any:
    return _filled(call, call.output(), 1)


@kernel("full", needs="InplaceFillScalar")
def full(call: Call, size: Any, fill_value: Any, *options: Any) -> Any:
    return _filled(call, call.output(), fill_value)


@kernel("full_like", needs="InplaceFillScalar")
def full_like(call: Call, self: Any, fill_value: Any, *options: Any) -> Any:
    return _filled(call, call.output(), fill_value)


@kernel("new_full", needs="InplaceFillScalar")
def new_full(call: Call, self: Any, size: Any, fill_value: Any, *options: Any) -> Any:
    return _filled(call, call.output(), fill_value)


@kernel("zero_")
def zero_(call: Call, self: Any) -> Any:
    if self._array.flags.c_contiguous:
        _zeroed(self._array, call.index)
    else:
        _filled(call, self._array, 0)
    return self


@kernel("fill_.Scalar", needs="InplaceFillScalar")
def fill_(call: Call, self: Any, value: Any) -> Any:
    _filled(call, self._array, value)
    return self
