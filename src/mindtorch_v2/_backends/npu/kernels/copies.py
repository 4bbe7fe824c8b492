"""Copies: on a device, to it and from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._core.device import device as Device
from ...._core.keys import NPU
from ...._core.memory_format import contiguous_format, preserve_format
from ...._core.tensor import Tensor, make_external, make_tensor
from ...._dispatch import registry
from ...._dispatch.errors import broadcast_mismatch
from .. import memory, tensors
from ..streams import current_stream
from ._call import Call, kernel


@kernel("clone", needs="InplaceCopy")
def clone(call: Call, self: Any, memory_format: Any) -> Any:
    if memory_format not in (None, preserve_format, contiguous_format):
        return NotImplemented
    return tensors.converted(self._array, self._array.dtype)


@kernel("_unsafe_view")
def unsafe_view(call: Call, self: Any, size: Any) -> np.ndarray:
    return tensors.contiguous(self._array).reshape(tuple(size))


@kernel("_local_scalar_dense")
def local_scalar_dense(call: Call, self: Any) -> Any:
    return tensors.download(self._array).item()


@kernel("copy_", needs="InplaceCopy", mixed=True)
def copy_(call: Call, self: Any, src: Any, non_blocking: bool) -> Any:
    target, source = self._array, src._array
    mismatch = broadcast_mismatch([target.shape, source.shape])
    if mismatch is not None:
        raise RuntimeError(mismatch)
    whole = np.broadcast_shapes(target.shape, source.shape)
    if whole != target.shape:
        raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(whole)}")
    if not self._keys & NPU:
        np.copyto(target, tensors.download(source), "unsafe")
    elif src._keys & NPU:
        tensors.assign(target, call.apart(source, target))
    elif target.flags.c_contiguous and source.shape == target.shape:
        _upload(target, source, non_blocking)
    else:
        tensors.assign(target, tensors.upload(source, call.index))
    return self


def _upload(target: np.ndarray, source: np.ndarray, non_blocking: bool) -> None:
    """Host to device. Without non_blocking, page-locked memory too may be changed by the caller at once."""
    stream = current_stream(memory.block_of(target).device_index)
    tensors.used_by(stream, target)
    memory.to_device(target, source.astype(target.dtype, copy=False), stream)
    if memory.is_pinned(source) and not non_blocking:
        stream.synchronize()


def _to_copy(tensor: Tensor, dtype: Any, wanted: Device, non_blocking: bool, memory_format: Any) -> Tensor:
    """`to`: another device, another dtype, or both."""
    if memory_format not in (None, preserve_format, contiguous_format):
        raise NotImplementedError(f"to(): NPU tensors cannot have the memory format {memory_format}")
    array = tensor._array
    kind = array.dtype if dtype is None else dtype.np
    if wanted.type == "npu":
        index = tensors.device_index(wanted)
        if tensor._keys & NPU:
            return tensors.wrap(tensors.converted(array, kind, index))
        uploaded = tensors.empty(array.shape, kind, index)
        _upload(uploaded, array, non_blocking)
        return tensors.wrap(uploaded)
    if wanted.type != "cpu":
        raise AssertionError(f"Torch not compiled with {wanted.type.upper()} enabled")
    # Fewer bytes over the bus if the device converts first.
    source = array if array.dtype.itemsize <= kind.itemsize else tensors.converted(array, kind)
    landed = tensors.download(source, non_blocking)
    host = landed if landed.dtype == kind else landed.astype(kind)
    return make_external(host) if memory.is_pinned(host) else make_tensor(host)


registry.packets["_to_copy"].overloads[""].kernel_for("npu")(_to_copy)
