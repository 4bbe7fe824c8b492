"""torch.distributed.checkpoint: state of several processes in one folder, read back by any number of them."""

from __future__ import annotations

from .._absent import absent_class
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .optimizer import load_sharded_optimizer_state_dict
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import async_save, save, save_state_dict
from .stateful import Stateful

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter",
    "LoadPlan",
    "LoadPlanner",
    "Metadata",
    "QuantizedHuggingFaceStorageReader",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "Stateful",
    "StorageReader",
    "StorageWriter",
    "TensorStorageMetadata",
    "WriteItem",
    "async_save",
    "load",
    "load_sharded_optimizer_state_dict",
    "load_state_dict",
    "save",
    "save_state_dict",
]

LoadPlan = absent_class(__name__, "LoadPlan")
LoadPlanner = absent_class(__name__, "LoadPlanner")
QuantizedHuggingFaceStorageReader = absent_class(__name__, "QuantizedHuggingFaceStorageReader")
ReadItem = absent_class(__name__, "ReadItem")
SavePlan = absent_class(__name__, "SavePlan")
SavePlanner = absent_class(__name__, "SavePlanner")
StorageReader = absent_class(__name__, "StorageReader")
StorageWriter = absent_class(__name__, "StorageWriter")
WriteItem = absent_class(__name__, "WriteItem")
