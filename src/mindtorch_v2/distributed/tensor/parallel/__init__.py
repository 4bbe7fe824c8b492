"""torch.distributed.tensor.parallel: names that libraries import; modules are not cut along tensors' dims."""

from __future__ import annotations

from ..._absent import absent_class, absent_function

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]

ParallelStyle = absent_class(__name__, "ParallelStyle")
ColwiseParallel = absent_class(__name__, "ColwiseParallel")
RowwiseParallel = absent_class(__name__, "RowwiseParallel")
SequenceParallel = absent_class(__name__, "SequenceParallel")
PrepareModuleInput = absent_class(__name__, "PrepareModuleInput")
PrepareModuleInputOutput = absent_class(__name__, "PrepareModuleInputOutput")
PrepareModuleOutput = absent_class(__name__, "PrepareModuleOutput")
parallelize_module = absent_function(__name__, "parallelize_module")
loss_parallel = absent_function(__name__, "loss_parallel")
