"""`x[...]` and `x[...] = value`: every kind of index, taken apart into select, slice, unsqueeze and index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.keys import AUTOGRAD, META, PYTHON
from ..._core.layout import on_the_way
from ..._core.tensor import Tensor, make_external, make_tensor
from ..._core.threads import threads
from ..._dispatch import entry_globals
from ..._dispatch.interception import without_modes
from ..._dispatch.registry import aten
from .._support.numbers import number_of
from ..shape.view import alias as _alias_op
from ..shape.view import unsqueeze as _unsqueeze_op
from ..shape.view_parts import END as _END
from ..shape.view_parts import select as _select_op
from ..shape.view_parts import slice_ as _slice_op

_select = _select_op.call
_slice = _slice_op.call
_unsqueeze = _unsqueeze_op.call
_alias = _alias_op.call

_BOOL = np.dtype(np.bool_)
_UINT8 = np.dtype(np.uint8)
_FLOAT64 = np.dtype(np.float64)
_FULL = slice(None)


# ---------------------------------------------------------------- kinds of index


def _as_tuple(index: Any) -> tuple[Any, ...]:
    """The index per dim: a short sequence that holds more than numbers stands for a tuple, as in early NumPy."""
    if isinstance(index, tuple):
        return index
    if (
        isinstance(index, Sequence)
        and not isinstance(index, str | bytes)
        and len(index) < 32
        and any(
            item is None
            or item is Ellipsis
            or (isinstance(item, Tensor | slice | Sequence | np.ndarray) and not isinstance(item, str))
            for item in index
        )
    ):
        return tuple(index)
    return (index,)


def _sequence_tensor(index: Any) -> Tensor:
    """A list (or range) of positions as a tensor."""
    if isinstance(index, str):
        raise TypeError("new(): invalid data type 'str'")
    positions = np.asarray([item._array if isinstance(item, Tensor) else item for item in index])
    if positions.dtype == object:
        raise TypeError(f"new(): invalid data type '{type(index[0]).__name__}'")
    if not positions.size:
        positions = positions.astype(np.int64)
    if entry_globals.observers_active and threads.state.modes:
        return aten.lift_fresh(without_modes(_filled, positions))  # a mode sees the tensor when it is whole
    return aten.lift_fresh(_filled(positions))


def _filled(positions: np.ndarray) -> Tensor:
    new = aten.empty(positions.shape, dtype=dt.from_numpy(positions.dtype))
    new._array[...] = positions
    return aten.to(new, dtype=new.dtype)


def _is_mask(array: np.ndarray) -> bool:
    return array.dtype == _BOOL or array.dtype == _UINT8


def _normal(index: Any) -> Any:
    """One index as an int, slice, None, Ellipsis, bool or Tensor; IndexError for what is none of them."""
    kind = index.__class__
    if kind is int or kind is slice or index is None or index is Ellipsis or kind is bool or isinstance(index, Tensor):
        return index
    if isinstance(index, np.integer | int):
        return int(index)
    if isinstance(index, np.ndarray):
        return make_external(index)
    if isinstance(index, Sequence):
        return _sequence_tensor(index)
    name = f"numpy.{kind.__name__}" if isinstance(index, np.generic) else kind.__name__
    raise IndexError(
        f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {name})"
    )


def _slice_bound(value: Any, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, Tensor):
        return int(aten.item(value))
    if isinstance(value, int | np.integer):
        return int(value)
    try:
        return value.__index__()
    except AttributeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def _bounds(index: slice) -> tuple[int, int, int]:
    """(start, end, step) of a slice."""
    start, stop, step = index.start, index.stop, index.step
    step = 1 if step is None else _slice_bound(step, 1)
    if step <= 0:
        raise ValueError("step must be greater than zero")
    return (
        0 if start is None else start if start.__class__ is int else _slice_bound(start, 0),
        _END if stop is None else stop if stop.__class__ is int else _slice_bound(stop, _END),
        step,
    )


def _sliced(self: Tensor, dim: int, index: slice) -> Tensor:
    """`index` applied to a dim; the tensor itself where the slice takes all of it."""
    start, stop, step = _bounds(index)
    if start == 0 and step == 1 and stop >= self._array.shape[dim]:
        return self
    return _slice(self, dim, start, stop, step)


def _truth(value: bool) -> Tensor:
    """The index that a bool stands for: the one element of a new dim, or none of it."""
    return make_tensor(np.zeros(1 if value else 0, np.int64))


def _dims_used(indices: Sequence[Any]) -> int:
    """How many dims of a tensor the indices stand for."""
    used = 0
    for index in indices:
        if isinstance(index, Tensor):
            used += index._array.ndim if _is_mask(index._array) else 1
        elif index.__class__ is int or index.__class__ is slice:
            used += 1
    return used


def _apply(self: Tensor, indices: Sequence[Any]) -> tuple[Tensor, list[Tensor | None]]:  # noqa: C901  one pass over all kinds
    """Do all that views can do; what is left are tensors to index with, one per dim or mask."""
    ndim = self._array.ndim
    used = 0  # dims that the indices stand for
    for index in indices:
        kind = index.__class__
        if kind is int or kind is slice:
            used += 1
        elif index is not None and index is not Ellipsis:
            indices = [_normal(index) for index in indices]
            used = _dims_used(indices)
            break
    if used > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    dim = 0
    left: list[Tensor | None] = []
    covered = 0  # dims that the entries of `left` stand for
    result = self
    for position, index in enumerate(indices):
        kind = index.__class__
        if kind is slice:
            if index != _FULL:
                result = _sliced(result, dim, index)
            dim += 1
            continue
        if index is Ellipsis:
            dim += ndim - used
            continue
        if index is None:
            result = _unsqueeze(result, dim)
            dim += 1
            continue
        if kind is not int:
            if kind is bool:
                result = _unsqueeze(result, dim)
                index = _truth(index)
            elif not index._array.ndim and index._array.dtype.kind in "iub" and not index._keys & PYTHON:
                # A 0-d tensor is read: an int selects, a bool is a bool. One of vmap stands for many and cannot be.
                if _is_mask(index._array):
                    result = _unsqueeze(result, dim)
                    index = _truth(bool(aten.item(index)))
                else:
                    index = aten.item(index)
                    kind = int
        if kind is int:
            try:
                result = _select(result, dim, index)
            except IndexError:
                raise IndexError(
                    f"index {index} is out of bounds for dimension {position} with size {result._array.shape[dim]}"
                ) from None
            continue
        while covered < dim:
            left.append(None)
            covered += 1
        left.append(index)
        width = index._array.ndim if _is_mask(index._array) else 1
        covered += width
        dim += width
    return result, left


# ---------------------------------------------------------------- reading


def getitem(self: Tensor, index: Any) -> Tensor:
    kind = index.__class__
    if kind is int:
        shape = self._array.shape
        if not shape:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in "
                "C++ to convert a 0-dim tensor to a number"
            )
        try:
            return _select(self, 0, index)
        except IndexError:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {shape[0]}") from None
    if kind is slice:
        if not self._array.ndim:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        return _slice(self, 0, *_bounds(index))
    if index is None:
        return _unsqueeze(self, 0)
    if kind is Tensor and index._array.ndim and (not _is_mask(index._array) or index._array.ndim <= self._array.ndim):
        if not self._array.ndim:
            raise IndexError("too many indices for tensor of dimension 0")
        return aten.index(self, (index,))
    if index is Ellipsis:
        return _alias(self)
    result, left = _apply(self, index if kind is tuple else _as_tuple(index))
    if left:
        return aten.index(result, left)
    return _alias(self) if result is self else result


# ---------------------------------------------------------------- writing


def _value(self: Tensor, value: Any) -> Any:
    """The assigned value: a tensor as it is, a number in the target's dtype unless it fits any."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.float64 | np.complex128 | np.integer):  # which are Python's or become its
        value = value.item()
    if value.__class__ not in (int, float, bool, complex):
        kind = type(value)
        name = f"numpy.{kind.__name__}" if isinstance(value, np.generic | np.ndarray) else kind.__name__
        raise TypeError(f"can't assign a {name} to a torch.{self.dtype.scalar_name}Tensor")
    if isinstance(value, complex) or not 0 <= value < 100:
        return _assigned_number(value, self._array.dtype).item()
    return value


