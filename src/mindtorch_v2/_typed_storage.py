"""TypedStorage and its older names (FloatStorage, LongStorage, ...): the memory behind tensors as a row of numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ._core import dtype as dt
from ._core.copy_on_write import own_memory
from ._core.device import device as Device
from ._core.storage import Storage
from ._core.tensor import Tensor, make_on_storage, storage_of
from ._core.untyped_storage import MemoryObject, UntypedStorage, as_untyped, copied_storage, new_storage, share, untyped_storage

_DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
    "class. This should only matter to you if you are using storages directly.  To access UntypedStorage directly, "
    "use tensor.untyped_storage() instead of tensor.storage()"
)


class _Told:
    deprecated = False
    always = False


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Say once in a process that typed storages are a thing of the past."""
    if _Told.always or not _Told.deprecated:
        _Told.deprecated = True
        warnings.warn(_DEPRECATED, UserWarning, stacklevel=stacklevel + 1)


def _reset_warn_typed_storage_removal() -> None:
    _Told.deprecated = False


def _get_always_warn_typed_storage_removal() -> bool:
    return _Told.always


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    """Whether the warning comes at each use; TypeError for what is no bool."""
    if not isinstance(always_warn, bool):
        raise TypeError(f"always_warn must be a bool, got {type(always_warn).__name__}")
    _Told.always = always_warn


_FORMS = (
    "TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
    " * (*, torch.device device, torch.dtype dtype)\n"
    " * (int size, *, torch.device device, torch.dtype dtype)\n"
    " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)\n"
)
_LEGACY_FORMS = (
    "{}.__new__ received an invalid combination of arguments. Expected one of:\n"
    " * no arguments\n * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)\n"
)


def _element(value: Any, dtype: dt.dtype) -> Any:
    """An element of a list that a storage is filled with: a number, or a tensor of one."""
    if not isinstance(value, Tensor):
        return value
    if value.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if value.is_complex() and not dtype.is_complex:
        raise RuntimeError("value cannot be converted to type double without overflow")
    return value.item()


def _check_call(forms: str, args: tuple[Any, ...], wrap_storage: Any) -> None:
    """What the constructors of all typed storages refuse."""
    if wrap_storage is not None:
        if args:
            raise RuntimeError(forms + "No positional arguments should be given when using 'wrap_storage'")
        return
    if len(args) > 1:
        raise RuntimeError(forms + "Too many positional arguments")
    for value in args:
        if isinstance(value, str):
            raise TypeError("new(): invalid data type 'str'")
        if not isinstance(value, int | Sequence):
            raise TypeError(f"{forms}Argument type not recognized: {type(value)}")


