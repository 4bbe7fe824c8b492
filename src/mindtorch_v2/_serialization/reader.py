"""Reading checkpoints: zip archives and the older format, with nothing run that was not asked for."""

from __future__ import annotations

import inspect
import io
import os
import pickle
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from .._core import dtype as dt
from .._core.device import device as Device
from .._dispatch import backends
from .names import StorageType, find
from .rebuild import LoadedStorage, waiting
from .restricted import RestrictedUnpickler
from .writer import MAGIC_NUMBER, PROTOCOL_VERSION

MapLocation = Callable[[Any, str], Any] | str | Device | dict[str, str] | None
_MOST_RATIO, _FREE_BYTES = 250, 64 << 20
_DAMAGED_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    KeyError,
    ValueError,
    OverflowError,
    RuntimeError,
)
# Classes that the user allows in checkpoints read with weights_only=True, by (module, name).
user_safe: dict[tuple[str, str], Any] = {}


def location_of(saved: str, map_location: MapLocation) -> str:
    """The location, such as "cpu" or "npu:0", for a storage that was saved from `saved`."""
    if map_location is None:
        wanted = saved
    elif isinstance(map_location, dict):
        wanted = map_location.get(saved, saved)
    elif callable(map_location):
        wanted = "cpu"
    else:
        wanted = str(map_location)
    kind = wanted.partition(":")[0]
    if kind == "npu":
        try:
            backends.load("npu")
            return str(backends.resolved(Device(wanted)))
        except AssertionError:
            pass  # no such device: raised below
    if kind not in ("cpu", "meta"):
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    return kind


class SourceChangeWarning(Warning):
    """The source of a module's class differs from the source that was saved with the object."""


class CheckpointUnpickler(pickle.Unpickler):
    """Resolves every name, torch's to this package's: for files that the user trusts."""

    def __init__(self, file: Any, storages: Callable[..., Any], **options: Any) -> None:
        super().__init__(file, **options)
        self._storages = storages

    def find_class(self, module: str, name: str) -> Any:
        return find(module, name)

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module":  # a class, with its file and text
            return _compared(*pid[1:])
        if not isinstance(pid, tuple) or not pid or pid[0] != "storage":
            raise pickle.UnpicklingError(f"unknown persistent id in checkpoint: {pid!r}")
        return self._storages(*pid[1:])


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


def _unpickled(file: Any, size: int, storages: Callable[..., Any], weights_only: bool, options: dict[str, Any]) -> Any:
    if weights_only:
        return RestrictedUnpickler(file, size, storages, user_safe, **options).load()
    return CheckpointUnpickler(file, storages, **options).load()


def _checked(key: Any, location: Any, numel: Any) -> None:
    if type(key) is not str or type(location) is not str or type(numel) is not int or numel < 0:
        raise pickle.UnpicklingError("checkpoint describes a storage without key, place or size")


def _storage_dtype(kind: Any) -> dt.dtype | None:
    if not isinstance(kind, StorageType):
        raise pickle.UnpicklingError(f"checkpoint names a {type(kind).__name__} as a storage type")
    return kind.dtype


class _Archive:
    """The members of a zip file, unpacked to no more than a checkpoint could hold. RuntimeError: it is damaged."""

    def __init__(self, file: BinaryIO) -> None:
        self._size = file.seek(0, os.SEEK_END)
        # torch compresses nothing; in an archive that was compressed afterwards the entries are weights, which hardly shrink.
        self._left = max(_FREE_BYTES, _MOST_RATIO * self._size)
        try:
            self._zip = zipfile.ZipFile(file)
        except _DAMAGED_ZIP:
            raise RuntimeError("PytorchStreamReader failed reading zip archive: failed finding central directory") from None
        self.names = self._zip.namelist()

    def info(self, name: str) -> zipfile.ZipInfo:
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name.partition('/')[2]}: file not found") from None
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # Python unpacks others without bounds
            raise RuntimeError(f"PytorchStreamReader failed reading file {name.partition('/')[2]}: compression not supported")
        if not 0 <= info.header_offset < self._size:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name.partition('/')[2]}: it is outside the file")
        return info

    def read(self, name: str) -> bytes:
        info = self.info(name)
        self._left -= info.file_size
        if self._left < 0:
            raise RuntimeError(f"the checkpoint unpacks to more than {_MOST_RATIO} times its size")
        try:
            data = self._zip.read(info)
        except _DAMAGED_ZIP as error:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name.partition('/')[2]}: {error}") from None
        if len(data) != info.file_size:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name.partition('/')[2]}: it breaks off")
        return data


