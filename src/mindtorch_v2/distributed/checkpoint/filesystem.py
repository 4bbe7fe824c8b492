"""torch.distributed.checkpoint.filesystem: a checkpoint as a folder, with a file for each process and `.metadata` over all.

The layout is torch's; the metadata is JSON, so that reading it runs no code.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

from ..._core.files import write_whole
from ...serialization import load, save
from .._absent import absent_class
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    StorageInfo,
    TensorProperties,
    TensorStorageMetadata,
)

__all__ = ["FileSystem", "FileSystemBase", "FileSystemReader", "FileSystemWriter", "SerializationFormat"]

_METADATA = ".metadata"
_VERSION = 1


class FileSystemWriter:
    """Writes a checkpoint into a folder."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
    ) -> None:
        """`thread_count` and `per_thread_copy_ahead` must be left as they are: one thread writes."""
        if not single_file_per_rank or thread_count != 1 or cache_staged_state_dict:
            raise NotImplementedError("FileSystemWriter(single_file_per_rank=False, thread_count=, cache_staged_state_dict=)")
        self.path, self._sync, self._overwrite = Path(path), sync_files, overwrite

    def write(self, rank: int, items: list[tuple[str, tuple[int, ...], Any]]) -> dict[tuple[str, tuple[int, ...]], StorageInfo]:
        """Write a process's parts; where each of them is."""
        self.path.mkdir(parents=True, exist_ok=True)
        name = f"__{rank}_0.distcp"
        places = {}
        with (self.path / name).open("wb") as file:
            for key, offsets, value in items:
                stream = io.BytesIO()
                save(value, stream)
                at = file.tell()
                file.write(stream.getbuffer())
                places[key, offsets] = StorageInfo(name, at, file.tell() - at)
            if self._sync:
                file.flush()
                os.fsync(file.fileno())
        return places

    def check(self) -> None:
        """Refuse a folder that has a checkpoint, if it is not to be overwritten."""
        if not self._overwrite and (self.path / _METADATA).exists():
            raise RuntimeError(f"Checkpoint already exists and self.overwrite={self._overwrite}.")

    def finish(self, metadata: Metadata) -> None:
        """Write the metadata: the checkpoint is whole from then on."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self.path / _METADATA, [json.dumps(_encoded(metadata)).encode()])


class FileSystemReader:
    """Reads a checkpoint from a folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def read_metadata(self) -> Metadata:
        """What is in the checkpoint."""
        try:
            return _decoded(json.loads((self.path / _METADATA).read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            raise NotImplementedError(
                f"{self.path} was written by PyTorch: load it there, and save it with torch.save"
            ) from None

    def read(self, info: StorageInfo) -> Any:
        """The value at a place."""
        with (self.path / info.relative_path).open("rb") as file:
            file.seek(info.offset)
            data = file.read(info.length)
        if len(data) != info.length:
            raise RuntimeError(f"{self.path / info.relative_path} ends too early: {len(data)} of {info.length} bytes")
        return load(io.BytesIO(data), weights_only=False)


def _encoded(metadata: Metadata) -> dict[str, Any]:
    entries = {}
    for name, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, TensorStorageMetadata):
            chunks = [[list(chunk.offsets), list(chunk.sizes)] for chunk in entry.chunks]
            entries[name] = {"dtype": entry.properties.dtype, "size": list(entry.size), "chunks": chunks}
        else:
            entries[name] = {}
    places = [[*key, info.relative_path, info.offset, info.length] for key, info in metadata.storage_data.items()]
    return {"version": _VERSION, "entries": entries, "paths": metadata.planner_data, "places": places}


def _decoded(data: dict[str, Any]) -> Metadata:
    if data.get("version") != _VERSION:
        raise RuntimeError(f"a checkpoint of version {data.get('version')!r}; this one reads {_VERSION}")
    entries: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
    for name, entry in data["entries"].items():
        if "size" in entry:
            chunks = [ChunkStorageMetadata(tuple(offsets), tuple(sizes)) for offsets, sizes in entry["chunks"]]
            entries[name] = TensorStorageMetadata(TensorProperties(entry["dtype"]), tuple(entry["size"]), chunks)
        else:
            entries[name] = BytesStorageMetadata()
    places = {(name, tuple(offsets)): StorageInfo(*where) for name, offsets, *where in data["places"]}
    return Metadata(entries, {name: tuple(path) for name, path in data["paths"].items()}, places)


FileSystem = absent_class(__name__, "FileSystem")
FileSystemBase = absent_class(__name__, "FileSystemBase")
SerializationFormat = absent_class(__name__, "SerializationFormat")
