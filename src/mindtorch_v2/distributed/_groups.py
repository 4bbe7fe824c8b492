"""Process groups: joining the one of all processes, making others of it, and asking about them."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from .._dispatch import communications
from ._backends import Backend, BackendConfig, require_engine
from ._engines import hccl as _hccl
from ._engines import mpi as _mpi
from ._engines.alone import Alone
from ._engines.engine import Communicator
from ._engines.fake import FakeCommunicator
from ._process_group import DEFAULT_TIMEOUT, ProcessGroup
from ._store import places
from ._store.stores import HashStore, PrefixStore, Store
from .rendezvous import rendezvous

_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


class _World:
    """The groups of this process."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.engines: dict[str, Communicator] = {}  # of all processes, by kind of device
        self.groups: dict[str, ProcessGroup] = {}  # by name, the default group first
        self.configs: dict[str, BackendConfig] = {}
        self.made = 0  # groups ever made; each process counts all of them, so that their names agree


world = _World()


class _GroupMember(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802  torch's name
        """The group of all processes."""
        return world.default

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:  # noqa: N802
        world.default = group


class GroupMember(metaclass=_GroupMember):
    """What a process is to a group that it may not be in."""

    NON_GROUP_MEMBER = -100


class group(metaclass=_GroupMember):
    """`group.WORLD` is the group of all processes, None before `init_process_group`."""


# ---------------------------------------------------------------------- joining and leaving


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any | None = None,
    device_id: Any | None = None,
    _ranks: list[int] | None = None,
) -> None:
    """Join the group of all processes, which is then the default of every collective.

    The processes meet by `init_method` (`env://` by default, `tcp://host:port`, `file:///path`) or by a store. Under mpiexec or
    srun nothing of this is needed: MPI knows the ranks.
    """
    if world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    if pg_options is not None:
        raise NotImplementedError("init_process_group(pg_options=): options of NCCL, which does not exist here")
    if timeout is None:
        timeout = DEFAULT_TIMEOUT
    elif not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    config = BackendConfig(Backend(backend) if backend else Backend.UNDEFINED)
    name = config.main()
    if store is None and init_method is None and "MASTER_ADDR" not in os.environ and name != Backend.FAKE and _mpi.launched():
        store, rank, world_size = _met_by_mpi()
    elif store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    shared = places.of_group(store)
    world.engines = _engines(config, shared, rank, world_size, timeout)
    world.default = _add_group(
        world.engines, range(world_size), config, group_name or _next_name(), places.GROUP, shared, timeout
    )


def _met_by_mpi() -> tuple[Store, int, int]:
    """The ranks that mpiexec or srun gave, and a store of this process: MPI itself carries what the others need."""
    require_engine()
    job = _mpi.start_launched()
    return HashStore(), job.rank, job.size


def _engines(config: BackendConfig, store: Store, rank: int, size: int, timeout: timedelta) -> dict[str, Communicator]:
    """The engines of all processes, by the kind of device that they serve."""
    engines: dict[str, Communicator] = {}
    if config.main() != Backend.HCCL:
        engines["cpu"] = _communicator(config.main(), store, rank, size, timeout)
    if config.has_hccl:
        reason = _hccl.why_unavailable()
        if reason is not None:
            raise RuntimeError(f"The backend hccl cannot be used: {reason}")
        engines["npu"] = _hccl.start(PrefixStore("hccl", store), range(size), rank, timeout)
    return engines


def _communicator(name: str, store: Store, rank: int, size: int, timeout: timedelta) -> Communicator:
    if name == Backend.FAKE:
        return FakeCommunicator(rank, size)
    if size == 1:
        return Alone()
    require_engine()
    return _mpi.start(store, rank, size, timeout)


def _next_name() -> str:
    world.made += 1
    return str(world.made - 1)


