"""Tensors by way of Python: a function called for every element, and positions worked out from sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.keys import AUTOGRAD, META
from ..._core.storage import lender_of
from ..._core.tensor import Tensor, storage_of
from ..._dispatch.errors import need_tensor, type_name
from ..._dispatch.lazy_values import resolved
from ..._dispatch.registry import aten
from .._support.warn import warn
from .from_data import tensor


def _check_history(self: Tensor, name: str) -> None:
    if self._keys & AUTOGRAD:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


def _store(self: Tensor, numbers: list[Any]) -> Tensor:
    """Write numbers, one for each element, in place."""
    for number in numbers:
        if isinstance(number, str):
            raise TypeError("must be real number, not str")
    array = self._array
    values = np.empty(len(numbers), array.dtype)
    try:
        values[:] = [array.dtype.type(number) for number in numbers] if array.dtype.kind in "biu" else numbers
    except OverflowError:
        raise RuntimeError(f"value cannot be converted to type {self.dtype.name} without overflow") from None
    aten.copy_(self, tensor(values.reshape(array.shape)))
    return self


def _numbers(tensor: Tensor) -> list[Any]:
    return resolved(tensor)._array.ravel().tolist()


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace every element with what a function makes of it; slow, since each element is a Python call."""
    _check_history(self, "apply_")
    return self if self._keys & META else _store(self, [callable(number) for number in _numbers(self)])


def _type_of(tensor: Tensor) -> str:
    """The type as torch names it here: by dtype and device."""
    name = tensor.dtype.scalar_name
    return f"Meta{name}Type" if tensor._keys & META else f"torch.{name}Tensor"


def map_(self: Tensor, tensor: Any, callable: Callable[[Any, Any], Any]) -> Tensor:
    """As `apply_` with a function of two numbers, the second taken from another tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"map_(): argument 'other' (position 1) must be Tensor, not {type_name(tensor)}")
    if tensor.dtype is not self.dtype or (tensor._keys ^ self._keys) & META:
        raise TypeError(f"map_: expected {_type_of(self)} for 'other' (got {_type_of(tensor)})")
    _check_history(self, "map_")
    _check_history(tensor, "map_")
    other = aten.expand(tensor, self._array.shape)
    if self._keys & META:
        return self
    return _store(
        self,
        [callable(a, b) for a, b in zip(_numbers(self), _numbers(other), strict=True)],
    )


def map2_(self: Tensor, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """As `map_` with a function of three numbers."""
    for place, other in ((1, x), (2, y)):
        if not isinstance(other, Tensor):
            raise TypeError(f"map2_(): argument '{'xy'[place - 1]}' (position {place}) must be Tensor, not {type_name(other)}")
        if other.dtype is not self.dtype or (other._keys ^ self._keys) & META:
            raise TypeError(f"map2_: expected {_type_of(self)} for argument '{'xy'[place - 1]}' (got {_type_of(other)})")
    for each in (self, x, y):
        _check_history(each, "map2_")
    if self._keys & META:
        return self
    columns = [aten.reshape(aten.expand(t, self._array.shape), (-1,)).tolist() for t in (self, x, y)]
    return _store(self, [callable(*numbers) for numbers in zip(*columns, strict=True)])


def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """What one of two functions returns for the operands: the first if `pred`, a bool or a tensor of one element, is true."""
    if isinstance(pred, bool | int | float):
        warn(
            "Pred is a Python constant. When used with torch.cond, it specializes on one of the branches. If you want "
            "torch.cond to preserve two branches, please make the predicate a boolean tensor or a SymBool."
        )
    elif not isinstance(pred, Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    elif pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, tuple | list):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got "
            f"{operands}."
        )
    return (true_fn if pred else false_fn)(*operands)


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether two tensors are the same view of the same memory."""
    need_tensor("is_set_to", tensor, "tensor")
    return (
        lender_of(storage_of(self)) is lender_of(storage_of(tensor))
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
        and self.storage_offset() == tensor.storage_offset()
    )


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of that shape, of positions in the flattened one."""
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices._array.dtype.kind == "b":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, int | Sequence):
        kind = str(type(shape)).replace("mindtorch_v2.", "torch.")
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {kind}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if not sizes:
        return ()
    steps = [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
    whole = aten.floor_divide(aten.unsqueeze(indices, -1), tensor(steps))
    return tuple(aten.unbind(aten.remainder(whole, tensor(sizes)), -1))


METHODS = {"apply_": apply_, "is_set_to": is_set_to, "map2_": map2_, "map_": map_}
FUNCTIONS = {"cond": cond, "unravel_index": unravel_index}
