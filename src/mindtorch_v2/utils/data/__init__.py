"""torch.utils.data: datasets, samplers, DataLoader."""

from __future__ import annotations

from . import distributed
from .collate import default_collate, default_convert
from .dataloader import DataLoader, _SingleProcessDataLoaderIter
from .dataset import ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split
from .distributed import DistributedSampler
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from .worker import get_worker_info

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_SingleProcessDataLoaderIter",
    "default_collate",
    "default_convert",
    "distributed",
    "get_worker_info",
    "random_split",
]
