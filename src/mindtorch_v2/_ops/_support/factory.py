"""What factories share: their options, the checks of sizes and options, and memory laid out as asked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.device import device as Device
from ..._core.layout import check_rank, dense_like, order_of_dims
from ..._core.memory_format import contiguous_format, preserve_format, strided
from ..._core.storage import UNTRACKED
from ..._core.tensor import Tensor, storage_of
from .common import ShapeRule, np_dtype

OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
LIKE = OPTIONS + ", MemoryFormat? memory_format=None"


def checked_size(size: Any) -> tuple[int, ...]:
    """A size as a tuple; RuntimeError if a dimension is negative."""
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
    return size if size.__class__ is tuple else tuple(size)


def check_options(layout: Any, pin_memory: Any, device: Any = None) -> None:
    """Only strided memory of the CPU that the system may move is made here."""
    if device is not None and Device(device).type != "cpu":
        raise NotImplementedError(f"making a tensor on {device} from one on the CPU; use to(device) on the result")
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"factories of {layout} tensors; use to_sparse() or the sparse constructors")
    if pin_memory:
        raise RuntimeError("Cannot access accelerator device when none is available.")


def as_made(tensor: Tensor) -> Tensor:
    """What a factory has filled by an op in place: its version is that of a fresh tensor."""
    storage = storage_of(tensor)
    if storage.version is not UNTRACKED:
        storage.version = 0
    return tensor


def sized(size: Any, dtype: Any = None, *_rest: Any) -> ShapeRule:
    """Shape rule of factories that take a size."""
    return checked_size(size), np_dtype(dtype)


def channels_last_empty(shape: tuple[int, ...], np_dtype: np.dtype, memory_format: Any) -> np.ndarray:
    """Fresh memory of a shape whose dim 1 lies innermost."""
    rank = check_rank(shape, memory_format)
    moved = np.empty((shape[0], *shape[2:], shape[1]), np_dtype)
    return moved.transpose(0, rank - 1, *range(1, rank - 1))


def laid_out(shape: tuple[int, ...], np_dtype: np.dtype, memory_format: Any) -> np.ndarray:
    """Fresh memory in a memory format, row-major for None."""
    if memory_format is None or memory_format is contiguous_format:
        return np.empty(shape, np_dtype)
    if memory_format is preserve_format:
        raise RuntimeError("memory format option is only supported by strided tensors")
    return channels_last_empty(shape, np_dtype, memory_format)


def like(array: np.ndarray, np_dtype: np.dtype, memory_format: Any = None) -> np.ndarray:
    """Fresh memory of an array's shape, its dims in the same order in memory unless a format says otherwise."""
    if memory_format is None or memory_format is preserve_format:
        return dense_like(array, np_dtype)
    return laid_out(array.shape, np_dtype, memory_format)


def memory_order(array: np.ndarray) -> list[int]:
    """The dims from the one with the largest steps in memory to the innermost; a dim of step 0 stays where it is."""
    return order_of_dims(array.shape, [[abs(step) for step in array.strides]])[::-1]
