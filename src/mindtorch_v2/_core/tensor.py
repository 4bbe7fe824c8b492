"""Tensor: a NumPy array with torch's attributes. The surface adds the ops as methods, autograd the history."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import dtype as _dtype
from .cpython import HAS_GIL, REFCOUNT_WITH_OWNER, getrefcount
from .device import device as Device
from .keys import AUTOGRAD, META, NPU
from .shape_only import MetaArray, without_memory
from .size import Size, of_shape
from .storage import (
    DETACHED,
    FOREIGN,
    SHARED,
    UNTRACKED,
    JointStorage,
    LentStorage,
    Storage,
    allocation,
    lender_of,
    owner_of,
    report_end,
)
from .strides import row_major

if TYPE_CHECKING:
    from ._tensor_base import TensorBase  # a stub: the methods, operators and properties that the surface adds at import
else:
    TensorBase = object

_new = object.__new__
_CPU = Device("cpu")
_META = Device("meta")


class Tensor(TensorBase):
    """A multi-dimensional array with autograd history.

    `_array` is the strided view of the data; `_keys` the dispatch keys (0: dense, on the CPU, no grad);
    `_storage` the shared memory, or None as long as there is no view of it; `_base` the tensor that this is a view of.
    `_node` and `_output_nr` are set where the AUTOGRAD key is: the node that made the tensor, or a leaf's AccumulateGrad.
    """

    __module__ = "mindtorch_v2"

    __slots__ = ("__dict__", "__weakref__", "_array", "_base", "_grad", "_keys", "_node", "_output_nr", "_storage")

    _is_param = False
    # UNTRACKED where an op made the tensor inside inference_mode.
    _inference = 0
    # Of a view that was taken in no_grad mode, inference mode or a custom Function: which, and the version it had then.
    _origin: tuple[str, int] | None = None
    # The dtype that a leaf's gradient is to have, where that is not its own.
    _grad_dtype: _dtype.dtype | None = None

    if TYPE_CHECKING:  # the slots
        _array: np.ndarray
        _base: Any
        _grad: Any
        _keys: int
        _node: Any
        _output_nr: int
        _storage: Any

    # ------------------------------------------------------------------ shape, dtype and memory

    @property
    def shape(self) -> Size:
        return of_shape(self._array.shape)

    @overload
    def size(self, dim: None = None) -> Size: ...
    @overload
    def size(self, dim: int) -> int: ...
    def size(self, dim: int | None = None) -> Size | int:
        if dim is None:
            return of_shape(self._array.shape)
        shape = self._array.shape
        if not -len(shape) <= dim < len(shape):
            limit = max(len(shape), 1)
            raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
        return shape[dim]

    @property
    def ndim(self) -> int:
        return self._array.ndim

    def dim(self) -> int:
        return self._array.ndim

    ndimension = dim

    def numel(self) -> int:
        return self._array.size

    nelement = numel

    @property
    def dtype(self) -> _dtype.dtype:
        return _dtype.from_numpy(self._array.dtype)

    @property
    def device(self) -> Device:
        keys = self._keys
        if not keys & (META | NPU):
            return _CPU
        return _META if keys & META else Device(self._storage.place)

    @property
    def itemsize(self) -> int:
        return self._array.itemsize

    def element_size(self) -> int:
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    @overload
    def stride(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        array = self._array
        item = array.itemsize
        # The strides of NumPy's fresh arrays without elements are all zero; torch has those of a row-major tensor. Views of
        # memory have the strides that they were taken with.
        in_bytes = array.strides if array.size or any(array.strides) else row_major(array.shape, item)
        strides = tuple(s // item for s in in_bytes)
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        array = self._array
        owner = owner_of(array)
        if owner is array:
            return 0
        return (array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]) // array.itemsize

    @property
    def _cdata(self) -> int:
        """A number that no other tensor has while this one lives."""
        return id(self)

    def data_ptr(self) -> int:
        return self._array.__array_interface__["data"][0] if self._array.size and not self._keys & META else 0

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self._array.dtype.kind in "cW"  # W: complex32

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    # ------------------------------------------------------------------ history

    @property
    def is_leaf(self) -> bool:
        return not self._keys & AUTOGRAD or self._node.is_accumulator

    @property
    def output_nr(self) -> int:
        return self._output_nr if self._keys & AUTOGRAD else 0

    @property
    def _version(self) -> int:
        storage = self._storage
        version: int = self._inference if storage is None else storage.version
        if version is UNTRACKED:
            raise RuntimeError("Inference tensors do not track version counter.")
        return version % DETACHED

    def _is_view(self) -> bool:
        return self._base is not None

    def _fix_weakref(self) -> None:
        """What torch needs where a tensor was taken from a weak reference: here such a tensor is whole."""

    # ------------------------------------------------------------------ device

    @property
    def is_cpu(self) -> bool:
        return not self._keys & (META | NPU)

    @property
    def is_meta(self) -> bool:
        return self._keys & META != 0


def make_tensor(array: np.ndarray) -> Tensor:
    """A tensor around freshly allocated memory, which the allocation hook is told of."""
    tensor = _new(Tensor)
    tensor._array = array
    tensor._keys = 0
    tensor._storage = None
    tensor._base = None
    hook = allocation.on_alloc
    if hook is not None:
        hook(array, 0)
    return tensor


def make_view(array: np.ndarray, of: Tensor) -> Tensor:
    """A view of another tensor: shares its memory, and has it as `_base`."""
    tensor = _new(Tensor)
    tensor._array = array
    tensor._keys = 0
    storage = of._storage
    tensor._storage = storage_of(of) if storage is None else storage
    base = of._base
    tensor._base = of if base is None else base
    return tensor


def make_alias(array: np.ndarray, of: Tensor) -> Tensor:
    """A tensor that shares the memory of another but not its history, as detach() gives."""
    tensor = _new(Tensor)
    tensor._array = array
    tensor._keys = of._keys & ~AUTOGRAD
    storage = of._storage
    tensor._storage = storage_of(of) if storage is None else storage
    tensor._base = None
    return tensor


def make_sharing(array: np.ndarray, of: Tensor) -> Tensor:
    """A tensor around a kernel's result: an alias of `of` if the two share memory, else a tensor of its own."""
    return make_alias(array, of) if owner_of(array) is owner_of(of._array) else make_tensor(array)


