"""torch.distributed.distributed_c10d: process groups and collectives under the name of the module where torch has them."""

from __future__ import annotations

from typing import Any, NewType

from . import _groups
from ._absent import absent_class, absent_function
from ._backends import (
    Backend,
    BackendConfig,
    get_default_backend_for_device,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_ucc_available,
    is_xccl_available,
)
from ._collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    supports_complex,
)
from ._debugging import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from ._groups import (
    GroupMember,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    is_torchelastic_launched,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from ._messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from ._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from ._process_group import ProcessGroup
from ._reduce_ops import ReduceOp
from ._store.stores import PrefixStore, Store
from ._work import Work
from .constants import default_pg_timeout

__all__ = [
    "AllToAllOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "Backend",
    "BackendConfig",
    "BarrierOptions",
    "BroadcastOptions",
    "DebugLevel",
    "GatherOptions",
    "GroupMember",
    "GroupName",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "ProcessGroupGloo",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "Store",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_backend_available",
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
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "record_comm",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "shrink_group",
    "split_group",
    "supports_complex",
]


# Private names that libraries and torch's own tests take from here.
_get_default_group = _groups.default_group
_get_all_pg_configs = _groups.group_configs
_all_gather_base = all_gather_into_tensor
_reduce_scatter_base = reduce_scatter_tensor
reduce_op = ReduceOp  # the name of long ago
GroupName = NewType("GroupName", str)

# What methods of torch's ProcessGroup take; those here take the reduction, root or timeout itself.
AllToAllOptions = absent_class(__name__, "AllToAllOptions")
AllreduceCoalescedOptions = absent_class(__name__, "AllreduceCoalescedOptions")
AllreduceOptions = absent_class(__name__, "AllreduceOptions")
BarrierOptions = absent_class(__name__, "BarrierOptions")
BroadcastOptions = absent_class(__name__, "BroadcastOptions")
GatherOptions = absent_class(__name__, "GatherOptions")
ReduceOptions = absent_class(__name__, "ReduceOptions")
ReduceScatterOptions = absent_class(__name__, "ReduceScatterOptions")
ScatterOptions = absent_class(__name__, "ScatterOptions")
ProcessGroupGloo = absent_class(__name__, "ProcessGroupGloo")  # MPI carries what gloo does in torch
record_comm = absent_function(__name__, "record_comm")
shrink_group = absent_function(__name__, "shrink_group")


def __getattr__(name: str) -> Any:
    """`_pg_map`: the groups that this process is in, each with its backend and its store."""
    if name == "_pg_map":
        return {each: (get_backend(each), each.get_group_store()) for each in _groups.world.groups.values()}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _get_process_group_name(pg: ProcessGroup) -> str:
    return pg.group_name


def _get_default_store() -> Store:
    return _get_default_group().get_group_store()


def _rank_not_in_group(group: object) -> bool:
    return not _groups.is_member(group)
