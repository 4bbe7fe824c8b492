"""torch.multiprocessing: Python's multiprocessing, which hands tensors over without a copy: their memory becomes shared."""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403

from .._core import shared_memory as _shared_memory
from .reductions import init_reductions
from .spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_multiprocessing.__all__,
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


def get_all_sharing_strategies() -> set[str]:
    """The ways in which memory can be shared with other processes."""
    return _shared_memory.strategies()


def get_sharing_strategy() -> str:
    """How memory is shared: "file_descriptor", which leaves nothing behind, or "file_system", by names in /dev/shm."""
    return _shared_memory.get_strategy()


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose the way for memory that is shared from now on; AssertionError for one that is not there."""
    _shared_memory.set_strategy(new_strategy)


init_reductions()
