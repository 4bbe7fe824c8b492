"""torch.distributed.fsdp.sharded_grad_scaler: scaling of losses for the wrapper of before."""

from __future__ import annotations

from .._absent import absent_class

__all__ = ["ShardedGradScaler"]

ShardedGradScaler = absent_class(__name__, "ShardedGradScaler")
