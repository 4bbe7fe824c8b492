"""TypedStorage and its older names (FloatStorage, LongStorage, ...): the memory behind tensors as a row of numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._core import dtype as dt
from ._core.device import device as Device
from ._core.storage import Storage, allocate
from ._core.tensor import Tensor, storage_of
from ._core.untyped_storage import StorageBase, UntypedStorage

_new = object.__new__

_DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
    "class. This should only matter to you if you are using storages directly.  To access UntypedStorage directly, "
    "use tensor.untyped_storage() instead of tensor.storage()"
)


class _Told:
    deprecated = False


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Say once in a process that typed storages are a thing of the past."""
    if not _Told.deprecated:
        _Told.deprecated = True
        warnings.warn(_DEPRECATED, UserWarning, stacklevel=stacklevel + 1)


class TypedStorage(StorageBase):
    """The memory that one or more tensors share, seen as elements of one dtype.

    `TypedStorage(size)`, `TypedStorage(values)` or `TypedStorage(wrap_storage=untyped, dtype=...)`.
    """

    __module__ = "mindtorch_v2.storage"

    __slots__ = ("_dtype", "_untyped_storage")

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: dt.dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if wrap_storage is not None and (args or dtype is None or device is not None):
            raise RuntimeError(
                "TypedStorage.__init__ received an invalid combination of arguments: wrap_storage goes with "
                "dtype and nothing else"
            )
        if wrap_storage is not None and not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
        if len(args) > 1:
            raise RuntimeError(
                "TypedStorage.__init__ received an invalid combination of arguments. Too many positional arguments"
            )
        if dtype is not None and not isinstance(dtype, dt.dtype):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        self._dtype = dt.get_default_dtype() if dtype is None else dtype
        self._untyped_storage = _filled(self._dtype, device, *args) if wrap_storage is None else wrap_storage

    # ------------------------------------------------------------------ what it is

    @property
    def dtype(self) -> dt.dtype:
        return self._dtype

    @property
    def device(self) -> Device:
        return self._untyped_storage.device

    @property
    def _storage(self) -> Storage:
        return self._untyped_storage._storage

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped_storage

    def size(self) -> int:
        return self.nbytes() // self.dtype.itemsize

    _size = __len__ = size

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    def pickle_storage_type(self) -> str:
        """What checkpoints call it: `FloatStorage`."""
        name = f"{self.dtype.scalar_name}Storage"
        if name not in LEGACY:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return name

    _pickle_storage_type = pickle_storage_type

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its type, or a copy with another dtype."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        if isinstance(dtype, _LegacyStorageMeta):
            dtype = dtype.dtype
        if not isinstance(dtype, dt.dtype):
            raise NotImplementedError(f"TypedStorage.type({dtype!r})")
        return self._to(dtype)

    # ------------------------------------------------------------------ its elements

    def _tensor(self) -> Tensor:
        """All elements as a tensor on the same memory."""
        tensor = _new(Tensor)
        count = self.size()
        tensor._array = self._untyped_storage._bytes[: count * self.dtype.itemsize].view(self.dtype.np)
        tensor._keys = 0
        tensor._storage = self._storage
        tensor._base = None
        return tensor

    def tolist(self) -> list[Any]:
        listed: list[Any] = self._tensor().tolist()
        return listed

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def _place(self, index: int) -> int:
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._tensor()._array[self._place(index)].item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._tensor()._array[index if isinstance(index, slice) else self._place(index)] = value

    def fill_(self, value: Any) -> TypedStorage:
        self[:] = value
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the bytes of another storage of the same size."""
        self._untyped_storage.copy_(source.untyped())
        return self

    def resize_(self, size: int) -> None:
        """Take another size, for all tensors that share the memory."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    # ------------------------------------------------------------------ copies

    def clone(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        return self

    def _to(self, dtype: dt.dtype) -> TypedStorage:
        return TypedStorage(wrap_storage=UntypedStorage(storage_of(self._tensor().to(dtype, copy=True))), dtype=dtype)

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        copied = memo.get(id(self))
        if copied is None:
            copied = memo[id(self)] = self.clone()
        return copied

    __copy__ = clone

    def __reduce__(self) -> Any:
        return _unpickled, (self._untyped_storage._bytes.tobytes(), self.dtype)

    def __repr__(self) -> str:
        values = "\n ".join(map(str, self.tolist()))
        return f" {values}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


def _cast(dtype: dt.dtype) -> Any:
    return lambda self: self._to(dtype)


for _name, _dtype in (
    ("double", dt.float64),
    ("float", dt.float32),
    ("half", dt.float16),
    ("bfloat16", dt.bfloat16),
    ("long", dt.int64),
    ("int", dt.int32),
    ("short", dt.int16),
    ("char", dt.int8),
    ("byte", dt.uint8),
    ("bool", dt.bool_),
    ("complex_float", dt.complex64),
    ("complex_double", dt.complex128),
):
    setattr(TypedStorage, _name, _cast(_dtype))


def _filled(dtype: dt.dtype, device: Any, values: Any = 0) -> UntypedStorage:
    """New memory for a number of elements, or for some values."""
    if device is not None and Device(device).type != "cpu":
        raise NotImplementedError(f"TypedStorage(device={str(device)!r}): storages are made on the CPU")
    if isinstance(values, int):
        return UntypedStorage(Storage(allocate(values * dtype.itemsize)))
    if not isinstance(values, Sequence):
        raise TypeError(
            f"TypedStorage.__init__ received an invalid combination of arguments. Argument type not recognized: {type(values)}"
        )
    if isinstance(values, str):
        raise TypeError("new(): invalid data type 'str'")
    return UntypedStorage(Storage(np.array(values, dtype.np)))


def _unpickled(data: bytes, dtype: dt.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=UntypedStorage(Storage(np.frombuffer(bytearray(data), np.uint8))), dtype=dtype)


# ---------------------------------------------------------------- one class for each dtype


class _LegacyStorageMeta(type):
    """Storages are instances of the class that their dtype names."""

    _of_class: dt.dtype

    @property
    def dtype(cls) -> dt.dtype:
        return cls._of_class

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and (cls.__name__ == "_LegacyStorage" or instance.dtype is cls._of_class)


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """`torch.FloatStorage(...)` and so on: makes a TypedStorage of its dtype."""

    __module__ = "mindtorch_v2.storage"

    __slots__ = ()

    _of_class: dt.dtype

    def __new__(cls, *args: Any, wrap_storage: UntypedStorage | None = None) -> Any:
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls._of_class)

    @classmethod
    def from_buffer(cls, buffer: Any, count: int = -1, offset: int = 0, byte_order: str | None = None) -> TypedStorage:
        """A copy of the elements in a buffer."""
        data = UntypedStorage.from_buffer(buffer, dtype=cls._of_class, count=count, offset=offset, byte_order=byte_order)
        return TypedStorage(wrap_storage=data, dtype=cls._of_class)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first elements of a file, mapped. Only with `shared` are changes written to it."""
        data = UntypedStorage.from_file(filename, shared, size * cls._of_class.itemsize)
        return TypedStorage(wrap_storage=data, dtype=cls._of_class)


_TYPED = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
)
LEGACY: dict[str, Any] = {
    f"{d.scalar_name}Storage": _LegacyStorageMeta(
        f"{d.scalar_name}Storage",
        (_LegacyStorage,),
        {"__module__": __name__.partition(".")[0], "__slots__": (), "_of_class": d},
    )
    for d in map(dt.by_name, _TYPED)
}


# ---------------------------------------------------------------- what tensors say of theirs


def typed_storage(tensor: Tensor) -> TypedStorage:
    """The memory of a tensor, with its dtype."""
    return TypedStorage(wrap_storage=UntypedStorage(storage_of(tensor)), dtype=tensor.dtype)


def storage_with_warning(tensor: Tensor) -> TypedStorage:
    """The same for `Tensor.storage()`, which is deprecated."""
    _warn_typed_storage_removal(stacklevel=3)
    return typed_storage(tensor)


def storage_type(tensor: Tensor) -> Any:
    """`torch.FloatStorage`, by the tensor's dtype."""
    return LEGACY.get(f"{tensor.dtype.scalar_name}Storage")  # None for the dtypes that have no such class
