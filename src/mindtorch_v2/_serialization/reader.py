"""Reading checkpoints: zip archives and the older format, with nothing run that was not asked for."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from .._core import dtype as dt
from .._core.device import device as Device
from .names import SAFE, StorageType, find
from .rebuild import LoadedStorage
from .writer import MAGIC_NUMBER, PROTOCOL_VERSION

MapLocation = Callable[[Any, str], Any] | str | Device | dict[str, str] | None
# Classes that the user allows in checkpoints read with weights_only=True, by (module, name).
user_safe: dict[tuple[str, str], Any] = {}


def location_of(saved: str, map_location: MapLocation) -> str:
    """Where a storage goes that was saved from `saved`."""
    if map_location is None:
        wanted = saved
    elif isinstance(map_location, dict):
        wanted = map_location.get(saved, saved)
    elif callable(map_location):
        wanted = "cpu"
    else:
        wanted = str(map_location)
    kind = wanted.partition(":")[0]
    if kind not in ("cpu", "meta"):
        raise RuntimeError(f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is "
                           "False. If you are running on a CPU-only machine, please use torch.load with "
                           "map_location=torch.device('cpu') to map your storages to the CPU.")
    return kind


class CheckpointUnpickler(pickle.Unpickler):
    """Resolves torch's names; with `weights_only` nothing but tensors, containers and what the user allowed."""

    def __init__(self, file: Any, storages: Callable[..., Any], weights_only: bool, **options: Any) -> None:
        super().__init__(file, **options)
        self._storages = storages
        self._weights_only = weights_only

    def find_class(self, module: str, name: str) -> Any:
        if not self._weights_only:
            return find(module, name)
        known = SAFE.get((module, name)) or user_safe.get((module, name))
        if known is None:
            raise pickle.UnpicklingError(
                f"Weights only load failed. Unsupported global: GLOBAL {module}.{name} was not an allowed global by default. "
                "Please use `torch.serialization.add_safe_globals` to allowlist this global if you trust this class/function, "
                "or pass weights_only=False if you trust the file.")
        return known

    def persistent_load(self, pid: Any) -> Any:
        if not isinstance(pid, tuple) or not pid or pid[0] != "storage":
            raise pickle.UnpicklingError(f"unknown persistent id in checkpoint: {pid!r}")
        return self._storages(*pid[1:])


def _storage_dtype(kind: Any) -> dt.dtype | None:
    if not isinstance(kind, StorageType):
        raise pickle.UnpicklingError(f"checkpoint names {kind!r} as a storage type")
    return kind.dtype


def read_zip(file: BinaryIO, path: str | None, map_location: MapLocation, weights_only: bool, mmap: bool,
             options: dict[str, Any]) -> Any:
    """Read a checkpoint in the present format."""
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        raise RuntimeError("PytorchStreamReader failed reading zip archive: failed finding central directory") from None
    member = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
    if member is None:
        raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")
    folder = member[: -len("data.pkl")]
    swapped = f"{folder}byteorder" in archive.namelist() and archive.read(f"{folder}byteorder") == b"big"
    loaded: dict[str, LoadedStorage] = {}

    def storage(kind: Any, key: str, location: str, numel: int) -> LoadedStorage:
        found = loaded.get(key)
        if found is None:
            dtype = _storage_dtype(kind)

            def read() -> np.ndarray:
                if mmap and path is not None:
                    return _mapped(path, archive.getinfo(f"{folder}data/{key}"))
                data = np.frombuffer(bytearray(archive.read(f"{folder}data/{key}")), np.uint8)
                if swapped and dtype is not None and dtype.itemsize > 1:
                    data = data.view(dtype.np).byteswap().view(np.uint8)
                return data

            found = loaded[key] = LoadedStorage(read, dtype, location_of(location, map_location), numel)
        return found

    return CheckpointUnpickler(io.BytesIO(archive.read(member)), storage, weights_only, **options).load()


def _mapped(path: str, info: zipfile.ZipInfo) -> np.ndarray:
    """A member of the archive as memory that is read from the file on demand; writes stay private."""
    if info.compress_type != zipfile.ZIP_STORED:
        raise RuntimeError("mmap can only be used with checkpoints that are not compressed")
    with open(path, "rb") as file:
        file.seek(info.header_offset + 26)
        name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
    if info.file_size == 0:
        return np.zeros(0, np.uint8)
    return np.asarray(np.memmap(path, np.uint8, "c", info.header_offset + 30 + name + extra, (info.file_size,)))


def read_legacy(file: BinaryIO, map_location: MapLocation, weights_only: bool, options: dict[str, Any]) -> Any:
    """Read a checkpoint in the format before zip files."""
    buffers: dict[str, np.ndarray] = {}
    loaded: dict[str, LoadedStorage] = {}

    def storage(kind: Any, key: str, location: str, numel: int, view: Any = None) -> LoadedStorage:
        if view is not None:
            raise NotImplementedError("checkpoints with storage views")
        found = loaded.get(key)
        if found is None:
            dtype = _storage_dtype(kind)
            # The bytes come after the pickle; tensors look at this buffer from the start.
            size = numel * (dtype.itemsize if dtype is not None else 1)
            buffers[key] = np.zeros(size, np.uint8)
            found = loaded[key] = LoadedStorage(lambda: buffers[key], dtype, location_of(location, map_location), numel)
        return found

    def load() -> Any:
        return CheckpointUnpickler(file, storage, weights_only, **options).load()

    magic = load()
    if magic != MAGIC_NUMBER:
        raise pickle.UnpicklingError("Invalid magic number; corrupt file?")
    version = load()
    if version != PROTOCOL_VERSION:
        raise pickle.UnpicklingError(f"Invalid protocol version: {version}")
    load()
    result = load()
    for key in load():
        itemsize = loaded[key].dtype.itemsize if loaded[key].dtype is not None else 1  # type: ignore[union-attr]
        count = int.from_bytes(file.read(8), "little")
        data = file.read(count * itemsize)
        if len(data) != buffers[key].nbytes:
            raise RuntimeError(f"storage {key} has {len(data)} bytes, expected {buffers[key].nbytes}: corrupt file?")
        buffers[key][:] = np.frombuffer(data, np.uint8)
    return result


def read(source: Any, map_location: MapLocation, weights_only: bool, mmap: bool, options: dict[str, Any]) -> Any:
    """Read a checkpoint from a path or an open file."""
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            return _read_open(file, os.fspath(source), map_location, weights_only, mmap, options)
    if not hasattr(source, "read"):
        raise AttributeError(f"'{type(source).__name__}' object has no attribute 'read'. You can only torch.load from a file "
                             "that is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from "
                             "it instead.")
    return _read_open(source, None, map_location, weights_only, False, options)


def _read_open(file: BinaryIO, path: str | None, map_location: MapLocation, weights_only: bool, mmap: bool,
               options: dict[str, Any]) -> Any:
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
