"""torch.distributed.optim: optimizers over several processes."""

from __future__ import annotations

from .._absent import absent_class
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

DistributedOptimizer = absent_class(__name__, "DistributedOptimizer")
PostLocalSGDOptimizer = absent_class(__name__, "PostLocalSGDOptimizer")
