"""UntypedStorage: the bytes behind tensors, as an object of their own."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, overload

import numpy as np

from .copy_on_write import own_memory
from .device import device as Device
from .resizing import is_resizable, move_storage, resize_storage
from .shape_only import addresses
from .shared_memory import Segment, new_segment, open_descriptor, open_named, segment_of
from .storage import FOREIGN, Storage, allocate, lender_of
from .tensor import Tensor, storage_of


class MappedFile(mmap.mmap):
    """The first bytes of a file."""

    filename: str
    shared: bool


def map_file(filename: str, shared: bool, nbytes: int) -> MappedFile:
    """The first bytes of a file as memory: shared memory is written to the file, which grows to that size if it is smaller;
    other memory is a copy made page by page as it is written to."""
    mode = "read-write" if shared else "read-only"
    try:
        descriptor = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o600)
    except OSError as error:
        raise RuntimeError(f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})") from None
    try:
        size = os.fstat(descriptor).st_size
        if size < nbytes:
            if not shared:
                raise RuntimeError(f"file <{filename}> size <{size}> is smaller than the required mapping size <{nbytes}>")
            os.ftruncate(descriptor, nbytes)
        mapped = MappedFile(descriptor, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
        mapped.filename, mapped.shared = filename, shared
        return mapped
    finally:
        os.close(descriptor)


def share(storage: Storage, what: str = "_share_fd_") -> Segment:
    """Move the memory of a storage into shared memory, unless it is there; the segment."""
    if storage.place != "cpu":
        raise RuntimeError(f"{what}: only available on CPU")
    segment = segment_of(storage.owner)
    if segment is None:
        segment = new_segment(storage.byte_count)
        move_storage(storage, segment.data)
    return segment


class MemoryObject:
    """What storages with a dtype and without one answer alike."""

    __slots__ = ()

    is_cuda = is_hpu = is_sparse = is_sparse_csr = False

    @property
    def _storage(self) -> Any:
        raise NotImplementedError

    @property
    def filename(self) -> str | None:
        """The file whose first bytes the memory is, if it was mapped from one to be shared."""
        base = self._storage.owner.base
        return base.filename if isinstance(base, MappedFile) and base.shared else None

    def is_shared(self) -> bool:
        """Whether other processes can see the memory: it is in a shared segment or a file's."""
        owner = self._storage.owner
        return segment_of(owner) is not None or isinstance(owner.base, MappedFile)

    def is_pinned(self, device: Any = None) -> bool:
        return False

    def share_memory_(self) -> Any:
        """Move the memory into a segment that other processes can see, and with it all tensors that share it."""
        share(self._storage)
        return self

    def resizable(self) -> bool:
        return False

    def get_device(self) -> int:
        return -1


def new_storage(values: int | Sequence[int], np_dtype: np.dtype, device: Any) -> Storage:
    """Fresh memory for that many elements, or for some values; on the meta device there is none behind it."""
    place = "cpu" if device is None else Device(device).type
    if place == "meta":
        count = values if isinstance(values, int) else len(values)
        return Storage(addresses(max(count, 0) * np_dtype.itemsize), external=FOREIGN, device=place)
    if place != "cpu":
        raise RuntimeError(f"torch.UntypedStorage(): Storage device not recognized: {place}")
    if isinstance(values, int):
        return Storage(allocate(values * np_dtype.itemsize))
    return Storage(np.array(values, np_dtype))


def _as_bytes(values: Sequence[int]) -> bytearray:
    """The lowest byte of each integer, as C converts them: -1 is 255, and 256 is 0."""
    for item in values:
        if not isinstance(item, int | np.integer):
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(values).__name__}), "
                f"but one of the items was of type {type(item).__name__} instead of int"
            )
        if not -(2**63) <= item < 2**63:
            raise ValueError("Overflow when unpacking long long")
    return bytearray(int(item) & 255 for item in values)


