"""torch.distributed, as it is before any process group exists: scripts ask whether to use it, and do not."""

from __future__ import annotations

from typing import Any, NoReturn

from .._lazy_imports import lazy_exports as _lazy_exports

__all__ = [
    "Backend",
    "ProcessGroup",
    "ReduceOp",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "get_backend",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
]


class ReduceOp:
    """How values of several processes become one."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)


class Backend(str):
    """The name of a communication backend."""

    UNDEFINED, GLOO, NCCL, UCC, MPI = "undefined", "gloo", "nccl", "ucc", "mpi"


class ProcessGroup:
    """Processes that talk to each other, for annotations: none can be made."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError("torch.distributed.ProcessGroup: there are no communication backends")


class group:
    """Process groups by name: the one of all processes, which does not exist before `init_process_group`."""

    WORLD = None


def is_available() -> bool:
    """Whether processes can form groups: they cannot, and libraries leave out what needs them."""
    return False


def is_initialized() -> bool:
    """Whether there is a process group: never."""
    return False


def is_gloo_available() -> bool:
    """Whether the Gloo backend exists."""
    return False


def is_nccl_available() -> bool:
    """Whether the NCCL backend exists."""
    return False


def is_mpi_available() -> bool:
    """Whether the MPI backend exists."""
    return False


def is_ucc_available() -> bool:
    """Whether the UCC backend exists."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether a launcher of several processes started this one."""
    return False


def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> NoReturn:
    """Join a process group: not supported."""
    raise NotImplementedError(f"torch.distributed.init_process_group(backend={backend!r}): there are no communication backends")


def _no_group(*args: Any, **kwargs: Any) -> NoReturn:
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def destroy_process_group(group: Any = None) -> None:
    """Leave a process group: there is none to leave."""
    raise AssertionError("Process group cannot be None")


all_gather = all_reduce = barrier = broadcast = get_backend = _no_group
all_gather_object = broadcast_object_list = _no_group
get_rank = get_world_size = _no_group

__getattr__, __dir__ = _lazy_exports(__name__, ("device_mesh", "optim", "tensor"))
