"""torch.distributed.rpc: calls of functions in other processes, which are not supported."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["init_rpc", "is_available", "remote", "rpc_async", "rpc_sync", "shutdown"]


def is_available() -> bool:
    """Whether functions can be called in other processes: they cannot."""
    return False


def init_rpc(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Join the processes that call each other: not supported."""
    raise NotImplementedError(f"torch.distributed.rpc.init_rpc({name!r}): there are no communication backends")


def _no_agent(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")


remote = rpc_async = rpc_sync = shutdown = _no_agent
