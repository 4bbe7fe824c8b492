"""torch.distributed.algorithms._checkpoint.checkpoint_wrapper: names; torch.utils.checkpoint computes activations again."""

from __future__ import annotations

import enum

from ..._absent import absent_class, absent_function

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]


class CheckpointImpl(enum.Enum):
    """The two ways of torch.utils.checkpoint."""

    REENTRANT, NO_REENTRANT = 1, 2


CheckpointWrapper = absent_class(__name__, "CheckpointWrapper")
OffloadWrapper = absent_class(__name__, "OffloadWrapper")
apply_activation_checkpointing = absent_function(__name__, "apply_activation_checkpointing")
checkpoint_wrapper = absent_function(__name__, "checkpoint_wrapper")
offload_wrapper = absent_function(__name__, "offload_wrapper")
ActivationWrapper = absent_class(__name__, "ActivationWrapper")