def _assigned_number(value: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """A number as it is assigned: in half precision too large a one becomes infinity, elsewhere it is refused."""
    if value.__class__ is int and not -(1 << 63) <= value < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    if dtype.itemsize == 2 and dtype.kind in "fV":
        return on_the_way(number_of(value, _FLOAT64), dtype).astype(dtype)
    return number_of(value, dtype)


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    first = 0
    while first < len(shape) and shape[first] == 1:
        first += 1
    return shape[first:]


def _copy_to(target: Tensor, value: Any) -> None:
    """Assign to all of a tensor; leading dims of size one of the value do not count."""
    if not isinstance(value, Tensor):
        # torch always assigns a tensor, as the name of the node and what is refused show.
        if not target._keys & META and (target._keys & AUTOGRAD or not target._array.flags.writeable):
            value = make_tensor(number_of(value, target._array.dtype))
        aten.fill_(target, value)
        return
    shape, have = target._array.shape, value._array.shape
    if shape == have:
        aten.copy_(target, value)
    elif not have:
        aten.fill_(target, value)
    else:
        value = aten.view(value, _without_leading_ones(have))
        if value._array.shape != shape:
            value = aten.expand(value, shape)
        aten.copy_(target, value)


def setitem(self: Tensor, index: Any, value: Any) -> None:
    value = _value(self, value)
    kind = index.__class__
    if index is False:
        return
    if index is Ellipsis:
        _copy_to(self, value)
    elif index is None or index is True:
        _copy_to(_unsqueeze(self, 0), value)
    elif kind is int:
        _copy_to(getitem(self, index), value)
    elif kind is slice:
        if not self._array.ndim:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        _copy_to(_sliced(self, 0, index), value)
    else:
        target, left = _apply(self, _as_tuple(index))
        if not left:
            _copy_to(target, value)
        else:
            _put(target, left, value)


def _put(target: Tensor, indices: list[Tensor | None], value: Any) -> None:
    if not isinstance(value, Tensor):
        meta = target._keys & META
        value = aten.new_full(target, (), value) if meta else make_tensor(number_of(value, target._array.dtype))
    else:
        shape = value._array.shape
        wide = _without_leading_ones(shape)
        if wide != shape:
            value = aten.view(value, wide)
    aten.index_put_(target, indices, value)


def contains(self: Tensor, element: Any) -> bool:
    """`element in x`: whether any element equals it."""
    if isinstance(element, Tensor | int | float | complex | np.number | np.bool_):
        return bool(aten.item(aten.any(aten.eq(self, element))))
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


METHODS = {"__getitem__": getitem, "__setitem__": setitem, "__contains__": contains}
