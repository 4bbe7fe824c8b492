"""What several op families share: dims, number promotion, and the usual shape rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core import parallel
from ..._core.device import device as Device
from ..._core.keys import BACKENDS
from ..._core.tensor import Tensor
from ..._dispatch.errors import torch_error
from .blas_sums import column_sums

ShapeRule = tuple[tuple[int, ...], np.dtype]


def normal_dim(dim: int, ndim: int) -> int:
    """A dim counted from the front; IndexError in torch's words if there is no such dim."""
    limit = max(ndim, 1)
    if dim.__class__ is bool:
        raise TypeError("a dim must be an int, not a bool")  # which the dispatcher puts into torch's words
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return dim + limit if dim < 0 else dim


def existing_dim(dim: int, ndim: int) -> int:
    """As `normal_dim`, but a tensor without dims has none; `normal_dim` takes 0 and -1 for one."""
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return normal_dim(dim, ndim)


def home_of(tensor: Tensor) -> Device | None:
    """The `device=` for a tensor that is to be combined with this one. None for the CPU, where naming it only costs time."""
    return tensor.device if tensor._keys & BACKENDS else None


def normal_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Dims counted from the front, each once; all of them for None or an empty list."""
    if dims is None or len(dims) == 0:
        return tuple(range(ndim))
    result = tuple(normal_dim(d, ndim) for d in dims)
    if len(set(result)) != len(result):
        twice = next(d for d in result if result.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return () if ndim == 0 else result


_UNSIGNED = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}


def is_within(index: np.ndarray, size: int) -> bool:
    """Whether all elements of an index that is not empty are at least 0 and below `size`.

    Seen as unsigned, a negative number is a huge one, so that one pass for the maximum checks both bounds.
    """
    unsigned = index.view(_UNSIGNED[index.itemsize])
    return bool(unsigned.item(unsigned.argmax()) < size)


def sums_by_place(places: np.ndarray, weights: np.ndarray | None, size: int) -> np.ndarray:
    """For each of `size` places the sum of the weights, or without weights the number, of the elements that name it.

    np.bincount writes outside of its result where a place is the largest integer, so that places are checked here.
    """
    if places.size and not is_within(places, size):
        wrong = places[(places < 0) | (places >= size)][0]
        raise IndexError(f"index {wrong} is out of bounds for dimension 0 with size {size}")
    return np.bincount(places, weights, size)


# Rows of at least so many elements are added faster as wholes than element by element.
WIDE = 16
# Repetitions of an index up to which the rows that name it first, second ... are added in turns.
_TURNS = 8
# Rows that BLAS adds up together: of many more its sums would drift.
_RUN = 512
# Elements of rows that are added together.
_BLOCK = 1 << 16


def add_rows(rows: np.ndarray, indices: np.ndarray, values: np.ndarray) -> None:
    """rows[indices] += values for (n, m) rows and (k, m) values, where the values of repeated indices add up."""
    if not indices.size:
        return
    order = np.argsort(indices, kind="stable")
    ordered = indices[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    counts = np.diff(starts, append=ordered.size)
    often = counts > _TURNS
    if often.any():
        # Run by run: far fewer calls than turns.
        for start, count in zip(starts[often].tolist(), counts[often].tolist(), strict=True):
            row = rows[ordered[start]]
            for begin in range(start, start + count, _RUN):
                row += column_sums(values.take(order[begin : min(begin + _RUN, start + count)], 0))
        starts, counts = starts[~often], counts[~often]
    step = max(1, _BLOCK // max(rows.shape[1], 1))
    turn = 0
    while starts.size:
        some = order[starts + turn]
        parallel.blocks(some.size, step, lambda part, some=some: _add_apart(rows, indices, values, some[part]))  # type: ignore[misc]
        turn += 1
        starts, counts = starts[counts > turn], counts[counts > turn]


def _add_apart(rows: np.ndarray, indices: np.ndarray, values: np.ndarray, some: np.ndarray) -> None:
    """Add some of the values, whose indices differ."""
    places = indices[some]
    total = rows.take(places, 0)
    total += values.take(some, 0)
    rows[places] = total


def with_numbers(array: np.ndarray, *numbers: Any) -> np.ndarray:
    """The array, promoted by some Python numbers (or None) under torch's rules."""
    kind = array.dtype.kind
    if kind in "iub":
        for number in numbers:
            if isinstance(number, float):
                return array.astype(dt.get_default_dtype().np)
            if kind == "b" and number is not None and not isinstance(number, bool):
                array = array.astype(np.int64)
                kind = "i"
    return array