class StorageBase(Storage, MemoryObject):
    """The class below UntypedStorage, from which programs derive storages of their own."""

    __module__ = "mindtorch_v2._C"
    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is StorageBase:
            raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")
        return object.__new__(cls)

    def __init__(self, values: int | Sequence[int] | Storage = 0, *, device: Any = None) -> None:
        if isinstance(values, Storage):  # its bytes
            values = as_untyped(values).tolist()
        elif not isinstance(values, int | Sequence):
            raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {type(values).__name__}")
        if not isinstance(values, int):
            values = _as_bytes(values)
        made = new_storage(values, np.dtype(np.uint8), device)
        super().__init__(made.owner, external=made.external, device=made.place)
        made.external = FOREIGN  # its end is not that of the memory

    @property
    def _storage(self) -> Storage:
        return self

    @property
    def _bytes(self) -> np.ndarray:
        if self.place == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if self.place != "cpu":
            raise NotImplementedError(f"the bytes of a storage on {self.place}")
        owner: np.ndarray = self.owner
        if not owner.flags.c_contiguous:  # elements in their order in memory
            owner = owner.transpose(sorted(range(owner.ndim), key=lambda d: -owner.strides[d]))
        return owner.reshape(-1).view(np.uint8) if owner.size else np.empty(0, np.uint8)

    @property
    def _cdata(self) -> int:
        """A number that no other storage has while this one lives."""
        return id(self)

    @property
    def device(self) -> Device:
        return Device(self.place)

    def nbytes(self) -> int:
        return self.byte_count

    def __len__(self) -> int:
        return self.byte_count

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.byte_count

    def data_ptr(self) -> int:
        return 0 if self.place == "meta" else int(self.owner.__array_interface__["data"][0])

    def _fix_weakref(self) -> None:
        """What torch needs where an object was taken from a weak reference: here such an object is whole."""


