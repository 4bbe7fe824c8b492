"""Tensors as the contiguous arrays that engines read and write, on the CPU and in an NPU's memory."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

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
        copied = self.copied(array)
        self._back.append((tensor, copied))
        return copied

    def copied(self, array: Buffer, dtype: Any = None) -> Buffer:
        """A contiguous copy of an array, of another dtype if one is given."""
        return np.array(array, dtype, order="C")

    def fresh(self, shape: tuple[int, ...], dtype: Any) -> Buffer:
        """An array whose elements are yet to be written."""
        return np.empty(shape, dtype)

    def joined(self, parts: Sequence[Buffer]) -> Buffer:
        """The elements of arrays of one dtype, one after another."""
        return np.concatenate([np.ascontiguousarray(part).reshape(-1) for part in parts])

    def copied_back(self, tensor: Tensor, buffer: Buffer) -> None:
        """Have a tensor get another buffer's values when the operation is done."""
        self._back.append((tensor, buffer))

    def divide(self, buffer: Buffer, count: int) -> None:
        """Have a sum become a mean when the operation is done."""
        self._means.append((buffer, count))

    def assign(self, target: Buffer, source: Buffer) -> None:
        """Copy between arrays of one shape."""
        target[...] = source

    def _divide_now(self, buffer: Buffer, count: int) -> None:
        np.divide(buffer, count, out=buffer)

    def finish(self) -> None:
        """Copy back. As in torch, the tensors' versions are not counted up."""
        for buffer, count in self._means:
            self._divide_now(buffer, count)
        for tensor, buffer in self._back:
            self.assign(tensor._array, buffer.reshape(tensor._array.shape))


class DeviceArrays(Arrays):
    """The same in an NPU's memory: copies are work of the current stream."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self._index = index

    @staticmethod
    def _part(name: str) -> Any:
        return import_module(f"mindtorch_v2._backends.npu.{name}")

    def read(self, tensor: Tensor) -> Buffer:
        array: Buffer = self._part("tensors").contiguous(tensor._array)
        return array

    def copied(self, array: Buffer, dtype: Any = None) -> Buffer:
        copy: Buffer = self._part("tensors").converted(array, np.dtype(dtype or array.dtype))
        return copy

    def fresh(self, shape: tuple[int, ...], dtype: Any) -> Buffer:
        array: Buffer = self._part("tensors").empty(shape, np.dtype(dtype), self._index)
        return array

    def joined(self, parts: Sequence[Buffer]) -> Buffer:
        whole = self.fresh((sum(part.size for part in parts),), parts[0].dtype)
        at = 0
        for part in parts:
            if part.size:
                self.assign(whole[at : at + part.size].reshape(part.shape), part)
            at += part.size
        return whole

    def assign(self, target: Buffer, source: Buffer) -> None:
        self._part("tensors").assign(target, source)

    def _divide_now(self, buffer: Buffer, count: int) -> None:
        self._part("launch").launch("InplaceDivs", buffer, count)


def arrays_of(tensor: Tensor) -> Arrays:
    """Arrays for tensors of the same device."""
    if tensor.device.type == "npu":
        return DeviceArrays(tensor.device.index or 0)
    return Arrays()
