"""Reading checkpoints: zip archives and the older format, with nothing run that was not asked for."""

from __future__ import annotations

import inspect
import io
import mmap as _mmap
import os
import pickle
import sys
import warnings
import zipfile
from collections.abc import Callable
from enum import Enum
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .._core import dtype as dt
from .._core.device import device as Device
from .._core.storage import SHARED, Storage
from .._core.untyped_storage import as_untyped
from . import options
from .archive import ArchiveReader, fill, in_memory
from .locations import MapLocation, PlacingError, own_location, restored, wanted_location
from .names import StorageType, find
from .rebuild import LoadedStorage, waiting
from .restricted import RestrictedUnpickler
from .writer import MAGIC_NUMBER, PROTOCOL_VERSION

# Classes that the user allows in checkpoints read with weights_only=True, by (module, name).
user_safe: dict[tuple[str, str], Any] = {}
_FOR_FILES = "You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."  # noqa: E501


class LoadEndianness(Enum):
    """The byte order of checkpoints that do not say which they have."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class SourceChangeWarning(Warning):
    """The source of a module's class differs from the source that was saved with the object."""


class Request(NamedTuple):
    """What torch.load was asked for."""

    map_location: MapLocation
    weights_only: bool
    mmap: bool
    pickle_module: Any
    pickle_options: dict[str, Any]
    skip_data: bool = False


class _CheckpointUnpickler:
    """Resolves every name, torch's to this package's: for files that the user trusts. A pickle module's reader follows it."""

    def __init__(self, file: Any, storages: Callable[..., Any], **options: Any) -> None:
        super().__init__(file, **options)  # type: ignore[call-arg]
        self._storages = storages

    def find_class(self, module: str, name: str) -> Any:
        return find(module, name, super().find_class)  # type: ignore[misc]

    def persistent_load(self, pid: Any) -> Any:
        kind = _text(pid[0]) if isinstance(pid, tuple) and pid else None
        if kind == "module" and len(pid) == 4:  # a class, with its file and text
            return _compared(*pid[1:])
        if kind != "storage":
            raise pickle.UnpicklingError(f"unknown persistent id in checkpoint: {pid!r}")
        return self._storages(*pid[1:])


class CheckpointUnpickler(_CheckpointUnpickler, pickle.Unpickler):
    """The same with Python's own reader."""


def _compared(kind: Any, file: Any, text: Any) -> Any:
    """The class of a module in the old format; a warning if it was another when it was saved. The package's own are."""
    if text and isinstance(kind, type) and kind.__module__.partition(".")[0] != __name__.partition(".")[0]:
        try:
            now = inspect.getsource(kind)
        except (OSError, TypeError):
            warnings.warn(
                f"Couldn't retrieve source code for container of type {kind.__name__}. It won't be checked for "
                "correctness upon loading.",
                stacklevel=2,
            )
            return kind
        if now != text:
            warnings.warn(
                f"source code of class '{kind.__module__}.{kind.__qualname__}' has changed since it was saved (in {file}).",
                SourceChangeWarning,
                stacklevel=2,
            )
    return kind


def _text(value: Any) -> Any:
    """Text that is bytes in a file of Python 2 which is read with encoding="bytes"."""
    return value.decode("ascii") if type(value) is bytes and value.isascii() else value


def _unpickled(file: Any, size: int, storages: Callable[..., Any], request: Request) -> Any:
    if request.weights_only:
        return RestrictedUnpickler(file, size, storages, user_safe, **request.pickle_options).load()
    module = request.pickle_module
    kind: Any = CheckpointUnpickler
    if module is not None and module.Unpickler is not pickle.Unpickler:
        kind = type("CheckpointUnpickler", (_CheckpointUnpickler, module.Unpickler), {})
    return kind(file, storages, **request.pickle_options).load()


def _checked(key: Any, location: Any, numel: Any) -> tuple[str, str, int]:
    key, location = _text(key), _text(location)
    if type(key) is not str or type(location) is not str or type(numel) is not int or numel < 0:
        raise pickle.UnpicklingError("checkpoint describes a storage without key, place or size")
    return key, location, numel


def _storage_dtype(kind: Any) -> dt.dtype | None:
    if not isinstance(kind, StorageType):
        raise pickle.UnpicklingError(f"checkpoint names a {type(kind).__name__} as a storage type")
    return kind.dtype