def _add_group(
    engines: Mapping[str, Communicator],
    ranks: Sequence[int],
    config: BackendConfig,
    name: str,
    desc: str,
    store: Store,
    timeout: timedelta,
) -> ProcessGroup:
    made = ProcessGroup(engines, ranks, backend=config.main(), name=name, desc=desc, store=store, timeout=timeout)
    world.groups[name] = made
    world.configs[name] = config
    return made


def destroy_process_group(group: Any = None) -> None:
    """Leave a group; without an argument, all of them. MPI stays, so that groups can be made again."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    leaving = world.default if group is None else group
    if leaving is None:
        raise AssertionError("Process group cannot be None")
    if leaving.group_name not in world.groups:
        raise ValueError("Invalid process group specified or has been destroyed")
    if leaving is world.default:
        for each in reversed(list(world.groups.values())):
            each.shutdown()
        world.default, world.engines = None, {}
        world.made = 0
        world.groups.clear()
        world.configs.clear()
    else:
        leaving.shutdown()
        del world.groups[leaving.group_name], world.configs[leaving.group_name]


# ---------------------------------------------------------------------- groups of some processes


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any | None = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any | None = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some processes. All processes call it, in the same order; those that are not in it get NON_GROUP_MEMBER.

    With `use_local_synchronization` only the group's own processes call it.
    """
    parent = default_group()
    if pg_options is not None:
        raise NotImplementedError("new_group(pg_options=): options of NCCL, which does not exist here")
    chosen = _checked_ranks(ranks, parent, sort_ranks)
    config = BackendConfig(Backend(backend)) if backend else world.configs[parent.group_name]
    if not set(_kinds(config)) <= set(world.engines):
        raise RuntimeError(f"The backends {config} of a group need those of init_process_group, which are {parent.name()}")
    if timeout is None:
        timeout = parent._timeout
    if use_local_synchronization:
        if parent.rank() not in chosen:
            return None
        name = hashlib.sha1("_".join(map(str, chosen)).encode()).hexdigest() + f"_{_next_name()}"
    else:
        name = _next_name()
    if parent.rank() not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    key = int(name.rpartition("_")[2])
    engines = {kind: world.engines[kind].subgroup(chosen, key) for kind in _kinds(config)}
    store = PrefixStore(f"{name}/", parent.get_group_store())
    return _add_group(engines, chosen, config, name, group_desc or "undefined", store, timeout)


def _kinds(config: BackendConfig) -> list[str]:
    """The kinds of devices that have an engine."""
    kinds = [] if config.main() == Backend.HCCL else ["cpu"]
    return [*kinds, "npu"] if config.has_hccl else kinds


def _checked_ranks(ranks: Sequence[int] | None, parent: ProcessGroup, sort_ranks: bool) -> list[int]:
    size = parent.size()
    if ranks is None:
        return list(range(size))
    chosen = list(ranks)
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"ranks list must not contain duplicate entries, got {chosen}")
    if len(chosen) > size:
        raise ValueError("the new group's world size should be less or equal to the world size set by init_process_group")
    for rank in chosen:
        if not 0 <= rank < size:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    return sorted(chosen) if sort_ranks else chosen


