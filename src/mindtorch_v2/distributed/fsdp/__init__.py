"""torch.distributed.fsdp: `fully_shard`; the wrapper class of before is a name for `isinstance`."""

from __future__ import annotations

import enum
from typing import Any

from ...nn import Module
from .._absent import absent_class, absent_function
from ._fully_shard import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, UnshardHandle, fully_shard

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "CPUOffloadPolicy",
    "DataParallelMeshDims",
    "FSDPModule",
    "FlatParameter",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
    "share_comm_ctx",
]


class ShardingStrategy(enum.Enum):
    """What of a module the wrapper shards."""

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class BackwardPrefetch(enum.Enum):
    """When the wrapper gathers the next parameters."""

    BACKWARD_PRE, BACKWARD_POST = range(1, 3)


class StateDictType(enum.Enum):
    """The form of the wrapper's state_dict()."""

    FULL_STATE_DICT, LOCAL_STATE_DICT, SHARDED_STATE_DICT = range(1, 4)


class OptimStateKeyType(enum.Enum):
    """Whether the state of the wrapper's optimizer has names or numbers."""

    PARAM_NAME, PARAM_ID = range(1, 3)


class FullyShardedDataParallel(Module):
    """The wrapper of before FSDP2, which is not supported: no module is one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """NotImplementedError: fully_shard shards a module."""
        raise NotImplementedError("FullyShardedDataParallel: use torch.distributed.fsdp.fully_shard")


class _Options:
    """Options of the wrapper, as they were given."""

    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)


class MixedPrecision(_Options):
    """The wrapper's dtypes."""


class CPUOffload(_Options):
    """Where the wrapper keeps parameters."""


class StateDictConfig(_Options):
    """How the wrapper's state_dict() is made."""


class FullStateDictConfig(StateDictConfig):
    """Of whole tensors."""


class LocalStateDictConfig(StateDictConfig):
    """Of flat parts."""


class ShardedStateDictConfig(StateDictConfig):
    """Of parts."""


class OptimStateDictConfig(_Options):
    """How the state of the wrapper's optimizer is made."""


class FullOptimStateDictConfig(OptimStateDictConfig):
    """Of whole tensors."""


class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Of flat parts."""


class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Of parts."""


class StateDictSettings(_Options):
    """Both of them."""


DataParallelMeshDims = absent_class(__name__, "DataParallelMeshDims")
register_fsdp_forward_method = absent_function(__name__, "register_fsdp_forward_method")
share_comm_ctx = absent_function(__name__, "share_comm_ctx")
FlatParameter = absent_class(__name__, "FlatParameter")
