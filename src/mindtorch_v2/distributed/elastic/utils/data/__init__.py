"""torch.distributed.elastic.utils.data: data of jobs that begin again."""

from __future__ import annotations

from .cycling_iterator import CyclingIterator
from .elastic_distributed_sampler import ElasticDistributedSampler

__all__ = ["CyclingIterator", "ElasticDistributedSampler"]
