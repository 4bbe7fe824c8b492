"""torch.distributed.algorithms: what communication hooks do with buckets of gradients, and processes with unequal inputs."""

from __future__ import annotations

from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
