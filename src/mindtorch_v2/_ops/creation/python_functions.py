"""Tensors by way of Python: a function called for every element, and positions worked out from sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.keys import AUTOGRAD, META
from ..._core.tensor import Tensor
from ..._dispatch.errors import type_name
from ..._dispatch.registry import aten
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


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace every element with what a function makes of it; slow, since each element is a Python call."""
    _check_history(self, "apply_")
    return self if self._keys & META else _store(self, [callable(number) for number in self._array.ravel().tolist()])


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
        self, [callable(a, b) for a, b in zip(self._array.ravel().tolist(), other._array.ravel().tolist(), strict=True)]
    )


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of that shape, of positions in the flattened one."""
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices._array.dtype.kind == "b":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
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


METHODS = {"apply_": apply_, "map_": map_}
FUNCTIONS = {"unravel_index": unravel_index}
