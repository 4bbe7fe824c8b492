"""torch.distributed.algorithms.ddp_comm_hooks: hooks for `DistributedDataParallel.register_comm_hook`."""

from __future__ import annotations

from . import default_hooks

__all__ = ["default_hooks"]
