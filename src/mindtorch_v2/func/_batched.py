"""Batched tensors: what a function sees inside vmap. Each stands for one sample and carries all of them.

The samples lie along dim 0 of `_value`, a tensor that may itself be batched by an outer vmap. Ops on a batched tensor
run as ops on its value (see `_rules`), and so does autograd: history belongs to the plain tensor underneath.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NoReturn

from .._core.keys import AUTOGRAD, BATCHED, META, PYTHON
from .._core.shape_only import CannotBatch, without_first_dim
from .._core.tensor import Tensor
from .._dispatch.registry import aten


def data_dependent(what: str) -> NoReturn:
    raise CannotBatch(
        f"vmap: It looks like you're calling {what} on a Tensor. We don't support vmap over calling {what} on a "
        "Tensor, please try to rewrite what you're doing with other operations."
    )


class BatchedTensor(Tensor):
    """A tensor inside vmap. `_level` tells which vmap it belongs to; inner ones have higher numbers."""

    _value: Any
    _level: int

    @property
    def _array(self) -> Any:  # type: ignore[override]
        return without_first_dim(self._value._array)

    @property
    def _keys(self) -> int:  # type: ignore[override]
        return PYTHON | BATCHED | self._value._keys & (AUTOGRAD | META)

    @property
    def _node(self) -> Any:  # type: ignore[override]
        return self._value._node

    @property
    def _output_nr(self) -> int:  # type: ignore[override]
        return self._value._output_nr

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self._value.requires_grad_(requires_grad)
        return self

    def __repr__(self, **options: Any) -> str:
        return f"BatchedTensor(lvl={self._level}, bdim=0, value=\n{self._value!r}\n)"

    def __bool__(self) -> bool:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
            "support that yet."
        )

    def item(self) -> NoReturn:
        data_dependent(".item()")

    def tolist(self) -> NoReturn:
        data_dependent(".tolist()")

    def numpy(self, **options: Any) -> NoReturn:
        data_dependent(".numpy()")

    def __array__(self, *args: Any, **options: Any) -> NoReturn:
        data_dependent("numpy functions")

    __int__ = __float__ = __index__ = __complex__ = item

    def data_ptr(self) -> NoReturn:
        data_dependent(".data_ptr()")

    def __deepcopy__(self, memo: Any) -> Tensor:
        return aten.clone(self)


def batched(value: Tensor, level: int) -> BatchedTensor:
    """A tensor whose dim 0 are the samples, as the vmap of that level shows it."""
    tensor = object.__new__(BatchedTensor)
    tensor._value = value
    tensor._level = level
    tensor._storage = tensor._base = tensor._grad = None
    return tensor


def value_at(tensor: Any, level: int) -> Any:
    """The tensor with the samples of a level along dim 0, or None if that level does not batch it."""
    return tensor._value if isinstance(tensor, BatchedTensor) and tensor._level == level else None


def level_of(values: Any) -> int:
    """The innermost level among some arguments, lists included."""
    level = -1
    for value in values:
        if isinstance(value, BatchedTensor):
            level = max(level, value._level)
        elif type(value) in (list, tuple):
            level = max(level, level_of(value))
    return level


def spread(tensor: Tensor, size: int) -> Tensor:
    """An unbatched tensor with a dim of samples, all the same."""
    return aten.expand(aten.unsqueeze(tensor, 0), (size, *tensor._array.shape))


# ---------------------------------------------------------------- the vmaps that are running


class Level:
    """One running vmap: its number (inner ones are higher), its number of samples, and what random ops do."""

    def __init__(self, number: int, size: int, randomness: str) -> None:
        self.number, self.size, self.randomness = number, size, randomness


class _Levels(threading.local):
    def __init__(self) -> None:
        self.stack: list[Level] = []


_running = _Levels()


def levels() -> list[Level]:
    """The running vmaps of this thread, outermost first."""
    return _running.stack


def find_level(number: int) -> Level:
    for level in _running.stack:
        if level.number == number:
            return level
    raise RuntimeError("vmap: a batched tensor was used after the vmap that made it had ended")


def to_plain(tensor: Tensor, over: list[Level]) -> Tensor:
    """A tensor with one leading dim for each level, outermost first, and nothing batched any more."""
    for level in reversed(over):
        value = value_at(tensor, level.number)
        tensor = spread(tensor, level.size) if value is None else value
    return tensor


def from_plain(tensor: Tensor, over: list[Level]) -> Tensor:
    """The inverse of `to_plain`: each leading dim becomes the samples of its level."""
    for level in over:
        tensor = batched(tensor, level.number)
    return tensor


def samples(values: list[Any], level: Level) -> Iterator[list[Any]]:
    """The arguments of each sample, lists included."""
    for i in range(level.size):
        yield [_sample(value, level.number, i) for value in values]


def _sample(value: Any, number: int, i: int) -> Any:
    if type(value) in (list, tuple):
        return [_sample(item, number, i) for item in value]
    batch = value_at(value, number)
    return value if batch is None else aten.select(batch, 0, i)