class UntypedStorage(StorageBase):
    """The memory that one or more tensors share, as bytes. There is one object for each memory."""

    __module__ = "mindtorch_v2.storage"
    __slots__ = ()

    def size(self) -> int:
        return self.byte_count

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
            return as_untyped(Storage(self._bytes[index], external=FOREIGN))
        return int(self._bytes[self._place(index)])

    def __setitem__(self, index: Any, value: int) -> None:
        if self.place != "meta":
            own_memory(self)
            self._bytes[index if isinstance(index, slice) else self._place(index)] = value

    def _place(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def fill_(self, value: int) -> UntypedStorage:
        self[:] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        if len(source) != len(self):
            raise RuntimeError(f"size does not match, self was {len(self)} bytes but src was {len(source)} bytes")
        if self.place != "meta":
            own_memory(self)
            self._bytes[:] = source._to_read()._bytes
        return self

    def _to_read(self) -> UntypedStorage:
        """Itself; NotImplementedError where there is no memory to copy."""
        if self.place == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Take another size, for all tensors that share the memory; RuntimeError if one looks at bytes that would be gone."""
        if size != len(self):
            resize_storage(self, size)
        return self

    @staticmethod
    def from_buffer(
        buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype: Any = None
    ) -> UntypedStorage:
        """A copy of `count` elements of a buffer, or of all from `offset` on."""
        wanted = np.dtype(np.uint8) if dtype is None else dtype.np
        if byte_order not in (None, "native", "little", "big"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        if byte_order is None and wanted.itemsize > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if wanted.kind == "b":  # every byte that is not zero is True
            values = np.frombuffer(buffer, np.uint8, count, offset) != 0
        else:
            values = np.frombuffer(buffer, wanted, count, offset).copy()
        if byte_order is not None and byte_order not in ("native", sys.byteorder):
            values = values.byteswap()
        return as_untyped(Storage(values))

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
        if not nbytes:
            return UntypedStorage()
        mapped: Any = map_file(os.fspath(filename), shared, nbytes)
        return as_untyped(Storage(np.ndarray((nbytes,), np.uint8, mapped), external=FOREIGN))

    # ------------------------------------------------------------------ memory that other processes see

    @classmethod
    def _new_shared(cls, size: int, *, device: str = "cpu") -> UntypedStorage:
        """Fresh shared memory, by the strategy that is set."""
        if Device(device).type != "cpu":
            raise NotImplementedError(f"UntypedStorage._new_shared(device={device!r})")
        return cls._of_segment(new_segment(size))

    @classmethod
    def _of_segment(cls, segment: Segment) -> UntypedStorage:
        return as_untyped(Storage(segment.data, external=FOREIGN))

    @classmethod
    def _new_using_fd_cpu(cls, size: int) -> UntypedStorage:
        return cls._new_shared(size)

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """A file descriptor of the memory, which stays the storage's, and its size. Memory that is not shared becomes so."""
        descriptor = share(self).descriptor
        if descriptor is None:
            raise RuntimeError("the memory is shared by name, and has no file descriptor")
        return descriptor, len(self)

    def _share_filename_cpu_(self) -> tuple[bytes, bytes, int]:
        """Nothing, the name of the memory, and its size. Memory that is not shared becomes so."""
        name = share(self, "_share_filename_").name
        if name is None:
            raise RuntimeError("the memory is shared by a file descriptor, and has no name")
        return b"", name.encode(), len(self)

    @classmethod
    def _new_shared_fd_cpu(cls, fd: int, size: int) -> UntypedStorage:
        """The memory behind a file descriptor, which stays open and the caller's."""
        return cls._of_segment(open_descriptor(fd, size))

    @classmethod
    def _new_shared_filename_cpu(cls, manager: bytes, name: bytes, size: int) -> UntypedStorage:
        """The memory of a name."""
        return cls._of_segment(open_named(name.decode(), size))

    def _shared_incref(self) -> None:
        """Keep a name alive for a process that will take it over."""
        segment = segment_of(self.owner)
        if segment is not None:
            segment.count(1)

    def _shared_decref(self) -> UntypedStorage:
        """Undo `_shared_incref`, once that process has it."""
        segment = segment_of(self.owner)
        if segment is not None:
            segment.count(-1)
        return self

    def __reduce__(self) -> Any:
        return _unpickled_bytes, (self._bytes.tobytes(),)

    def byteswap(self, dtype: Any) -> None:
        """Reverse the bytes of each element of that dtype, in place."""
        if dtype.itemsize > 1:
            own_memory(self)
            self._bytes.view(dtype.np).byteswap(inplace=True)

    _byteswap = byteswap

    def untyped(self) -> UntypedStorage:
        return self

    def cpu(self) -> UntypedStorage:
        """Itself; NotImplementedError on the meta device, which has nothing to copy."""
        return self._to_read()

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Write the number of elements, if asked for, and the bytes to an open file."""
        data = self._to_read()._bytes
        if save_size:
            file.write((len(data) // element_size).to_bytes(8, sys.byteorder))
        file.write(data.tobytes())

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """The same on another device, which is always the CPU."""
        if Device(device) != self.device:
            raise NotImplementedError(f"UntypedStorage.to(device={str(device)!r})")
        return self

    def pin_memory(self, device: Any = None) -> NoReturn:
        """Always refuses: there is no accelerator whose driver locks pages."""
        if self.place != "cpu":
            raise TypeError("cannot pin 'torch.storage.UntypedStorage' only CPU memory can be pinned")
        raise RuntimeError("Cannot access accelerator device when none is available.")

    def clone(self) -> UntypedStorage:
        """A copy of the bytes; on the meta device one of the size."""
        if self.place == "meta":
            return UntypedStorage(self.byte_count, device="meta")
        return as_untyped(Storage(self._bytes.copy()))

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        """A copy, which the copies of tensors that share the memory share as well."""
        return as_untyped(copied_storage(self, memo))

    def resizable(self) -> bool:
        return is_resizable(self)

    def __repr__(self) -> str:
        values = "..." if self.place == "meta" else " " + "\n ".join(map(str, self.tolist()))
        return f"{values}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


def _unpickled_bytes(data: bytes) -> UntypedStorage:
    return as_untyped(Storage(np.frombuffer(bytearray(data), np.uint8)))


def as_untyped(storage: Storage) -> UntypedStorage:
    """The storage itself, which from now on answers as an UntypedStorage does, or the one that lent it its memory."""
    storage = lender_of(storage)
    if storage.__class__ is Storage:
        storage.__class__ = UntypedStorage
    return storage  # type: ignore[return-value]


def copied_storage(storage: Storage, memo: dict[int, Any]) -> Storage:
    """A copy of some memory, the same for all that share it and are copied with one memo."""
    storage = lender_of(storage)
    known = memo.get(id(storage))
    if known is None:
        known = memo[id(storage)] = Storage(storage.owner.copy("K"))
        memo.setdefault(id(memo), []).append(storage)  # keyed by id: the object must outlive the memo
    copied: Storage = known
    return copied


def untyped_storage(tensor: Tensor) -> UntypedStorage:
    """The memory of a tensor, shared with it: the same object each time."""
    return as_untyped(storage_of(tensor))
