"""torch.utils.data: datasets, samplers, DataLoader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._lazy_imports import lazy_exports as _lazy_exports
from . import _utils, distributed
from ._utils.collate import default_collate, default_convert
from ._utils.worker import get_worker_info
from .dataloader import DataLoader, _DatasetKind, _SingleProcessDataLoaderIter
from .dataset import ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split
from .distributed import DistributedSampler
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

if TYPE_CHECKING:
    from . import datapipes
    from .datapipes.datapipe import IterDataPipe, MapDataPipe, functional_datapipe

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "_SingleProcessDataLoaderIter",
    "_utils",
    "default_collate",
    "default_convert",
    "distributed",
    "functional_datapipe",
    "get_worker_info",
    "random_split",
]

# Imported at their first use: few programs have data pipes.
__getattr__, __dir__ = _lazy_exports(
    __name__, ("datapipes",), {".datapipes.datapipe": ("IterDataPipe", "MapDataPipe", "functional_datapipe")}
)
