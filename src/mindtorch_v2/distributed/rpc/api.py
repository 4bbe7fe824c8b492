"""torch.distributed.rpc.api: calls of functions in other processes, which are not supported."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from .._absent import absent_class, absent_function

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


def is_available() -> bool:
    """Whether functions can be called in other processes: they cannot."""
    return False


def init_rpc(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Join the processes that call each other: not supported."""
    raise NotImplementedError(f"torch.distributed.rpc.init_rpc({name!r}): there are no communication backends")


def _no_agent(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")


def _require_initialized(function: Callable[..., Any]) -> Callable[..., NoReturn]:
    """A function that needs other processes to call, as libraries decorate theirs: it says that there are none."""
    return functools.wraps(function)(lambda *args, **kwargs: _no_agent())


get_worker_info = remote = rpc_async = rpc_sync = shutdown = _all_gather = _no_agent
AllGatherStates = absent_class(__name__, "AllGatherStates")
BackendType = absent_class(__name__, "BackendType")
RRef = absent_class(__name__, "RRef")
TensorPipeRpcBackendOptions = absent_class(__name__, "TensorPipeRpcBackendOptions")
method_factory = absent_function(__name__, "method_factory")
new_method = absent_function(__name__, "new_method")