def make_external(array: np.ndarray) -> Tensor:
    """A tensor around memory that was allocated elsewhere, which the allocation hook is not told of."""
    tensor = _new(Tensor)
    tensor._array = array
    tensor._keys = 0
    tensor._storage = Storage(owner_of(array), external=FOREIGN)
    tensor._base = None
    return tensor


def make_on_storage(array: np.ndarray, storage: Storage) -> Tensor:
    """A tensor around a view of a storage's memory."""
    tensor = _new(Tensor)
    tensor._array = array
    tensor._keys = 0
    tensor._storage = storage
    tensor._base = None
    return tensor


def make_meta(shape: tuple[int, ...], np_dtype: np.dtype, strides: tuple[int, ...] | None = None) -> Tensor:
    """A tensor with a shape and no memory: its array refuses to be read."""
    tensor = _new(Tensor)
    if strides is None:
        strides = row_major(shape, np_dtype.itemsize)
    array = tensor._array = without_memory(MetaArray, shape, np_dtype, strides)
    tensor._keys = META
    tensor._storage = Storage(owner_of(array), external=FOREIGN, device="meta")
    tensor._base = None
    return tensor


_first_storage_lock = threading.Lock()


def _first_storage(tensor: Tensor, made: Storage) -> Storage:
    """The storage that the tensor has: `made`, unless another thread has given it one meanwhile."""
    if not HAS_GIL:
        with _first_storage_lock:
            if tensor._storage is None:
                tensor._storage = made
    # Without a call between the question and the answer, threads that share the GIL do not change.
    elif tensor._storage is None:
        tensor._storage = made
    storage: Storage = tensor._storage
    return storage


def storage_of(tensor: Tensor) -> Storage:
    """The tensor's storage, made at the first call."""
    storage = tensor._storage
    if storage is None:
        made = Storage(owner_of(tensor._array))
        if tensor._inference:
            made.version = UNTRACKED
        storage = _first_storage(tensor, made)
        if storage is not made:
            made.external = SHARED  # its end is not the end of the memory
    return storage


def storage_with(tensor: Tensor, memory: Storage) -> Storage:
    """The storage for a tensor that takes over the memory of another one. As in torch it counts versions as before, together
    with its base and its views."""
    own = storage_of(tensor)
    if lender_of(own) is lender_of(memory) or own.version is UNTRACKED or memory.version is UNTRACKED:
        return own if lender_of(own) is lender_of(memory) else memory
    if getrefcount(own) > REFCOUNT_WITH_OWNER:
        return JointStorage(memory, own)
    return LentStorage(memory, own.version)


def allocated(tensor: Tensor) -> None:
    """Tell the allocation hook of a tensor with fresh memory."""
    hook = allocation.on_alloc
    if hook is not None:
        hook(tensor._array, 0)


report_end(Tensor, "tensor_freed")