def read_zip(
    file: BinaryIO, path: str | None, map_location: MapLocation, weights_only: bool, mmap: bool, options: dict[str, Any]
) -> Any:
    """Read a checkpoint in the present format."""
    archive = _Archive(file)
    member = next((n for n in archive.names if n.endswith("/data.pkl")), None)
    if member is None:
        raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")
    folder = member[: -len("data.pkl")]
    swapped = f"{folder}byteorder" in archive.names and archive.read(f"{folder}byteorder") == b"big"
    loaded: dict[str, LoadedStorage] = {}

    def storage(kind: Any, key: str, location: str, numel: int) -> LoadedStorage:
        _checked(key, location, numel)
        known = loaded.get(key)
        if known is None:
            dtype = _storage_dtype(kind)

            def read() -> np.ndarray:
                if mmap and path is not None:
                    return _mapped(path, archive.info(f"{folder}data/{key}"))
                data = np.frombuffer(bytearray(archive.read(f"{folder}data/{key}")), np.uint8)
                if swapped and dtype is not None and dtype.itemsize > 1:
                    data = data.view(dtype.np).byteswap().view(np.uint8)
                return data

            known = loaded[key] = LoadedStorage(read, dtype, location_of(location, map_location), numel)
        return known

    pickled = archive.read(member)
    return _unpickled(io.BytesIO(pickled), len(pickled), storage, weights_only, options)


def _mapped(path: str, info: zipfile.ZipInfo) -> np.ndarray:
    """A member of the archive as memory that is read from the file on demand; writes stay private."""
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
    return np.asarray(np.memmap(path, np.uint8, "c", info.header_offset + 30 + name + extra, (info.file_size,)))


def read_legacy(file: BinaryIO, map_location: MapLocation, weights_only: bool, options: dict[str, Any]) -> Any:
    """Read a checkpoint in the format before zip files."""
    buffers: dict[str, np.ndarray] = {}
    loaded: dict[str, LoadedStorage] = {}
    here = file.tell()
    total = left = file.seek(0, os.SEEK_END) - here
    file.seek(here)

    def storage(kind: Any, key: str, location: str, numel: int, view: Any = None) -> LoadedStorage:
        nonlocal left
        _checked(key, location, numel)
        if view is not None:
            raise NotImplementedError("checkpoints with storage views")
        known = loaded.get(key)
        if known is None:
            dtype = _storage_dtype(kind)
            # The bytes come after the pickle; tensors look at this buffer from the start.
            size = numel * (dtype.itemsize if dtype is not None else 1)
            left -= size
            if left < 0:
                raise RuntimeError(f"storage {key} has {size} bytes, more than the file: corrupt file?")
            buffers[key] = np.zeros(size, np.uint8)
            known = loaded[key] = LoadedStorage(lambda: buffers[key], dtype, location_of(location, map_location), numel)
        return known

    def load() -> Any:
        return _unpickled(file, total, storage, weights_only, options)

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
        data = file.read(buffers[key].nbytes)
        if len(data) != buffers[key].nbytes:
            raise RuntimeError(f"storage {key} has {len(data)} bytes, expected {buffers[key].nbytes}: corrupt file?")
        buffers[key][:] = np.frombuffer(data, np.uint8)
    for action in actions:
        action()
    return result


def _keys(keys: Any, loaded: dict[str, LoadedStorage]) -> list[str]:
    """The storages whose bytes follow, in order."""
    if type(keys) is not list or not all(type(key) is str for key in keys) or set(keys) != set(loaded):
        raise RuntimeError("the list of storages is not that of the tensors: corrupt file?")
    return keys


def read(source: Any, map_location: MapLocation, weights_only: bool, mmap: bool, options: dict[str, Any]) -> Any:
    """Read a checkpoint from a path or an open file."""
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            return _read_open(file, os.fspath(source), map_location, weights_only, mmap, options)
    if not hasattr(source, "read"):
        raise AttributeError(
            f"'{type(source).__name__}' object has no attribute 'read'. You can only torch.load from a file "
            "that is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from "
            "it instead."
        )
    return _read_open(source, None, map_location, weights_only, False, options)


def _read_open(
    file: BinaryIO, path: str | None, map_location: MapLocation, weights_only: bool, mmap: bool, options: dict[str, Any]
) -> Any:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if not head:
        raise EOFError("Ran out of input")
    if head == b"PK\x03\x04":
        whole = file if start == 0 else io.BytesIO(file.read())
        return read_zip(whole, path, map_location, weights_only, mmap, options)
    if mmap:
        raise RuntimeError("mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True)`")
    return read_legacy(file, map_location, weights_only, options)
