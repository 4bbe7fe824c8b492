"""Memory of another size for a storage, and with it for every tensor that looks at it."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

import numpy as np

from .cpython import REFCOUNT_WITH_OWNER, getrefcount, referrers
from .shape_only import MetaArray, addresses
from .storage import FOREIGN, Storage, allocate, allocation, owner_of
from .strides import memory_of, reach_of, row_major, strided
from .tensor import Tensor, storage_of


class _Resizing:
    """One thread at a time changes the memory of storages."""

    lock = threading.RLock()

    @classmethod
    def renew(cls) -> None:
        cls.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Resizing.renew)  # the thread that holds the lock does not live there


def is_resizable(storage: Storage) -> bool:
    """Whether the memory is the runtime's own, and not NumPy's, a file's or a part of another storage."""
    return storage.external != FOREIGN or storage.place == "meta"


def resize_storage(storage: Storage, nbytes: int, only: Tensor | None = None) -> None:
    """Give a storage memory of another size that begins with what it holds. All tensors that share it look at the new memory.

    RuntimeError, before anything changes, for memory that is not the runtime's and where a tensor looks at bytes that would be
    gone. `only` is the tensor that has the memory alone, where the caller knows: the others need not be searched for.
    """
    if not is_resizable(storage):
        raise RuntimeError("Trying to resize storage that is not resizable")
    with _Resizing.lock:
        owner = storage.owner
        memory = memory_of(owner)[0]
        storages, tensors = ([storage], [only]) if only is not None else _that_share(owner)
        if storage.place == "meta":
            new = addresses(max(nbytes, 0))
        elif storage.place == "cpu":
            new = allocate(nbytes)
            kept = min(nbytes, memory.nbytes)
            new[:kept] = memory.reshape(-1).view(np.uint8)[:kept]
        else:
            raise NotImplementedError(f"resize_ of a storage on {storage.place}")
        _move(storages, tensors, memory, new)


def move_storage(storage: Storage, new: np.ndarray) -> None:
    """Put a storage of the CPU on other memory of the same size, which is not the runtime's, with all tensors that share it."""
    with _Resizing.lock:
        memory = memory_of(storage.owner)[0]
        new[:] = memory.reshape(-1).view(np.uint8)
        storages, tensors = _that_share(storage.owner)
        _move(storages, tensors, memory, new, FOREIGN)


def resizing_lock() -> threading.RLock:
    """The lock that a thread holds while it changes the memory of storages."""
    return _Resizing.lock


def move_tensors(storage: Storage, new: np.ndarray, told: bool = True) -> None:
    """Let a storage, and the tensors that share it, look at other memory that holds the same bytes. The caller has the lock.
    Listeners of allocations hear of it unless `told` is False."""
    memory = memory_of(storage.owner)[0]
    storages, tensors = _that_share(storage.owner)
    if not told:
        for tensor in tensors:
            tensor._array = _moved(tensor._array, memory, new)
        for each in storages:
            each.owner = new
        return
    _move(storages, tensors, memory, new)


def _move(
    storages: list[Storage], tensors: list[Tensor], memory: np.ndarray, new: np.ndarray, external: int | None = None
) -> None:
    """Let storages and tensors that look at `memory` look at `new`."""
    arrays = [_moved(tensor._array, memory, new) for tensor in tensors]
    if allocation.on_move is not None:
        for tensor in tensors:
            allocation.on_move(tensor)
    counted = [each for each in storages if not each.external]
    # Listeners are told of the old memory's end when this ends.
    ended = Storage(storages[0].owner) if counted else None
    for each in storages:
        each.owner = new
        if external is not None:
            each.external = external
    for tensor, array in zip(tensors, arrays, strict=True):
        tensor._array = array
    hook = allocation.on_alloc
    if counted and hook is not None and external is None:
        hook(new, 0)
    del ended


def resize_tensor(tensor: Tensor, shape: tuple[int, ...], steps: Sequence[int] | None = None) -> None:
    """Give a tensor another shape on its memory, which grows where it is too small; new elements are undefined. `steps` are
    strides in bytes, without them those of a row-major tensor. No write is counted."""
    alone = is_alone(tensor)
    dtype = tensor._array.dtype
    storage = storage_of(tensor)
    start = memory_of(tensor._array)[1]
    if steps is None:
        steps = row_major(shape, dtype.itemsize)
    reach = reach_of(shape, steps, start, dtype.itemsize)
    if reach > storage.byte_count:
        resize_storage(storage, reach, only=tensor if alone else None)
    array = strided(memory_of(storage.owner)[0], dtype, shape, steps, start)
    tensor._array = array.view(MetaArray) if storage.place == "meta" else array


def is_alone(tensor: Tensor) -> bool:
    """Whether nothing but a tensor has a part in its memory. To be asked before anything else refers to storage or memory."""
    storage = tensor._storage
    if storage is None:
        return True
    owner = storage.owner
    # The tensor holds the storage; the storage and the tensor's array hold the memory.
    return getrefcount(storage) <= REFCOUNT_WITH_OWNER and getrefcount(owner) <= REFCOUNT_WITH_OWNER + 1


def _that_share(owner: np.ndarray) -> tuple[list[Storage], list[Tensor]]:
    """The storages of some memory, and the tensors that look at it. They are searched for, since views are made often and
    this is needed seldom."""
    storages = [each for each in referrers(owner, Storage) if each.owner is owner]
    tensors = [tensor for each in storages for tensor in referrers(each, Tensor) if tensor._storage is each]
    return storages, [tensor for tensor in tensors if owner_of(tensor._array) is owner]


def _moved(array: np.ndarray, memory: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The same view of other memory."""
    start = array.__array_interface__["data"][0] - memory.__array_interface__["data"][0] if array.size else 0
    view = strided(new, array.dtype, array.shape, array.strides, start)
    return view.view(MetaArray) if isinstance(array, MetaArray) else view
