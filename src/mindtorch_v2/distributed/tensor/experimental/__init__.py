"""torch.distributed.tensor.experimental: names that libraries import."""

from __future__ import annotations

from ..._absent import absent_function

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]

context_parallel = absent_function(__name__, "context_parallel")
implicit_replication = absent_function(__name__, "implicit_replication")
local_map = absent_function(__name__, "local_map")
register_sharding = absent_function(__name__, "register_sharding")
