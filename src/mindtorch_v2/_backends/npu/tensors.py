"""Tensors in device memory. Their array is a NumPy array whose elements are out of the host's reach.

Shapes, strides and views are NumPy's as for any tensor: nothing of that touches the memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.device import device as Device
from ..._core.keys import NPU
from ..._core.storage import FOREIGN, Storage, owner_of
from ..._core.tensor import Tensor, make_tensor, make_view
from . import launch, memory
from .devices import current_device
from .streams import Stream, current_stream

_new = object.__new__


def device_index(device: Any) -> int:
    """The index that a device means: "npu" is the current one."""
    wanted = Device(device)
    return current_device() if wanted.index is None else wanted.index


def wrap(array: np.ndarray) -> Tensor:
    """A tensor around fresh device memory."""
    tensor = _new(Tensor)
    tensor._array = array
    tensor._keys = NPU
    # External: the CPU's memory is not what it takes.
    tensor._storage = Storage(owner_of(array), external=FOREIGN, device=f"npu:{memory.block_of(array).device_index}")
    tensor._base = None
    return tensor


def view(array: np.ndarray, of: Tensor) -> Tensor:
    """A tensor that looks at the memory of another."""
    tensor = make_view(array, of)
    tensor._keys = NPU
    return tensor


def empty(shape: tuple[int, ...], dtype: np.dtype, index: int | None = None) -> np.ndarray:
    """A row-major array over fresh memory of a device (default: the current one)."""
    return memory.empty(tuple(shape), dtype, current_stream(index))


def index_of(tensor: Tensor) -> int:
    """The index of the device a tensor is on."""
    return memory.block_of(tensor._array).device_index


def used_by(stream: Stream, *arrays: np.ndarray) -> None:
    """Note that a stream uses memory that may have been allocated for another."""
    for array in arrays:
        memory.block_of(array).record_stream(stream)


# ---------------------------------------------------------------- copies


def upload(array: np.ndarray, index: int, dtype: np.dtype | None = None) -> np.ndarray:
    """A host array on a device, row-major; returns before the copy is done."""
    uploaded = empty(array.shape, array.dtype if dtype is None else dtype, index)
    memory.to_device(uploaded, array if dtype is None else array.astype(dtype, copy=False), current_stream(index))
    return uploaded


def download(array: np.ndarray, non_blocking: bool = False) -> np.ndarray:
    """A device array on the host; waits for it unless told not to, and then the memory it lands in is page-locked."""
    source = contiguous(array)
    landing = memory.pinned_empty(array.shape, array.dtype) if non_blocking else np.empty(array.shape, array.dtype)
    stream = current_stream(memory.block_of(array).device_index)
    used_by(stream, source)
    memory.to_host(landing, source, stream, non_blocking=non_blocking)
    return landing


def contiguous(array: np.ndarray) -> np.ndarray:
    """The device array itself if it is row-major, else a copy that is."""
    return array if array.flags.c_contiguous else converted(array, array.dtype)


def converted(array: np.ndarray, dtype: np.dtype, index: int | None = None) -> np.ndarray:
    """A row-major copy on a device, of any dtype."""
    copy = empty(array.shape, dtype, memory.block_of(array).device_index if index is None else index)
    assign(copy, array)
    return copy


def assign(target: np.ndarray, source: np.ndarray) -> None:
    """Copy between device arrays of any strides and dtypes; the source broadcasts."""
    home, away = memory.block_of(target), memory.block_of(source)
    if source.shape != target.shape:
        source = np.broadcast_to(source, target.shape)
    if not target.size:
        return
    stream = current_stream(home.device_index)
    converts = target.dtype != source.dtype and "c" in (target.dtype.kind, source.dtype.kind)  # which operators may not
    if converts or home.device_index != away.device_index:  # by way of the host, which always works
        assign(target, upload(download(source), home.device_index, target.dtype))
        return
    used_by(stream, target, source)
    launch.launch("InplaceCopy", target, source, stream=stream)


# ---------------------------------------------------------------- between host and device as tensors


def on_cpu(tensor: Tensor) -> Tensor:
    """A copy on the CPU, without history."""
    return make_tensor(download(tensor._array))
