"""Size: the shape of a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from operator import index as as_int
from typing import Any, SupportsIndex, overload

_item = tuple.__getitem__


class Size(tuple[int, ...]):
    """A tuple of ints; slices, sums and products of it are Sizes too."""

    __module__ = "mindtorch_v2"

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = (), /) -> Size:
        size = tuple.__new__(cls, sizes)
        for each in size:
            if type(each) is not int:
                return tuple.__new__(cls, _as_ints(size))
        return size

    def numel(self) -> int:
        """The number of elements of a tensor of this size."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Size: ...
    def __getitem__(self, index: Any) -> Any:
        item = _item(self, index)
        return of_shape(item) if item.__class__ is tuple else item

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(other, self))

    def __mul__(self, times: SupportsIndex) -> Size:
        return of_shape(tuple.__mul__(self, times))

    def __rmul__(self, times: SupportsIndex) -> Size:
        return of_shape(tuple.__mul__(self, times))


def _as_ints(sizes: tuple[Any, ...]) -> Iterable[int]:
    for position, each in enumerate(sizes):
        try:
            yield as_int(each)
        except TypeError:
            kind = type(each).__name__
            raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{kind}')") from None


of_shape: Callable[[tuple[int, ...]], Size] = partial(tuple.__new__, Size)
"""The Size of a tuple that is known to hold ints, such as an array's shape: one C call, no checks."""