class TypedStorage(MemoryObject):
    """The memory that one or more tensors share, seen as elements of one dtype.

    `TypedStorage(size)`, `TypedStorage(values)` or `TypedStorage(wrap_storage=untyped, dtype=...)`. All of it is deprecated:
    the public methods give a warning, once in a process, those with an underscore do the same without.
    """

    __module__ = "mindtorch_v2.storage"

    __slots__ = ("__weakref__", "_dtype", "_untyped_storage")

    _dtype: dt.dtype
    _untyped_storage: UntypedStorage

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: dt.dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            _warn_typed_storage_removal()
        _check_call(_FORMS, args, wrap_storage)
        if wrap_storage is not None:
            if dtype is None:
                raise RuntimeError(_FORMS + "Argument 'dtype' must be specified")
            if not isinstance(dtype, dt.dtype):
                raise TypeError(f"{_FORMS}Argument 'dtype' must be torch.dtype, not {type(dtype)}")
            if device is not None:
                raise RuntimeError(_FORMS + "Argument 'device' should not be specified when 'wrap_storage' is given")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"{_FORMS}Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
        elif dtype is not None and not isinstance(dtype, dt.dtype):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        self._dtype = dt.get_default_dtype() if dtype is None else dtype
        if wrap_storage is None:
            values = args[0] if args else 0
            if isinstance(values, Sequence):
                values = [_element(value, self._dtype) for value in values]
            wrap_storage = as_untyped(new_storage(values, self._dtype.np, device))
        self._untyped_storage = wrap_storage

    # ------------------------------------------------------------------ what it is

    @property
    def _storage(self) -> Storage:
        return self._untyped_storage

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def _size(self) -> int:
        return self._nbytes() // self._dtype.itemsize

    def _nbytes(self) -> int:
        return self._untyped_storage.byte_count

    def _element_size(self) -> int:
        return self._dtype.itemsize

    def _data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._nbytes()

    def _pickle_storage_type(self) -> str:
        """What checkpoints call it: `FloatStorage`."""
        name = f"{self._dtype.scalar_name}Storage"
        if name not in LEGACY:
            raise KeyError(f"dtype {self._dtype} is not recognized")
        return name

    def _is_shared(self) -> bool:
        return MemoryObject.is_shared(self)

    def _share_memory_(self) -> TypedStorage:
        share(self._storage)
        return self

    # ------------------------------------------------------------------ its elements

    def _tensor(self) -> Tensor:
        """All elements as a tensor on the same memory."""
        untyped = self._untyped_storage
        return make_on_storage(untyped._bytes[: self._size() * self._dtype.itemsize].view(self._dtype.np), untyped)

    def _tolist(self) -> list[Any]:
        listed: list[Any] = self._tensor().tolist()
        return listed

    def _place(self, index: int) -> int:
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -self._size() <= index < self._size():
            raise IndexError(f"index {index} out of range for storage of size {self._size()}")
        return index

    def _getitem(self, index: int) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._tensor()._array[self._place(index)].item()

    def _setitem(self, index: int | slice, value: Any) -> None:
        if isinstance(value, MemoryObject):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        if self._untyped_storage.place != "meta":
            own_memory(self._untyped_storage)
            self._tensor()._array[index if isinstance(index, slice) else self._place(index)] = value

    def _resize_(self, size: int) -> None:
        """Take another size, for all tensors that share the memory."""
        self._untyped_storage.resize_(size * self._dtype.itemsize)

    # ------------------------------------------------------------------ copies

    def _with(self, untyped: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=self._dtype, _internal=True)

    def _clone(self) -> TypedStorage:
        return self._with(self._untyped_storage.clone())

    def _cpu(self) -> TypedStorage:
        untyped = self._untyped_storage.cpu()
        return self if untyped is self._untyped_storage else self._with(untyped)

    def _to(self, dtype: dt.dtype) -> TypedStorage:
        if self._untyped_storage.place == "meta":
            return TypedStorage(self._size(), dtype=dtype, device="meta", _internal=True)
        converted = untyped_storage(self._tensor().to(dtype, copy=True))  # type: ignore[call-overload]
        return TypedStorage(wrap_storage=converted, dtype=dtype, _internal=True)

    def _deepcopy(self, memo: dict[Any, Any]) -> TypedStorage:
        """A copy, which shares its memory with the copies of tensors that shared it before."""
        copied: TypedStorage | None = memo.get(id(self))
        if copied is None:
            copied = memo[id(self)] = self._with(as_untyped(copied_storage(self._storage, memo)))
        return copied

    def __reduce__(self) -> Any:
        return _unpickled, (self._untyped_storage._bytes.tobytes(), self._dtype)

    def __str__(self) -> str:
        untyped = self._untyped_storage
        values = "..." if untyped.place == "meta" else " " + "\n ".join(map(str, self._tolist()))
        return f"{values}\n[torch.storage.TypedStorage(dtype={self._dtype}, device={untyped.device}) of size {self._size()}]"

    # ------------------------------------------------------------------ the deprecated names

    def __len__(self) -> int:
        _warn_typed_storage_removal()
        return self._size()

    def __iter__(self) -> Iterator[Any]:
        _warn_typed_storage_removal()
        return iter(self._tolist())

    def __getitem__(self, index: int) -> Any:
        _warn_typed_storage_removal()
        return self._getitem(index)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        _warn_typed_storage_removal()
        self._setitem(index, value)

    def __repr__(self) -> str:
        _warn_typed_storage_removal()
        return str(self)

    def __copy__(self) -> TypedStorage:
        _warn_typed_storage_removal()
        return self._clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        _warn_typed_storage_removal()
        return self._deepcopy(memo)

    @property
    def dtype(self) -> dt.dtype:
        _warn_typed_storage_removal()
        return self._dtype

    @property
    def device(self) -> Device:
        _warn_typed_storage_removal()
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        _warn_typed_storage_removal()
        return False

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        _warn_typed_storage_removal()
        return self._untyped_storage

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its type, or a copy with another dtype."""
        _warn_typed_storage_removal()
        if dtype is None:
            return f"torch.{self._pickle_storage_type()}"
        if isinstance(dtype, _LegacyStorageMeta):
            dtype = dtype._dtype
        if not isinstance(dtype, dt.dtype):
            raise NotImplementedError(f"TypedStorage.type({dtype!r})")
        return self._to(dtype)

    def fill_(self, value: Any) -> TypedStorage:
        _warn_typed_storage_removal()
        self._setitem(slice(None), value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the bytes of another storage of the same size."""
        _warn_typed_storage_removal()
        self._untyped_storage.copy_(source._untyped_storage if isinstance(source, TypedStorage) else source)
        return self

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The same on another device, which is always the CPU."""
        _warn_typed_storage_removal()
        return self._with(self._untyped_storage.to(device=device, non_blocking=non_blocking))

    def pin_memory(self, device: Any = None) -> NoReturn:
        """Always refuses: there is no accelerator whose driver locks pages."""
        self._untyped_storage.pin_memory(device)

    @classmethod
    def from_buffer(cls, *args: Any, dtype: dt.dtype | None = None, device: Any = None, **kwargs: Any) -> TypedStorage:
        """A copy of the elements in a buffer, of the default dtype if none is given: see UntypedStorage.from_buffer."""
        _warn_typed_storage_removal()
        place = Device("cpu" if device is None else device)
        if place.type != "cpu":
            raise RuntimeError(f"TypedStorage.from_buffer: Not available for device {place.type}")
        kind = dt.get_default_dtype() if dtype is None else dtype
        data = UntypedStorage.from_buffer(*args, dtype=kind, **kwargs)
        return TypedStorage(wrap_storage=data, dtype=kind, _internal=True)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first elements of a file, mapped: of `torch.FloatStorage` and so on, since the dtype must be known."""
        _warn_typed_storage_removal()
        raise RuntimeError("from_file can only be called on derived classes")

    def _write_file(self, *args: Any) -> None:
        self._untyped_storage._write_file(*args)

    def _share_fd_cpu_(self) -> tuple[int, int]:
        fd, size = self._untyped_storage._share_fd_cpu_()
        return fd, size // self._dtype.itemsize

    def _share_filename_cpu_(self) -> tuple[bytes, bytes, int]:
        manager, name, size = self._untyped_storage._share_filename_cpu_()
        return manager, name, size // self._dtype.itemsize