def _loaded(
    read: Callable[[], np.ndarray], dtype: dt.dtype | None, saved: str, numel: int, map_location: MapLocation
) -> LoadedStorage:
    """A storage at its place: one that is known, or what the functions that were registered or given make of its bytes."""
    if map_location is None or isinstance(map_location, dict | str | Device):
        place = own_location(wanted_location(saved, map_location))
        if place is not None:
            return LoadedStorage(read, dtype, place, numel)
    here = as_untyped(Storage(read()))
    found = restored(here, saved, map_location)._storage
    return LoadedStorage(lambda: found.owner.reshape(-1).view(np.uint8), dtype, found.place, numel, found)


def _is_swapped(archive: ArchiveReader) -> bool:
    """Whether the numbers of an archive are in the other byte order than this machine's."""
    if archive.has_record("byteorder"):
        order = archive.get_record("byteorder")
        if order not in (b"little", b"big"):
            raise RuntimeError("Unknown endianness type: " + order.decode("ascii", "replace"))
        return order.decode() != sys.byteorder
    wanted = options.load.endianness
    if wanted is LoadEndianness.NATIVE:
        return False
    return (sys.byteorder == "little") is (wanted is LoadEndianness.BIG)


def read_zip(file: BinaryIO, path: str | None, request: Request) -> Any:
    """Read a checkpoint in the present format."""
    archive = ArchiveReader(file)
    if archive.has_record("constants.pkl"):
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. In PyTorch 2.6, we changed "
            "the default value of the `weights_only` argument in `torch.load` from `False` to `True`. Re-running `torch.load` "
            "with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code execution. Do it only "
            "if you got the file from a trusted source."
            if request.weights_only
            else "torch.load: TorchScript archives cannot be read"
        )
    swapped = _is_swapped(archive)
    loaded: dict[str, LoadedStorage] = {}

    def storage(kind: Any, key: str, location: str, numel: int) -> LoadedStorage:
        key, location, numel = _checked(key, location, numel)
        known = loaded.get(key)
        if known is None:
            dtype = _storage_dtype(kind)

            def read() -> np.ndarray:
                if request.skip_data:
                    size = archive.get_record_size(f"data/{key}")
                    if size > max(1 << 26, 250 * archive.size):
                        raise RuntimeError(f"storage {key} is larger than its checkpoint")
                    return np.zeros(size, np.uint8)
                if request.mmap and path is not None:
                    return _mapped(path, archive.info(f"data/{key}"))
                data = archive.array(f"data/{key}")
                if swapped and dtype is not None and dtype.itemsize > 1:
                    data = data.view(dtype.np).byteswap().view(np.uint8)
                return data

            known = loaded[key] = _loaded(read, dtype, location, numel, request.map_location)
        return known.of_dtype(_storage_dtype(kind))

    pickled = archive.get_record("data.pkl")
    result = _unpickled(io.BytesIO(pickled), len(pickled), storage, request)
    for known in loaded.values():  # the file may be closed before the values are read
        if known.location != "meta":
            known.array  # noqa: B018
    return result


def _mapped(path: str, info: zipfile.ZipInfo) -> np.ndarray:
    """A member of the archive as memory that is read from the file on demand; writes stay private unless options say so."""
    if info.compress_type != zipfile.ZIP_STORED:
        raise RuntimeError("mmap can only be used with checkpoints that are not compressed")
    with open(path, "rb") as file:
        file.seek(info.header_offset + 26)
        name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
        size = file.seek(0, os.SEEK_END)
    if info.file_size == 0:
        return np.zeros(0, np.uint8)
    if info.header_offset + 30 + name + extra + info.file_size > size:
        raise RuntimeError("PytorchStreamReader failed: a storage reaches beyond the end of the file")
    mode: Any = "r+" if options.load.mmap_flags == getattr(_mmap, "MAP_SHARED", None) else "c"
    return np.asarray(np.memmap(path, np.uint8, mode, info.header_offset + 30 + name + extra, (info.file_size,)))


def _part(whole: LoadedStorage, view: Any, views: dict[str, LoadedStorage]) -> LoadedStorage:
    """A slice of a storage, which had a name of its own before tensors had offsets."""
    if type(view) is not tuple or len(view) != 3 or not all(type(n) is int and n >= 0 for n in view[1:]):
        raise pickle.UnpicklingError("checkpoint describes a part of a storage without key, offset or size")
    name, offset, count = _text(view[0]), *view[1:]
    if name not in views:
        if offset + count > whole.numel:
            raise RuntimeError("checkpoint asks for a part of a storage that lies outside it")
        item = 1 if whole.stored is None else whole.stored.itemsize
        bytes_of = whole.array[offset * item : (offset + count) * item]
        views[name] = LoadedStorage(lambda: bytes_of, whole.stored, whole.location, count, Storage(bytes_of, external=SHARED))
    return views[name]


