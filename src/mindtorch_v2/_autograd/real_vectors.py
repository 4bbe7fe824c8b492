"""Tensors as finite differences see them: vectors of real numbers, and a step along each.

A complex number counts as a pair of real ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.shape_only import MetaArray
from .._core.tensor import Tensor
from .._dispatch.lazy_values import resolved
from .._dispatch.registry import aten


def unit_vector(width: int) -> np.ndarray:
    """A random vector of length 1, the same for each width."""
    vector = np.random.default_rng(0).random(width) + 1e-3
    unit: np.ndarray = vector / np.sqrt(vector @ vector)
    return unit


def width_of(array: np.ndarray) -> int:
    """The number of real numbers in an array."""
    return array.size * (2 if array.dtype.kind == "c" else 1)


def unflat(flat: np.ndarray, model: np.ndarray) -> np.ndarray:
    """The inverse of `flat_of`: an array of a model's shape and dtype."""
    pairs = flat.reshape(-1, 2) if model.dtype.kind == "c" else flat
    values = pairs[:, 0] + 1j * pairs[:, 1] if model.dtype.kind == "c" else pairs
    return values.reshape(model.shape).astype(model.dtype)


def flat_of(array: np.ndarray) -> np.ndarray:
    """An array's elements as float64, real and imaginary parts one after the other."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).reshape(-1).astype(np.float64)
    return array.reshape(-1).astype(np.float64)


def array_of(tensor: Tensor) -> np.ndarray:
    """The elements of a tensor; those of one without memory of its own are read one by one."""
    array = tensor._array
    if not isinstance(array, MetaArray):
        resolved_array: np.ndarray = resolved(tensor)._array
        return resolved_array
    flat = aten.reshape(aten.detach(tensor), (-1,))
    values = [aten.item(each) for each in aten.unbind(flat)] if array.size else []
    return np.array(values, array.dtype).reshape(array.shape)


def steps_of(tensor: Tensor) -> Any:
    """For each (real) element of a tensor a function that sets it to its first value plus a step."""
    array = tensor._array
    if isinstance(array, MetaArray):
        yield from _steps_without_memory(tensor)
        return
    for index in np.ndindex(array.shape):
        value = array[index]
        for unit in (1, 1j) if array.dtype.kind == "c" else (1,):

            def write(step: float, index: Any = index, value: Any = value, unit: Any = unit) -> None:
                array[index] = value + step * unit

            yield write


def _steps_without_memory(tensor: Tensor) -> Any:
    """`steps_of` for a tensor of a subclass that has its elements elsewhere: its ops write them."""
    alias = aten.detach(tensor)
    values = array_of(tensor)
    for index in np.ndindex(values.shape):
        place = alias
        for position in index:
            place = aten.select(place, 0, position)
        for unit in (1, 1j) if values.dtype.kind == "c" else (1,):

            def write(step: float, place: Tensor = place, index: Any = index, unit: Any = unit) -> None:
                aten.fill_(place, values[index].item() + step * unit)

            yield write
