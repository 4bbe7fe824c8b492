"""torch.distributed.optim: optimizers over several processes."""

from __future__ import annotations

from .._absent import absent_class, absent_function
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer", "as_functional_optim"]

DistributedOptimizer = absent_class(__name__, "DistributedOptimizer")
as_functional_optim = absent_function(__name__, "as_functional_optim")