def read_legacy(file: BinaryIO, request: Request) -> Any:
    """Read a checkpoint in the format before zip files."""
    loaded: dict[str, LoadedStorage] = {}
    views: dict[str, LoadedStorage] = {}
    here = file.tell()
    file.seek(0, os.SEEK_END)
    total = left = file.tell() - here
    file.seek(here)

    def storage(kind: Any, key: str, location: str, numel: int, view: Any = None) -> LoadedStorage:
        nonlocal left
        key, location, numel = _checked(key, location, numel)
        known = loaded.get(key)
        if known is None:
            dtype = _storage_dtype(kind)
            # The bytes come after the pickle; tensors look at this buffer from the start.
            size = numel * (dtype.itemsize if dtype is not None else 1)
            left -= size
            if left < 0:
                raise RuntimeError(f"storage {key} has {size} bytes, more than the file: corrupt file?")
            buffer = np.zeros(size, np.uint8)
            known = loaded[key] = _loaded(lambda: buffer, dtype, location, numel, request.map_location)
            if known.location != "meta":
                buffers[key] = buffer if known._made is None else known.array
        return known.of_dtype(_storage_dtype(kind)) if view is None else _part(known, view, views)

    def load() -> Any:
        return _unpickled(file, total, storage, request)

    buffers: dict[str, np.ndarray] = {}
    magic = load()
    if type(magic) is not int or magic != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = load()
    if type(version) is not int or version != PROTOCOL_VERSION:
        raise RuntimeError("Invalid protocol version; corrupt file?")
    load()
    actions: list[Callable[[], Any]] = []
    token = waiting.set(actions)
    try:
        result = load()
    finally:
        waiting.reset(token)
    for key in _keys(load(), loaded):
        count = int.from_bytes(file.read(8), "little")
        if count != loaded[key].numel:
            raise RuntimeError(f"storage {key} has {count} elements, expected {loaded[key].numel}: corrupt file?")
        stored = loaded[key].stored
        size = count * (1 if stored is None else stored.itemsize)
        target = buffers.get(key)
        if target is None or target.nbytes != size:
            target = np.zeros(size, np.uint8)  # never read: its device has no memory
        fill(file, target, f"of storage {key}")
    for action in actions:
        action()
    return result


def _keys(keys: Any, loaded: dict[str, LoadedStorage]) -> list[str]:
    """The storages whose bytes follow, in order."""
    keys = [_text(key) for key in keys] if type(keys) is list else keys
    if type(keys) is not list or not all(type(key) is str for key in keys) or set(keys) != set(loaded):
        raise RuntimeError("the list of storages is not that of the tensors: corrupt file?")
    return keys


def read(source: Any, request: Request) -> Any:
    """Read a checkpoint from a path or an open file."""
    try:
        if isinstance(source, str | os.PathLike):
            with open(source, "rb") as file:
                return _read_open(file, os.fspath(source), request)
        check_seekable(source)
        return _read_open(source, None, request)
    except PlacingError as error:
        raise error.original from None


def check_seekable(file: Any) -> None:
    """AttributeError, with what to do, for an object that is no file or cannot go back."""
    for name in ("seek", "tell", "read"):
        if not hasattr(file, name):
            raise AttributeError(f"'{type(file).__name__}' object has no attribute '{name}'. {_FOR_FILES}")
    try:
        file.seek(file.tell())
    except io.UnsupportedOperation as error:
        raise type(error)(f"{error}. {_FOR_FILES}") from None


def is_zip(file: Any) -> bool:
    """Whether a zip archive begins at the file's position, which stays."""
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    return bool(head == b"PK\x03\x04")


def _read_open(file: BinaryIO, path: str | None, request: Request) -> Any:
    start = file.tell()
    head = file.read(1)
    file.seek(start)
    if not head:
        raise EOFError("Ran out of input")
    if is_zip(file):
        if start or not hasattr(file, "seekable"):
            return read_zip(in_memory(file), path, request)
        return read_zip(file, path, request)
    if request.mmap:
        raise RuntimeError(
            "mmap can only be used with files saved with "
            "`torch.save(_use_new_zipfile_serialization=True)`, "
            "please torch.save your checkpoint with this option in order to use mmap."
        )
    return read_legacy(file, request)
