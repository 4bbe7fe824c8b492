"""torch.distributed.checkpoint.metadata: what is in a checkpoint, and in which file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._absent import absent_class

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


@dataclass
class ChunkStorageMetadata:
    """A part of a tensor: where it begins, and its sizes."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass
class TensorProperties:
    """What the parts of a tensor have in common."""

    dtype: str


@dataclass
class TensorStorageMetadata:
    """A tensor and its parts."""

    properties: TensorProperties
    size: tuple[int, ...]
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Anything else, pickled."""


@dataclass
class StorageInfo:
    """Where something is: a file in the folder, and a range of its bytes."""

    relative_path: str
    offset: int
    length: int


@dataclass
class Metadata:
    """All names of a checkpoint, and where each part is. A part's key is its name and, of a tensor, its offsets."""

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # the path in nested dicts, by name
    storage_data: dict[tuple[str, tuple[int, ...]], StorageInfo] = field(default_factory=dict)


MetadataIndex = absent_class(__name__, "MetadataIndex")
StorageMeta = absent_class(__name__, "StorageMeta")
