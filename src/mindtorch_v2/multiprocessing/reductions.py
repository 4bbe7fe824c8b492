"""What queues and pipes send of tensors and storages: where their memory is, not what is in it."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from multiprocessing import reduction
from multiprocessing.util import register_after_fork
from typing import Any

from .._autograd.graph import require_grad
from .._core import dtype as dt
from .._core import shared_memory
from .._core.keys import AUTOGRAD, BATCHED, LAZY, META, NPU
from .._core.sparse import CompressedTensor, SparseTensor, make_compressed, make_sparse
from .._core.storage import Storage
from .._core.strides import strided
from .._core.tensor import Tensor, make_meta
from .._core.untyped_storage import UntypedStorage, as_untyped, untyped_storage
from .._typed_storage import LEGACY, TypedStorage
from ..nn.parameter import Parameter

_NOT_A_LEAF = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
    "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on "
    "the queue)."
)


class SharedCache:
    """The storages of this process by what identifies their memory, so that memory which comes back is the storage it was."""

    def __init__(self) -> None:
        self._storages: weakref.WeakValueDictionary[Any, Storage] = weakref.WeakValueDictionary()
        self.lock = threading.Lock()
        register_after_fork(self, SharedCache._after_fork)

    def _after_fork(self) -> None:
        self.lock = threading.Lock()

    def get(self, key: Any) -> Storage | None:
        """The storage of some memory, if it still lives."""
        with self.lock:
            return self._storages.get(key)

    def __setitem__(self, key: Any, storage: Storage) -> None:
        with self.lock:
            self._storages[key] = storage


shared_cache = SharedCache()


def fd_id(fd: int) -> tuple[int, int]:
    """What identifies the memory behind a file descriptor: the descriptors of one memory are different numbers."""
    state = os.fstat(fd)
    return state.st_ino, state.st_dev


# ---------------------------------------------------------------- storages


def reduce_storage(storage: UntypedStorage) -> Any:
    """A storage of the CPU as the name of its memory, which becomes shared."""
    if storage.device.type != "cpu":
        raise RuntimeError(f"Cannot pickle {storage.device.type} storage; try pickling a {storage.device.type} tensor instead")
    if not storage.size():
        return rebuild_storage_empty, ()
    segment = shared_memory.segment_of(storage._storage.owner)
    by_name = segment.name is not None if segment is not None else shared_memory.get_strategy() == "file_system"
    if by_name:
        manager, name, size = storage._share_filename_cpu_()
        shared_cache[name] = storage._storage
        storage._shared_incref()
        return rebuild_storage_filename, (manager, name, size)
    fd, size = storage._share_fd_cpu_()
    shared_cache[fd_id(fd)] = storage._storage
    return rebuild_storage_fd, (reduction.DupFd(fd), size)


def rebuild_storage_empty() -> UntypedStorage:
    """A storage without bytes."""
    return UntypedStorage()


def rebuild_storage_fd(handle: Any, size: int) -> UntypedStorage:
    """The storage behind a file descriptor that was sent."""
    fd = handle.detach()
    try:
        key = fd_id(fd)
        known = shared_cache.get(key)
        if known is not None:
            return as_untyped(known)
        storage = UntypedStorage._new_shared_fd_cpu(fd, size)
        shared_cache[key] = storage._storage
        return storage
    finally:
        os.close(fd)


def rebuild_storage_filename(manager: bytes, name: bytes, size: int) -> UntypedStorage:
    """The storage of a name that was sent."""
    known = shared_cache.get(name)
    storage = as_untyped(known) if known is not None else UntypedStorage._new_shared_filename_cpu(manager, name, size)
    shared_cache[name] = storage._storage
    return storage._shared_decref()


def reduce_typed_storage(storage: TypedStorage) -> Any:
    """A storage with its dtype."""
    return rebuild_typed_storage, (storage._untyped_storage, storage._dtype)


def rebuild_typed_storage(storage: UntypedStorage, dtype: dt.dtype) -> TypedStorage:
    """A storage with its dtype."""
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


# ---------------------------------------------------------------- tensors


def reduce_tensor(tensor: Any) -> Any:
    """A leaf, or a tensor that requires no grad, as a view of its storage."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(_NOT_A_LEAF)
    if getattr(tensor, "_backward_hooks", None):
        warnings.warn(
            "backward hooks on a tensor are not sent to other processes: its copy there has none", UserWarning, stacklevel=2
        )
    if tensor._keys & (NPU | BATCHED):
        raise NotImplementedError(f"sending a tensor on {tensor.device} to another process; send its .cpu()")
    if tensor._keys & LAZY:
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor._keys & META:
        return rebuild_meta_tensor, (type(tensor), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.requires_grad)
    metadata = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.requires_grad)
    return rebuild_tensor, (
        type(tensor),
        TypedStorage(wrap_storage=untyped_storage(tensor), dtype=tensor.dtype, _internal=True),
        metadata,
    )


