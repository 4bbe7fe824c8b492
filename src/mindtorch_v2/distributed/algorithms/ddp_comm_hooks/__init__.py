"""torch.distributed.algorithms.ddp_comm_hooks: hooks for `DistributedDataParallel.register_comm_hook`."""

from __future__ import annotations

import enum
from functools import partial
from typing import Any

from . import default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "default_hooks", "powerSGD_hook", "register_ddp_comm_hook"]


def _power_sgd(hook: Any, rank: int) -> Any:
    """A hook of PowerSGD, with a state of its own for each model."""

    def register(model: Any, state: Any) -> None:
        model.register_comm_hook(powerSGD_hook.PowerSGDState(process_group=state, matrix_approximation_rank=rank), hook)

    return register


def _plain(hook: Any) -> Any:
    return lambda model, state: model.register_comm_hook(state, hook)


class DDPCommHookType(enum.Enum):
    """Hooks by name, for `register_ddp_comm_hook`."""

    ALLREDUCE = partial(_plain(default_hooks.allreduce_hook))
    FP16_COMPRESS = partial(_plain(default_hooks.fp16_compress_hook))
    BF16_COMPRESS = partial(_plain(default_hooks.bf16_compress_hook))
    POWER_SGD = partial(_power_sgd(powerSGD_hook.powerSGD_hook, 1))
    POWER_SGD_RANK2 = partial(_power_sgd(powerSGD_hook.powerSGD_hook, 2))
    BATCHED_POWER_SGD = partial(_power_sgd(powerSGD_hook.batched_powerSGD_hook, 1))
    BATCHED_POWER_SGD_RANK2 = partial(_power_sgd(powerSGD_hook.batched_powerSGD_hook, 2))


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Have a model average its gradients by a hook; `state` is the process group."""
    comm_hook_type.value(model, state)
