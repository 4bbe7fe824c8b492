"""torch.distributed.checkpoint: state of several processes in one folder, read back by any number of them."""

from __future__ import annotations

from .api import CheckpointException
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .state_dict_loader import load
from .state_dict_saver import async_save, save
from .stateful import Stateful

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "FileSystemReader",
    "FileSystemWriter",
    "Metadata",
    "Stateful",
    "TensorStorageMetadata",
    "async_save",
    "load",
    "save",
]
