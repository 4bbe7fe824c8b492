"""torch.distributed: several processes that compute together. Stores, process groups, collectives.

Bytes are carried by MPI (the extra `distributed`); a process that is alone needs none. The parts are imported when they are
first asked for.
"""

from __future__ import annotations

from .._lazy_imports import lazy_exports as _lazy_exports

_C10D = [
    "Backend",
    "BackendConfig",
    "GroupMember",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
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
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
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
    "split_group",
    "supports_complex",
]

__all__ = [
    *_C10D,
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GradBucket",
    "HashStore",
    "PrefixStore",
    "QueueEmptyError",
    "Store",
    "TCPStore",
    "DeviceMesh",
    "init_device_mesh",
    "is_available",
    "register_rendezvous_handler",
]


def is_available() -> bool:
    """Whether the package can be used: it can, with one process without MPI, and with more where mpi4py is installed."""
    return True


__getattr__, __dir__ = _lazy_exports(
    __name__,
    (
        "_functional_collectives",
        "algorithms",
        "checkpoint",
        "constants",
        "device_mesh",
        "distributed_c10d",
        "elastic",
        "fsdp",
        "launch",
        "launcher",
        "nn",
        "optim",
        "pipelining",
        "rendezvous",
        "rpc",
        "run",
        "tensor",
    ),
    {
        ".distributed_c10d": (
            *_C10D,
            "_all_gather_base",
            "_get_process_group_name",
            "_rank_not_in_group",
            "_reduce_scatter_base",
        ),
        ".device_mesh": ("DeviceMesh", "init_device_mesh"),
        ".rendezvous": ("register_rendezvous_handler",),
        "..nn.parallel._reducer": ("GradBucket",),
        "._store.stores": ("FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"),
        "._errors": ("DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"),
    },
)
