"""torch.distributed._composable: where `fully_shard` was before."""

from __future__ import annotations

from ..fsdp import fully_shard

__all__ = ["fully_shard"]