def new_subgroups(
    group_size: int | None = None,
    group: Any | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any | None = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of `group_size` processes each, by rank: the one of this process, and all."""
    if group_size is None:
        raise ValueError("new_subgroups(): group_size must be given: its default is the number of CUDA devices, which is 0")
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    size = get_world_size(group)
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    of_parent = get_process_group_ranks(group)
    parts = [of_parent[at : at + group_size] for at in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any | None = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of the ranks listed: the one of this process, and all. No rank may be in two."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    subgroups: list[Any] = []
    current: Any = None
    seen: dict[int, list[int]] = {}
    for number, ranks in enumerate(ranks_per_subgroup_list):
        made = new_group(list(ranks), timeout, backend, pg_options, group_desc=group_desc)
        subgroups.append(made)
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {list(ranks)}")
            seen[rank] = list(ranks)
            if rank == get_rank():
                current = subgroups[number]
    return current, subgroups


def split_group(
    parent_pg: Any | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any | None = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """The part of a group that this process is in, None if in none; `split_ranks` lists the group's ranks of each part."""
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = default_group() if parent_pg is None else parent_pg
    for part in split_ranks:
        if not part:
            raise ValueError("the split group cannot be empty")
        if len(part) > parent.size():
            raise ValueError("the split group's size should be less or equal to the world_size set by init_process_group")
        if len(set(part)) != len(part):
            raise ValueError("the split group cannot have duplicate ranks")
    mine = None
    for part in split_ranks:
        made = new_group([parent._ranks[rank] for rank in sorted(part)], timeout, backend, pg_options, group_desc=group_desc)
        if parent.rank() in part:
            mine = made
    return mine


# ---------------------------------------------------------------------- questions


def is_initialized() -> bool:
    """Whether `init_process_group` was called, and `destroy_process_group` not since."""
    return world.default is not None


def default_group() -> ProcessGroup:
    """The group of all processes; ValueError before `init_process_group`."""
    if world.default is None:
        raise ValueError(_NOT_INITIALIZED)
    return world.default


def group_or_default(group: Any) -> Any:
    """The group of an argument `group`, in which None is the one of all processes."""
    return default_group() if group is None else group


def is_member(group: Any) -> bool:
    """Whether this process is in the group of an argument `group`."""
    return group is None or group != GroupMember.NON_GROUP_MEMBER


def warn_not_in_group(what: str) -> None:
    """Say that a collective was called on a process that is not in the group, where nothing happens."""
    rank = -1 if world.default is None else world.default.rank()
    warnings.warn(f"Running {what} on global rank {rank} which does not belong to the given group.", stacklevel=3)


def get_rank(group: Any = None) -> int:
    """This process's rank in a group, -1 if it is not in it."""
    return group_or_default(group).rank() if is_member(group) else -1


def get_world_size(group: Any = None) -> int:
    """The number of processes of a group, -1 if this one is not in it."""
    return group_or_default(group).size() if is_member(group) else -1


def get_backend(group: Any = None) -> str:
    """The name of a group's backend."""
    if not is_member(group):
        raise ValueError("Invalid process group specified")
    return str(group_or_default(group).name())


def get_backend_config(group: Any = None) -> str:
    """The backends of a group by device, as text."""
    return repr(world.configs[group_or_default(group).group_name])


def get_pg_count() -> int:
    """How many groups were made since `init_process_group`."""
    return world.made


def get_process_group_ranks(group: Any) -> list[int]:
    """The ranks, among all processes, of a group's processes."""
    return list(group_or_default(group)._ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank among all processes of a rank of a group."""
    ranks = group_or_default(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return int(ranks[group_rank])


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in a group of a rank among all processes."""
    ranks = group_or_default(group)._ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return int(ranks.index(global_rank))


def rank_in_group(group: Any, global_rank: int | None, group_rank: int | None) -> int:
    """The rank in the group of arguments such as `src` and `group_src`, of which one must be given."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    # A rank that is none, which the backend refuses, stays as it is.
    return global_rank if group is default_group() else get_group_rank(group, global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's rank on its machine, from the variable LOCAL_RANK that launchers set."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, assuming "
        "you are not running in a multi-device context and want the code to run locally instead."
    )


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def _describe_groups() -> dict[str, Any] | None:
    """A trace's `distributedInfo`; None while this process is in no group."""
    if world.default is None:
        return None
    return {
        "backend": get_backend(),
        "rank": get_rank(),
        "world_size": get_world_size(),
        "pg_count": get_pg_count(),
        "pg_config": group_configs(),
    }


communications.describe_groups = _describe_groups


def group_configs() -> list[dict[str, Any]]:
    """The groups that this process is in, as a trace's `distributedInfo` lists them."""
    return [
        {
            "pg_name": group.group_name,
            "pg_desc": group.group_desc,
            "backend_config": repr(world.configs[group.group_name]),
            "pg_size": group.size(),
            "ranks": list(group._ranks),
        }
        for group in world.groups.values()
    ]
