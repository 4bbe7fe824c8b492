"""NPU kernels of reductions: sums, means, maxima, any and all, cumsum."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._call import FLOATS, Call, kernel

_BOOL = np.dtype(np.bool_)


def _dims(array: np.ndarray, dim: Any) -> list[int]:
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(array.ndim))
    return [dim] if isinstance(dim, int) else list(dim)


def _repeats(array: np.ndarray, dims: list[int]) -> bool:
    """Whether a dimension is named twice, which torch refuses."""
    return len({dim % max(array.ndim, 1) for dim in dims}) < len(dims)


def _total(call: Call, operator: str, array: np.ndarray, dim: Any, keepdim: bool, dtype: Any) -> Any:
    dims = _dims(array, dim)
    if _repeats(array, dims):
        return NotImplemented
    out = call.output()
    source = array if dtype is None else call.cast(array, dtype.np)  # torch converts first
    call.run(operator, source, dims, keepdim, out.dtype, out)
    return out


@kernel("sum", needs="ReduceSum")
def sum_all(call: Call, self: Any, dtype: Any) -> Any:
    return _total(call, "ReduceSum", self._array, None, False, dtype)


@kernel("sum.dim_IntList", needs="ReduceSum")
def sum_dims(call: Call, self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return _total(call, "ReduceSum", self._array, dim, keepdim, dtype)


@kernel("mean", needs="Mean")
def mean_all(call: Call, self: Any, dtype: Any) -> Any:
    return mean_dims(call, self, None, False, dtype)


@kernel("mean.dim", needs="Mean")
def mean_dims(call: Call, self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    computed = self._array.dtype if dtype is None else dtype.np
    return _total(call, "Mean", self._array, dim, keepdim, dtype) if computed in FLOATS else NotImplemented


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
def amax(call: Call, self: Any, dim: Any, keepdim: bool) -> Any:
    dims = _dims(self._array, dim)
    if _repeats(self._array, dims):
        return NotImplemented
    out = call.output()
    call.run("Amax", self._array, dims, keepdim, out)
    return out


def _any(call: Call, flags: np.ndarray, dim: Any, keepdim: bool, out: np.ndarray) -> np.ndarray:
    """Whether any flag is set: the largest of them as numbers."""
    numbers = call.cast(call.cast(flags, _BOOL), np.dtype(np.float32))
    largest = call.empty(out.shape, numbers.dtype)
    call.run("Amax", numbers, _dims(flags, dim), keepdim, largest)
    return call.cast(largest, out.dtype)


def _not(call: Call, flags: np.ndarray) -> np.ndarray:
    out = call.empty(flags.shape, _BOOL)
    call.run("LogicalNot", flags, out)
    return out


@kernel("any", needs="Amax")
def any_all(call: Call, self: Any) -> np.ndarray:
    return _any(call, self._array, None, False, call.output())


@kernel("any.dim", needs="Amax")
def any_dim(call: Call, self: Any, dim: int, keepdim: bool) -> np.ndarray:
    return _any(call, self._array, dim, keepdim, call.output())


@kernel("all", needs=("Amax", "LogicalNot"))
def all_all(call: Call, self: Any) -> np.ndarray:
    return all_dim(call, self, None, False)


@kernel("all.dim", needs=("Amax", "LogicalNot"))
def all_dim(call: Call, self: Any, dim: Any, keepdim: bool) -> np.ndarray:
    out = call.output()
    return call.cast(_not(call, _any(call, _not(call, self._array), dim, keepdim, out)), out.dtype)


@kernel("argmax", needs="ArgMax")
def argmax(call: Call, self: Any, dim: Any, keepdim: bool) -> Any:
    if dim is None or self._array.dtype == _BOOL:  # bools have no order: the CPU raises torch's error
        return NotImplemented
    out = call.output()
    call.run("ArgMax", self._array, dim, keepdim, out)
    return out


@kernel("cumsum", needs="Cumsum")
def cumsum(call: Call, self: Any, dim: int, dtype: Any) -> np.ndarray:
    out = call.output()
    call.run("Cumsum", self._array, dim, out.dtype, out)
    return out
