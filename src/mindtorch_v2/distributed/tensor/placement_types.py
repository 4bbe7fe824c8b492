"""torch.distributed.tensor.placement_types: the kinds of placement."""

from __future__ import annotations

from . import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class _StridedShard(Shard):
    """Parts of parts, in which no tensor is cut here."""
