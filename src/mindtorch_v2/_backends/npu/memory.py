"""Arrays in device memory, and copies between host and device, which go through page-locked buffers."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from typing import Any

import numpy as np

from . import launch
from .allocator import Block, allocator_of
from .devices import activate
from .driver import driver
from .errors import NPUDeviceLostError
from .events import release_spare_events
from .signatures import MEMCPY_DEVICE_TO_HOST, MEMCPY_HOST_TO_DEVICE
from .streams import Stream, current_stream, destroy_streams

# ---------------------------------------------------------------- device arrays


def empty(shape: tuple[int, ...], dtype: np.dtype, stream: Stream | None = None) -> np.ndarray:
    """A row-major array over fresh device memory. Its shape, strides and views work; its elements are out of reach."""
    stream = current_stream() if stream is None else stream
    nbytes = math.prod(shape) * dtype.itemsize
    block = allocator_of(stream.device_index).allocate(nbytes, stream)
    return np.asarray(block).view(dtype).reshape(shape)


def block_of(array: np.ndarray) -> Block:
    """The block behind a device array or any view of it."""
    base = _behind(array)
    if not isinstance(base, Block):
        raise TypeError("the array is not in NPU memory")
    return base


def _behind(array: np.ndarray) -> Any:
    """What owns the memory of an array: a block, or None for NumPy itself."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base


# ---------------------------------------------------------------- page-locked host memory


class PinnedBlock:
    """Page-locked host memory, which the device copies from and to while the program goes on."""

    __slots__ = ("__weakref__", "address", "nbytes", "room")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.room = 1 << max(nbytes - 1, 511).bit_length()
        try:
            self.address = _spare[self.room].pop()
        except (KeyError, IndexError):
            activate(current_stream().device_index)
            self.address = driver().call("aclrtMallocHost", self.room)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False)}

    def __del__(self) -> None:
        if not sys.is_finalizing() and hasattr(self, "address"):
            _spare.setdefault(self.room, []).append(self.address)


_spare: dict[int, list[int]] = {}  # addresses of unused blocks by their size


def pinned_empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A row-major host array in page-locked memory."""
    return np.asarray(PinnedBlock(math.prod(shape) * dtype.itemsize)).view(dtype).reshape(shape)


def pinned_copy(array: np.ndarray) -> np.ndarray:
    """The same elements in page-locked memory, row-major."""
    pinned = pinned_empty(array.shape, array.dtype)
    np.copyto(pinned, array)
    return pinned


def is_pinned(array: np.ndarray) -> bool:
    """Whether a host array is in page-locked memory."""
    return isinstance(_behind(array), PinnedBlock)


def release_pinned() -> None:
    """Give unused page-locked memory back to the system."""
    for addresses in list(_spare.values()):  # other threads may release blocks meanwhile
        while addresses:
            with suppress(NPUDeviceLostError):  # its bookkeeping went with the device
                driver().call("aclrtFreeHost", addresses.pop())


# ---------------------------------------------------------------- copies


def _check(device: np.ndarray, host: np.ndarray) -> None:
    if device.dtype != host.dtype or device.shape != host.shape:
        raise ValueError(f"a copy between {device.dtype} {device.shape} on the device and {host.dtype} {host.shape}")
    if not device.flags.c_contiguous:
        raise ValueError("a copy needs a contiguous array on the device")


def to_device(target: np.ndarray, source: np.ndarray, stream: Stream | None = None) -> None:
    """Copy a host array into a contiguous device array of the same dtype and shape. Returns before the copy is done.

    A source that is not page-locked may be changed at once: its values were taken. One that is must not be changed until
    the stream has passed the copy, and is kept alive until then.
    """
    _check(target, source)
    stream = current_stream(block_of(target).device_index) if stream is None else stream
    if not target.nbytes:
        return
    if not (is_pinned(source) and source.flags.c_contiguous):
        staged = pinned_empty(source.shape, source.dtype)
        np.copyto(staged, source)
        source = staged
    with launch.observed("copy", "HtoD", stream, target.nbytes):
        activate(stream.device_index)
        driver().call(
            "aclrtMemcpyAsync",
            launch.address(target),
            target.nbytes,
            launch.address(source),
            target.nbytes,
            MEMCPY_HOST_TO_DEVICE,
            stream.handle,
        )
    stream.keep(source)


def to_host(target: np.ndarray, source: np.ndarray, stream: Stream | None = None, *, non_blocking: bool = False) -> None:
    """Copy a contiguous device array into a host array of the same dtype and shape.

    Waits for the copy, unless `non_blocking` and the target is page-locked: then the stream must be waited for.
    """
    _check(source, target)
    stream = current_stream(block_of(source).device_index) if stream is None else stream
    if not source.nbytes:
        return
    direct = is_pinned(target) and target.flags.c_contiguous
    landing = target if direct else pinned_empty(target.shape, target.dtype)
    with launch.observed("copy", "DtoH", stream, source.nbytes):
        activate(stream.device_index)
        driver().call(
            "aclrtMemcpyAsync",
            launch.address(landing),
            source.nbytes,
            launch.address(source),
            source.nbytes,
            MEMCPY_DEVICE_TO_HOST,
            stream.handle,
        )
    stream.keep(source, landing)
    if non_blocking and direct:
        return
    stream.synchronize()
    if not direct:
        np.copyto(target, landing)


def fill_bytes(target: np.ndarray, value: int, stream: Stream | None = None) -> None:
    """Set every byte of a contiguous device array."""
    stream = current_stream(block_of(target).device_index) if stream is None else stream
    if target.nbytes:
        with launch.observed("fill", "Memset", stream, target.nbytes):
            activate(stream.device_index)
            driver().call("aclrtMemsetAsync", launch.address(target), target.nbytes, value, target.nbytes, stream.handle)


def release_device(device: int) -> None:
    """End all streams of a device and give its cached memory back, also after the device hung or was lost."""
    destroy_streams(device)
    allocator_of(device).abandon()
    release_pinned()
    release_spare_events()