def _deprecated(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    """A public method that gives the warning and does what one with an underscore does."""

    def method(self: TypedStorage, *args: Any) -> Any:
        _warn_typed_storage_removal()
        return inner(self, *args)

    method.__name__, method.__qualname__, method.__doc__ = name, f"TypedStorage.{name}", inner.__doc__
    return method


def _cast(dtype: dt.dtype) -> Callable[[TypedStorage], TypedStorage]:
    def convert(self: TypedStorage) -> TypedStorage:
        return self._to(dtype)

    return convert


_DTYPES: dict[str, dt.dtype] = {
    "double": dt.float64,
    "float": dt.float32,
    "half": dt.float16,
    "bfloat16": dt.bfloat16,
    "long": dt.int64,
    "int": dt.int32,
    "short": dt.int16,
    "char": dt.int8,
    "byte": dt.uint8,
    "bool": dt.bool_,
    "complex_float": dt.complex64,
    "complex_double": dt.complex128,
}
# Storages are converted to these, too, and have no class of their own for them.
_FLOAT8 = {d.name: d for d in (dt.float8_e4m3fn, dt.float8_e4m3fnuz, dt.float8_e5m2, dt.float8_e5m2fnuz)}
_INNER: dict[str, Callable[..., Any]] = {
    **{name: _cast(dtype) for name, dtype in (_DTYPES | _FLOAT8).items()},
    "size": TypedStorage._size,
    "nbytes": TypedStorage._nbytes,
    "element_size": TypedStorage._element_size,
    "data_ptr": TypedStorage._data_ptr,
    "pickle_storage_type": TypedStorage._pickle_storage_type,
    "tolist": TypedStorage._tolist,
    "resize_": TypedStorage._resize_,
    "clone": TypedStorage._clone,
    "cpu": TypedStorage._cpu,
    "is_shared": TypedStorage._is_shared,
    "share_memory_": TypedStorage._share_memory_,
    "resizable": lambda self: self._untyped_storage.resizable(),
    "is_pinned": lambda self, device=None: False,
    "get_device": lambda self: -1,
}
for _name, _inner in _INNER.items():
    setattr(TypedStorage, _name, _deprecated(_name, _inner))


def bytes_as(untyped: UntypedStorage, name: str) -> TypedStorage:
    """The bytes of a storage, each as a number of the dtype that "float", "long" ... stands for."""
    dtype = (_DTYPES | _FLOAT8)[name]
    values = untyped._bytes.astype(dtype.np)
    return TypedStorage(wrap_storage=as_untyped(Storage(values)), dtype=dtype, _internal=True)


def _unpickled(data: bytes, dtype: dt.dtype) -> TypedStorage:
    untyped = as_untyped(Storage(np.frombuffer(bytearray(data), np.uint8)))
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


# ---------------------------------------------------------------- one class for each dtype


class _LegacyStorageMeta(type):
    """Storages are instances of the class that their dtype names."""

    _dtype: dt.dtype
    is_cuda = is_sparse = False

    @property
    def dtype(cls) -> dt.dtype:
        _warn_typed_storage_removal()
        return cls._dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and (cls.__name__ == "_LegacyStorage" or instance._dtype is cls._dtype)


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """`torch.FloatStorage(...)` and so on: makes a TypedStorage of its dtype."""

    __module__ = "mindtorch_v2.storage"

    __slots__ = ()

    def __new__(cls, *args: Any, wrap_storage: UntypedStorage | None = None, _internal: bool = False, **named: Any) -> Any:
        if not _internal:
            _warn_typed_storage_removal()
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        forms = _LEGACY_FORMS.format(repr(cls))
        for name in named:
            if name in ("device", "dtype"):
                raise RuntimeError(f"{forms}Keyword argument '{name}' cannot be specified")
            raise TypeError(f"TypedStorage.__new__() got an unexpected keyword argument '{name}'")
        _check_call(forms, args, wrap_storage)
        if wrap_storage is not None and not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(f"{forms}Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls._dtype, _internal=True)

    @classmethod
    def from_buffer(  # type: ignore[override]
        cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0
    ) -> TypedStorage:
        """A copy of the elements in a buffer."""
        _warn_typed_storage_removal()
        data = UntypedStorage.from_buffer(buffer, byte_order, count, offset, dtype=cls._dtype)
        return TypedStorage(wrap_storage=data, dtype=cls._dtype, _internal=True)

    _from_buffer = from_buffer

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first elements of a file, mapped. Only with `shared` are changes written to it."""
        _warn_typed_storage_removal()
        data = UntypedStorage.from_file(filename, shared, size * cls._dtype.itemsize)
        return TypedStorage(wrap_storage=data, dtype=cls._dtype, _internal=True)


LEGACY: dict[str, Any] = {
    f"{d.scalar_name}Storage": _LegacyStorageMeta(
        f"{d.scalar_name}Storage",
        (_LegacyStorage,),
        {"__module__": __name__.partition(".")[0], "__slots__": (), "_dtype": d},
    )
    for d in _DTYPES.values()
}


def _dtype_to_storage_type_map() -> dict[dt.dtype, str]:
    """The name of the legacy class of each dtype."""
    return {kind._dtype: name for name, kind in LEGACY.items()}


def _storage_type_to_dtype_map() -> dict[str, dt.dtype]:
    return {name: kind._dtype for name, kind in LEGACY.items()}


# ---------------------------------------------------------------- what tensors say of theirs


def typed_storage(tensor: Tensor) -> TypedStorage:
    """The memory of a tensor, with its dtype."""
    return TypedStorage(wrap_storage=as_untyped(storage_of(tensor)), dtype=tensor.dtype, _internal=True)


def storage_with_warning(tensor: Tensor) -> TypedStorage:
    """The same for `Tensor.storage()`, which is deprecated."""
    _warn_typed_storage_removal(stacklevel=3)
    return typed_storage(tensor)


def storage_type(tensor: Tensor) -> Any:
    """`torch.FloatStorage`, by the tensor's dtype."""
    return LEGACY.get(f"{tensor.dtype.scalar_name}Storage")  # None for the dtypes that have no such class