# ---------------------------------------------------------------- words of messages


def scalar_name(array: np.ndarray | np.dtype) -> str:
    """The dtype (of an array) as messages call it: Float, Half, Long ..."""
    return dt.from_numpy(getattr(array, "dtype", array)).scalar_name


def cpp_name(array: np.ndarray | np.dtype) -> str:
    """The dtype (of an array) as other messages call it: float, c10::Half, long int ..."""
    return dt.from_numpy(getattr(array, "dtype", array)).cpp_name


def no_kernel(name: str, array: np.ndarray | np.dtype) -> NotImplementedError:
    """torch's NotImplementedError of the kernel `name` for a dtype (or an array's) that it does not support."""
    return NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(array)}'")


def unexpected_dtype(expected: np.ndarray | np.dtype, actual: np.ndarray | np.dtype) -> RuntimeError:
    """torch's RuntimeError for a kernel whose operands differ in dtype."""
    return RuntimeError(f"expected scalar type {scalar_name(expected)} but found {scalar_name(actual)}")


# ---------------------------------------------------------------- shape rules: arguments in, (shape, NumPy dtype) out


def like_first(self: Tensor, *_rest: Any) -> ShapeRule:
    """Shape rule of ops whose result has the shape and dtype of the first argument."""
    return self._array.shape, self._array.dtype


def like_with_numbers(self: Tensor, *numbers: Any) -> ShapeRule:
    """Shape rule: the first argument's shape, its dtype promoted by the numbers."""
    return self._array.shape, with_numbers(np.empty(0, self._array.dtype), *numbers).dtype


def reduced_shape(shape: tuple[int, ...], dims: Any, keepdim: bool) -> tuple[int, ...]:
    """The shape of a reduction of `shape` over `dims`."""
    gone = set(normal_dims(dims, len(shape)))
    if keepdim:
        return tuple(1 if i in gone else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in gone)


def infer_size(size: Any, numel: int) -> tuple[int, ...]:
    """A shape with its -1 worked out; RuntimeError if it does not hold `numel` elements."""
    size = tuple(int(n) for n in size)
    if -1 in size:
        known = math.prod(n for n in size if n != -1)
        if size.count(-1) > 1:
            raise RuntimeError("only one dimension can be inferred")
        if known == 0 or numel % known:
            if known == 0 and numel == 0:
                raise RuntimeError(
                    f"cannot reshape tensor of 0 elements into shape {list(size)} because the "
                    "unspecified dimension size -1 can be any value and is ambiguous"
                )
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {numel}")
        return tuple(numel // known if n == -1 else n for n in size)
    if any(n < 0 for n in size):
        raise RuntimeError(f"invalid shape dimension {min(size)}")
    if math.prod(size) != numel:
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {numel}")
    return size


def np_dtype(dtype: Any, default: np.dtype | None = None) -> np.dtype:
    """The NumPy dtype of a torch dtype (or Python type), the default dtype's for None."""
    if dtype is None:
        return dt.get_default_dtype().np if default is None else default
    if isinstance(dtype, dt.dtype):
        return dtype.np
    known = {bool: dt.bool_, int: dt.int64, float: dt.float64, complex: dt.complex128}.get(dtype)
    if known is None:
        raise torch_error(TypeError(f"argument 'dtype' must be torch.dtype, not {type(dtype).__name__}"))
    return known.np


def no_derivative(name):
    """A vjp for an input without a derivative: it raises when that gradient is requested."""

    def formula(g):
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return formula


_TENSOR_BYTES = 200  # a view takes at least as much: the tensor, its array, and the list's entry


def check_room(count: int) -> None:
    """MemoryError for more tensors than there is memory for, before the first is made: to find that out takes hours."""
    np.empty(count * _TENSOR_BYTES, np.uint8)
