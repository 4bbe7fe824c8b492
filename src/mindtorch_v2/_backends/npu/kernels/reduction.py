"""Sums, means, largest elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._call import FLOATS, Call, kernel


def _dims(array: np.ndarray, dim: Any) -> list[int]:
    if dim is None or isinstance(dim, list | tuple) and not dim:
        return list(range(array.ndim))
    return [dim] if isinstance(dim, int) else list(dim)


@kernel("sum", needs="ReduceSum")
def sum_all(call: Call, self: Any, dtype: Any) -> np.ndarray:
    out = call.output()
    call.run("ReduceSum", self._array, _dims(self._array, None), False, out.dtype, out)
    return out


@kernel("sum.dim_IntList", needs="ReduceSum")
def sum_dims(call: Call, self: Any, dim: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    out = call.output()
    call.run("ReduceSum", self._array, _dims(self._array, dim), keepdim, out.dtype, out)
    return out


@kernel("mean", needs="Mean", kinds=FLOATS)
def mean_all(call: Call, self: Any, dtype: Any) -> np.ndarray:
    out = call.output()
    call.run("Mean", self._array, _dims(self._array, None), False, out.dtype, out)
    return out


@kernel("mean.dim", needs="Mean", kinds=FLOATS)
def mean_dims(call: Call, self: Any, dim: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    out = call.output()
    call.run("Mean", self._array, _dims(self._array, dim), keepdim, out.dtype, out)
    return out


@kernel("max", needs="Max")
def max_all(call: Call, self: Any) -> np.ndarray:
    out = call.output()
    call.run("Max", self._array, out)
    return out


@kernel("max.dim", needs="MaxDim")
def max_dim(call: Call, self: Any, dim: int, keepdim: bool) -> Any:
    out, indices = call.outputs()
    call.run("MaxDim", self._array, dim, keepdim, out, indices)
    return out, indices


@kernel("amax", needs="Amax")
def amax(call: Call, self: Any, dim: Any, keepdim: bool) -> np.ndarray:
    out = call.output()
    call.run("Amax", self._array, _dims(self._array, dim), keepdim, out)
    return out


def _any(call: Call, flags: np.ndarray, dims: list[int], keepdim: bool) -> np.ndarray:
    """Whether any flag is set: the largest of them as numbers."""
    numbers = call.cast(flags, np.dtype(np.float32))
    gone = {dim % max(flags.ndim, 1) for dim in dims}
    kept = tuple(1 if d in gone else n for d, n in enumerate(flags.shape) if keepdim or d not in gone)
    largest = call.empty(kept, numbers.dtype)
    call.run("Amax", numbers, dims, keepdim, largest)
    return call.cast(largest, np.dtype(np.bool_))


@kernel("any", needs="Amax")
def any_all(call: Call, self: Any) -> Any:
    return _any(call, self._array, _dims(self._array, None), False) if self._array.size else NotImplemented


@kernel("any.dim", needs="Amax")
def any_dim(call: Call, self: Any, dim: int, keepdim: bool) -> Any:
    return _any(call, self._array, _dims(self._array, dim), keepdim) if self._array.size else NotImplemented


def _not(call: Call, flags: np.ndarray) -> np.ndarray:
    out = call.empty(flags.shape, np.dtype(np.bool_))
    call.run("LogicalNot", flags, out)
    return out


@kernel("all", needs=("Amax", "LogicalNot"))
def all_all(call: Call, self: Any) -> Any:
    if not self._array.size:
        return NotImplemented
    return _not(call, _any(call, _not(call, self._array), _dims(self._array, None), False))


@kernel("all.dim", needs=("Amax", "LogicalNot"))
def all_dim(call: Call, self: Any, dim: int, keepdim: bool) -> Any:
    if not self._array.size:
        return NotImplemented
    return _not(call, _any(call, _not(call, self._array), _dims(self._array, dim), keepdim))


@kernel("argmax", needs="ArgMax")
def argmax(call: Call, self: Any, dim: Any, keepdim: bool) -> Any:
    if dim is None:
        return NotImplemented
    out = call.output()
    call.run("ArgMax", self._array, dim, keepdim, out)
    return out


@kernel("cumsum", needs="Cumsum")
def cumsum(call: Call, self: Any, dim: int, dtype: Any) -> np.ndarray:
    out = call.output()
    call.run("Cumsum", self._array, dim, out.dtype, out)
    return out
