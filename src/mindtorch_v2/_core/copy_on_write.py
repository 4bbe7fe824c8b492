"""Copies that share memory until one of the storages is written to: `Tensor._lazy_clone`.

While storages share memory their arrays can only be read, and their versions are `LazyVersion`s. Every write into a storage
first adds to its version, to see whether it may: that is where a storage gets memory of its own. A write that goes
past its version fails, since NumPy refuses to write into such arrays.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from .resizing import move_tensors, resizing_lock
from .storage import SHARED, Storage, allocate, allocation
from .strides import memory_of, strided
from .tensor import Tensor, make_on_storage, storage_of


class LazyVersion(int):
    """The version of a storage that shares its memory with lazy copies; adding to it ends that."""

    group: SharedMemory
    storage: weakref.ref[Storage]

    def __add__(self, more: int) -> int:
        storage = self.storage()
        if storage is not None and storage.version is self:
            own_memory(storage)
        return int(self) + more

    def __deepcopy__(self, memo: Any) -> int:
        return int(self)

    def __reduce__(self) -> Any:
        return int, (int(self),)


class SharedMemory:
    """Memory of several storages that were lazily copied from each other; the last to be written to keeps it."""

    def __init__(self, owner: np.ndarray) -> None:
        flat = memory_of(owner)[0].reshape(-1).view(np.uint8)
        self.memory: memoryview = flat.data
        self.storages: weakref.WeakSet[Storage] = weakref.WeakSet()

    def to_read(self) -> np.ndarray:
        """An array of its own on the memory, which cannot be written to."""
        return np.frombuffer(self.memory.toreadonly(), np.uint8)

    def add(self, storage: Storage) -> None:
        """Note that a storage, which looks at an array of `to_read`, shares the memory."""
        version = LazyVersion(storage.version)
        version.group, version.storage = self, weakref.ref(storage)
        storage.version = version
        self.storages.add(storage)


def is_shared_lazily(storage: Storage | None) -> bool:
    """Whether a storage shares its memory with lazy copies, or did so until they were written to or ended."""
    return storage is not None and storage.version.__class__ is LazyVersion


def lazy_clone(tensor: Tensor) -> Tensor:
    """A copy whose memory is the tensor's until one of the two is written to. Neither has history."""
    storage = storage_of(tensor)
    with resizing_lock():
        version = storage.version
        if isinstance(version, LazyVersion):
            group = version.group
        else:
            group = SharedMemory(storage.owner)
            move_tensors(storage, group.to_read())
            group.add(storage)
        copied = Storage(group.to_read(), external=SHARED)
        group.add(copied)
        array = tensor._array
        start = memory_of(array)[1] if array.size else 0
        return make_on_storage(strided(copied.owner, array.dtype, array.shape, array.strides, start), copied)


def own_memory(storage: Storage) -> None:
    """Give a storage that shares its memory lazily memory that is its own: a copy, or the memory itself if no other is left."""
    version = storage.version
    if not isinstance(version, LazyVersion):
        return
    with resizing_lock():
        group = version.group
        group.storages.discard(storage)
        if group.storages:
            new = allocate(storage.byte_count)
            new[:] = np.frombuffer(group.memory, np.uint8)
        else:
            new = np.frombuffer(group.memory, np.uint8)
        was_shared, storage.external = storage.external, 0 if storage.external == SHARED else storage.external
        move_tensors(storage, new, told=was_shared != SHARED)
        storage.version = int(version)
        hook = allocation.on_alloc
        if was_shared == SHARED and hook is not None:
            hook(new, 0)
