"""The functions that checkpoints call to make tensors of storages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._autograd.graph import require_grad
from .._core import dtype as dt
from .._core.device import device as Device
from .._core.keys import META, NPU
from .._core.storage import Storage
from .._core.tensor import Tensor, make_meta
from .._dispatch import backends
from ..nn.parameter import Parameter

_new = object.__new__
MOST_DIMENSIONS = 64  # NumPy's


class LoadedStorage:
    """Bytes of one storage, read when the first tensor wants them, shared by all that do."""

    __slots__ = ("_array", "_read", "_storage", "dtype", "location", "numel")

    def __init__(self, read: Callable[[], np.ndarray], dtype: dt.dtype | None, location: str, numel: int) -> None:
        self._read = read
        self._array: np.ndarray | None = None
        self._storage: Storage | None = None
        self.dtype = dtype
        self.location = location
        self.numel = numel

    @property
    def array(self) -> np.ndarray:
        if self._array is None:
            self._array = self._read()
            if self.location.startswith("npu"):
                place = backends.resolved(Device(self.location))
                self._array = backends.loaded["npu"].upload(self._array, place.index or 0)
        return self._array

    @property
    def storage(self) -> Storage:
        if self._storage is None:
            self._storage = Storage(self.array, device=self.location)
        return self._storage


def tensor_of(loaded: LoadedStorage, offset: int, size: Any, stride: Any, dtype: dt.dtype) -> Tensor:
    """A tensor that looks at a part of a storage; RuntimeError if that part lies outside it."""
    if not isinstance(loaded, LoadedStorage) or not isinstance(dtype, dt.dtype):
        raise RuntimeError("checkpoint makes a tensor of something that is no storage, or without a dtype")
    if not all(type(one) is int for one in (offset, *size, *stride)):
        raise RuntimeError("checkpoint asks for a tensor whose size, stride or offset is no number")
    if len(size) > MOST_DIMENSIONS:
        raise RuntimeError(f"checkpoint asks for a tensor of {len(size)} dimensions; there are at most {MOST_DIMENSIONS}")
    shape, np_dtype = tuple(map(int, size)), dtype.np
    strides = tuple(int(s) * np_dtype.itemsize for s in stride)
    if len(shape) != len(strides) or min(shape, default=0) < 0 or min(strides, default=0) < 0 or offset < 0:
        raise RuntimeError(f"checkpoint asks for a tensor of size {list(shape)}, stride {list(stride)}, offset {offset}")
    if loaded.location == "meta":
        return make_meta(shape, np_dtype, strides)
    start = offset * np_dtype.itemsize
    reach = start + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + np_dtype.itemsize
    if 0 not in shape and reach > loaded.array.nbytes:
        raise RuntimeError(f"checkpoint asks for {reach} bytes of a storage that has {loaded.array.nbytes}")
    tensor = _new(Tensor)
    tensor._array = np.ndarray(shape, np_dtype, loaded.array, start if 0 not in shape else 0, strides)
    tensor._keys = NPU if loaded.location.startswith("npu") else 0
    tensor._storage = loaded.storage
    tensor._base = None
    return tensor


def rebuild_tensor_v2(storage: LoadedStorage, storage_offset: int, size: Any, stride: Any, requires_grad: bool,
                      backward_hooks: Any, metadata: Any = None) -> Tensor:
    """A tensor of a typed storage."""
    dtype: dt.dtype | None = getattr(storage, "dtype", None)
    if dtype is None:
        raise RuntimeError("checkpoint has an untyped storage where a typed one belongs")
    tensor = tensor_of(storage, storage_offset, size, stride, dtype)
    if requires_grad:
        require_grad(tensor)
    return tensor


def rebuild_tensor(storage: LoadedStorage, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """The older form, without autograd."""
    return rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def rebuild_tensor_v3(storage: LoadedStorage, storage_offset: int, size: Any, stride: Any, requires_grad: bool,
                      backward_hooks: Any, dtype: dt.dtype, metadata: Any = None) -> Tensor:
    """A tensor of an untyped storage."""
    tensor = tensor_of(storage, storage_offset, size, stride, dtype)
    if requires_grad:
        require_grad(tensor)
    return tensor


def rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """A parameter around a tensor."""
    if not isinstance(data, Tensor):
        raise RuntimeError("checkpoint makes a parameter of something that is no tensor")
    return Parameter(data, bool(requires_grad))


def rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Parameter:
    """A parameter with attributes of its own."""
    made = rebuild_parameter(data, requires_grad, backward_hooks)
    made.__dict__.update(state if isinstance(state, dict) else {})
    return made


def rebuild_meta(dtype: dt.dtype, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    """A tensor without data."""
    if not isinstance(dtype, dt.dtype) or not all(type(one) is int and one >= 0 for one in (*size, *stride)):
        raise RuntimeError("checkpoint asks for a tensor without data whose dtype, size or stride is none")
    tensor = make_meta(tuple(size), dtype.np, tuple(s * dtype.itemsize for s in stride))
    assert tensor._keys == META
    if requires_grad:
        require_grad(tensor)
    return tensor


def parameter(data: Tensor, requires_grad: bool = True) -> Parameter:
    """A parameter that was saved by its class."""
    return rebuild_parameter(data, requires_grad, None)


REBUILDERS: dict[str, Any] = {
    "_rebuild_tensor": rebuild_tensor,
    "_rebuild_tensor_v2": rebuild_tensor_v2,
    "_rebuild_tensor_v3": rebuild_tensor_v3,
    "_rebuild_parameter": rebuild_parameter,
    "_rebuild_parameter_with_state": rebuild_parameter_with_state,
    "_rebuild_meta_tensor_no_storage": rebuild_meta,
    "_parameter": parameter,
}
