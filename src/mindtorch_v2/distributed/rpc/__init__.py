"""torch.distributed.rpc: names that libraries import; no function is called in another process."""

from __future__ import annotations

from .api import (
    AllGatherStates,
    BackendType,
    RRef,
    TensorPipeRpcBackendOptions,
    get_worker_info,
    init_rpc,
    is_available,
    method_factory,
    new_method,
    remote,
    rpc_async,
    rpc_sync,
    shutdown,
)

__all__ = [
    "AllGatherStates",
    "BackendType",
    "RRef",
    "TensorPipeRpcBackendOptions",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "method_factory",
    "new_method",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]
