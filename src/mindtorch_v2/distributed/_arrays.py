"""Tensors as the contiguous arrays that engines read and write."""

from __future__ import annotations

import numpy as np

from .._core.tensor import Tensor
from ._engines.engine import Buffer


class Arrays:
    """Tensors as contiguous arrays, and what has to be copied back when an operation is done."""

    def __init__(self) -> None:
        self._back: list[tuple[Tensor, Buffer]] = []
        self._means: list[tuple[Buffer, int]] = []

    def read(self, tensor: Tensor) -> Buffer:
        """A contiguous array of a tensor that is only read."""
        return np.ascontiguousarray(tensor._array)

    def written(self, tensor: Tensor) -> Buffer:
        """A contiguous array for a tensor that is written: its own memory where that has no gaps."""
        array: Buffer = tensor._array
        if array.flags.c_contiguous:
            return array
        copied = np.ascontiguousarray(array)
        self._back.append((tensor, copied))
        return copied

    def copied_back(self, tensor: Tensor, buffer: Buffer) -> None:
        """Have a tensor get another buffer's values when the operation is done."""
        self._back.append((tensor, buffer))

    def divide(self, buffer: Buffer, count: int) -> None:
        """Have a sum become a mean when the operation is done."""
        self._means.append((buffer, count))

    def finish(self) -> None:
        """Copy back. As in torch, the tensors' versions are not counted up."""
        for buffer, count in self._means:
            np.divide(buffer, count, out=buffer)
        for tensor, buffer in self._back:
            tensor._array[...] = buffer.reshape(tensor._array.shape)