def _of_class(cls: Any, tensor: Any, requires_grad: bool) -> Any:
    if cls is Parameter or issubclass(cls, Parameter):
        return Parameter(tensor, requires_grad)
    if requires_grad:
        require_grad(tensor)
    return tensor


def rebuild_tensor(cls: Any, storage: TypedStorage, metadata: tuple[Any, ...]) -> Any:
    """A tensor on a storage that was sent."""
    offset, shape, steps, requires_grad = metadata
    kind, item = storage._dtype.np, storage._dtype.itemsize
    tensor: Any = object.__new__(Tensor)
    tensor._array = strided(
        storage._untyped_storage._bytes, kind, tuple(shape), tuple(step * item for step in steps), offset * item
    )
    tensor._keys, tensor._storage, tensor._base = 0, storage._storage, None
    return _of_class(cls, tensor, requires_grad)


def rebuild_meta_tensor(cls: Any, shape: Any, steps: Any, dtype: dt.dtype, requires_grad: bool) -> Any:
    """A tensor without memory."""
    tensor = make_meta(tuple(shape), dtype.np, tuple(step * dtype.itemsize for step in steps))
    return _of_class(cls, tensor, requires_grad)


def reduce_sparse_tensor(tensor: Any) -> Any:
    """A sparse tensor by its parts, which become shared."""
    if tensor.requires_grad and tensor._keys & AUTOGRAD:
        raise RuntimeError(_NOT_A_LEAF)
    if isinstance(tensor, CompressedTensor):
        parts = (tensor._compressed, tensor._plain, tensor._entries.detach())
        return rebuild_sparse_compressed_tensor, (tensor._layout, *parts, tuple(tensor.shape))
    return rebuild_sparse_coo_tensor, (
        tensor._coordinates,
        tensor._entries.detach(),
        tuple(tensor.shape),
        tensor._coalesced,
    )


def rebuild_sparse_coo_tensor(coordinates: Tensor, entries: Tensor, shape: tuple[int, ...], coalesced: bool) -> Any:
    """A sparse tensor of the parts that were sent."""
    return make_sparse(coordinates, entries, shape, coalesced)


def rebuild_sparse_compressed_tensor(layout: Any, compressed: Tensor, plain: Tensor, entries: Tensor, shape: Any) -> Any:
    """A compressed sparse tensor of the parts that were sent."""
    return make_compressed(layout, compressed, plain, entries, shape)


def init_reductions() -> None:
    """Have multiprocessing send tensors and storages by these functions, in plain `multiprocessing` queues, too."""
    register: Any = reduction.ForkingPickler.register
    register(UntypedStorage, reduce_storage)
    register(TypedStorage, reduce_typed_storage)
    for kind in LEGACY.values():
        register(kind, reduce_typed_storage)
    register(Tensor, reduce_tensor)
    register(Parameter, reduce_tensor)
    register(SparseTensor, reduce_sparse_tensor)
    register(CompressedTensor, reduce_sparse_tensor)
