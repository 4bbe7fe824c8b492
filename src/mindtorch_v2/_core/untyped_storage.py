"""UntypedStorage: the bytes behind tensors, as an object of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from .device import device as Device
from .resizing import is_resizable, resize_storage
from .storage import FOREIGN, Storage, allocate
from .tensor import Tensor, storage_of


class StorageBase:
    """Memory as an object, with a dtype or without."""

    __slots__ = ()

    is_cuda = is_hpu = is_sparse = is_sparse_csr = False
    filename = None

    def is_shared(self) -> bool:
        return False

    def is_pinned(self, device: Any = None) -> bool:
        return False

    def share_memory_(self) -> Any:
        raise NotImplementedError("share_memory_(): memory shared between processes")

    def resizable(self) -> bool:
        return False

    def get_device(self) -> int:
        return -1


class UntypedStorage(StorageBase):
    """A view of the memory that one or more tensors share. Two of the same memory are equal."""

    __module__ = "mindtorch_v2.storage"

    def __init__(self, storage: Storage | int | Sequence[int] = 0, *, device: Any = None) -> None:
        if device is not None and Device(device).type != "cpu":
            raise NotImplementedError(f"UntypedStorage(device={str(device)!r}): storages are made on the CPU")
        if isinstance(storage, int):
            storage = Storage(allocate(storage))
        elif not isinstance(storage, Storage):
            if not isinstance(storage, Sequence):
                raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {type(storage).__name__}")
            storage = Storage(np.array(storage, np.uint8))
        self._storage = storage

    @property
    def _bytes(self) -> np.ndarray:
        if self._storage.device == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if self._storage.device != "cpu":
            raise NotImplementedError(f"the bytes of a storage on {self._storage.device}")
        owner = self._storage.owner
        if not owner.flags.c_contiguous:  # elements in their order in memory
            owner = owner.transpose(sorted(range(owner.ndim), key=lambda d: -owner.strides[d]))
        return owner.reshape(-1).view(np.uint8) if owner.size else np.empty(0, np.uint8)

    @property
    def _cdata(self) -> int:
        """A number that is the same for all views of one memory."""
        return id(self._storage)

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
        return 0 if self._storage.device == "meta" else int(self._storage.owner.__array_interface__["data"][0])

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
        """One byte, or for a slice a storage that shares its memory."""
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
            return UntypedStorage(Storage(self._bytes[index], external=FOREIGN))
        return int(self._bytes[self._place(index)])

    def __setitem__(self, index: Any, value: int) -> None:
        self._bytes[index if isinstance(index, slice) else self._place(index)] = value

    def _place(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def fill_(self, value: int) -> UntypedStorage:
        self._bytes[:] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        if len(source) != len(self):
            raise RuntimeError(f"size does not match, self was {len(self)} bytes but src was {len(source)} bytes")
        self._bytes[:] = source._bytes
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Take another size, for all tensors that share the memory; RuntimeError if one looks at bytes that would be gone."""
        if size != len(self):
            resize_storage(self._storage, size)
        return self

    @staticmethod
    def from_buffer(
        buffer: Any, *, dtype: Any = None, count: int = -1, offset: int = 0, byte_order: str | None = None
    ) -> UntypedStorage:
        """A copy of `count` elements of a buffer, or of all from `offset` on."""
        wanted = np.dtype(np.uint8) if dtype is None else dtype.np
        if byte_order not in (None, "native", "little", "big"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        if byte_order is None and wanted.itemsize > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        values = np.frombuffer(buffer, wanted, count, offset).copy()
        if byte_order is not None and byte_order not in ("native", sys.byteorder):
            values = values.byteswap()
        return UntypedStorage(Storage(values))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The qualified name of the class, as torch's storages give it."""
        if dtype is not None:
            raise NotImplementedError("UntypedStorage.type(dtype): bytes have no values to convert")
        return f"{type(self).__module__}.{type(self).__name__}"

    def new(self) -> UntypedStorage:
        return UntypedStorage()

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
        return UntypedStorage(Storage(np.ndarray((nbytes,), np.uint8, mapped), external=FOREIGN))

    def untyped(self) -> UntypedStorage:
        return self

    def cpu(self) -> UntypedStorage:
        return self

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """The same on another device, which is always the CPU."""
        if Device(device) != self.device:
            raise NotImplementedError(f"UntypedStorage.to(device={str(device)!r})")
        return self

    def clone(self) -> UntypedStorage:
        return UntypedStorage(Storage(self._bytes.copy()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self) -> int:
        return id(self._storage)

    def resizable(self) -> bool:
        return is_resizable(self._storage)

    def __repr__(self) -> str:
        values = "..." if self._storage.device == "meta" else "\n ".join(map(str, self.tolist()))
        return f" {values}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


def untyped_storage(tensor: Tensor) -> UntypedStorage:
    """The memory of a tensor, shared with it."""
    return UntypedStorage(storage_of(tensor))
