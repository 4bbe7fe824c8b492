"""ElasticDistributedSampler: the rest of an epoch, for a job that begins again with other processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ....._surface import Generator, randperm
from .....utils.data import DistributedSampler

__all__ = ["ElasticDistributedSampler"]


class ElasticDistributedSampler(DistributedSampler):
    """A DistributedSampler of a data set from `start_index` on, always shuffled."""

    def __init__(self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, start_index: int = 0) -> None:
        super().__init__(dataset=dataset, num_replicas=num_replicas, rank=rank)
        if start_index >= len(dataset):
            raise ValueError(f"Start index {start_index} should be less than dataset size {len(dataset)}")
        self.start_index = start_index
        self.num_samples = math.ceil((len(dataset) - start_index) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[Any]:
        generator = Generator().manual_seed(self.epoch)
        indices = randperm(len(self.dataset) - self.start_index, generator=generator).add(self.start_index).tolist()
        indices += indices[: self.total_size - len(indices)]
        return iter(indices[self.rank : self.total_size : self.num_replicas])
