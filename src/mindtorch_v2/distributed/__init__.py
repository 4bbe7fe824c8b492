"""torch.distributed, as it is before any process group exists: scripts ask whether to use it, and do not."""

from __future__ import annotations

import enum
from typing import Any, ClassVar, NoReturn

from .._lazy_imports import lazy_exports as _lazy_exports

__all__ = [
    "Backend",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]


class _RedOpType(enum.IntEnum):
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"


class ReduceOp:
    """How values of several processes become one: `ReduceOp.SUM` and others."""

    RedOpType = _RedOpType
    SUM = _RedOpType.SUM
    AVG = _RedOpType.AVG
    PRODUCT = _RedOpType.PRODUCT
    MIN = _RedOpType.MIN
    MAX = _RedOpType.MAX
    BAND = _RedOpType.BAND
    BOR = _RedOpType.BOR
    BXOR = _RedOpType.BXOR
    PREMUL_SUM = _RedOpType.PREMUL_SUM


class Backend(str):
    """The name of a communication backend."""

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE = "undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}


class ProcessGroup:
    """Processes that talk to each other, for annotations: none can be made."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError("torch.distributed.ProcessGroup: there are no communication backends")


class group:
    """Process groups by name: the one of all processes, which does not exist before `init_process_group`."""

    WORLD = None


class GroupMember:
    """What a process is to a group that it may not be in."""

    WORLD = None
    NON_GROUP_MEMBER = -100


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


def is_xccl_available() -> bool:
    """Whether the XCCL backend exists."""
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


all_gather = all_gather_coalesced = all_gather_into_tensor = all_gather_object = _no_group
all_reduce = all_reduce_coalesced = all_to_all = all_to_all_single = barrier = monitored_barrier = _no_group
broadcast = broadcast_object_list = gather = gather_object = reduce = reduce_scatter = reduce_scatter_tensor = _no_group
scatter = scatter_object_list = send = send_object_list = recv = recv_object_list = isend = irecv = _no_group
get_backend = get_rank = get_world_size = get_process_group_ranks = new_group = _no_group

__getattr__, __dir__ = _lazy_exports(__name__, ("constants", "device_mesh", "optim", "rpc", "tensor"))
