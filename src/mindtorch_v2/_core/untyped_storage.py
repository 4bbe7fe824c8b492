"""UntypedStorage: the bytes behind tensors, as an object of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, overload

import numpy as np

from .device import device as Device
from .storage import Storage
from .tensor import Tensor, storage_of


class UntypedStorage:
    """A view of the memory that one or more tensors share. Two of the same memory are equal."""

    def __init__(self, storage: Storage | int = 0, *, device: Any = None) -> None:
        if isinstance(storage, int):
            storage = Storage(np.empty(storage, np.uint8))
        self._storage = storage

    @property
    def _bytes(self) -> np.ndarray:
        owner = self._storage.owner
        flat = owner if owner.flags.c_contiguous else owner.T if owner.flags.f_contiguous else owner.ravel("K")
        return flat.reshape(-1).view(np.uint8) if owner.size else np.empty(0, np.uint8)

    @property
    def device(self) -> Device:
        return Device(self._storage.device)

    def nbytes(self) -> int:
        return self._storage.nbytes

    def size(self) -> int:
        return self._storage.nbytes

    def __len__(self) -> int:
        return self._storage.nbytes

    def data_ptr(self) -> int:
        return int(self._storage.owner.__array_interface__["data"][0])

    def element_size(self) -> int:
        return 1

    def tolist(self) -> list[int]:
        return self._bytes.tolist()

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> UntypedStorage: ...

    def __getitem__(self, index: int | slice) -> int | UntypedStorage:
        """One byte, or a storage that looks at some of them."""
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise ValueError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
            return UntypedStorage(Storage(self._bytes[index], external=True))
        return int(self._bytes[index])

    def __setitem__(self, index: Any, value: int) -> None:
        self._bytes[index] = value

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file, mapped. Only with `shared` are changes written to it, and is it made long enough."""
        if shared:
            with open(filename, "ab") as file:
                file.truncate(max(nbytes, file.tell()))
        elif os.path.getsize(filename) < nbytes:
            raise RuntimeError(f"file {os.fspath(filename)} is smaller than the {nbytes} bytes that were asked for")
        if not nbytes:
            return UntypedStorage()
        mapped = np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,))
        return UntypedStorage(Storage(np.ndarray((nbytes,), np.uint8, mapped), external=True))

    def untyped(self) -> UntypedStorage:
        return self

    def cpu(self) -> UntypedStorage:
        return self

    def is_shared(self) -> bool:
        return False

    def is_pinned(self, device: Any = None) -> bool:
        return False

    def clone(self) -> UntypedStorage:
        return UntypedStorage(Storage(self._bytes.copy()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self) -> int:
        return id(self._storage)

    def __repr__(self) -> str:
        values = "\n ".join(map(str, self.tolist()))
        return f" {values}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


def untyped_storage(tensor: Tensor) -> UntypedStorage:
    """The memory of a tensor."""
    return UntypedStorage(storage_of(tensor))
