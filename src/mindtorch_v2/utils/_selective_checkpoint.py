"""Selective checkpointing: a policy says which ops' results are kept for backward instead of being computed again."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.interception import TorchDispatchMode
from .._dispatch.overload_api import OpOverload, OpOverloadPacket


class CheckpointPolicy(enum.Enum):
    """What is to happen to the result of an op; "prefer" leaves the choice to other systems: there are none."""

    __module__ = "mindtorch_v2.utils.checkpoint"

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4


class SelectiveCheckpointContext:
    """What a policy is told besides the op and its arguments."""

    __module__ = "mindtorch_v2.utils.checkpoint"

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


Policy = Callable[..., CheckpointPolicy]


def _keeps(choice: Any) -> bool:
    if isinstance(choice, bool):
        return choice
    if choice is CheckpointPolicy.MUST_CPU_OFFLOAD:
        raise NotImplementedError("CheckpointPolicy.MUST_CPU_OFFLOAD")
    return choice in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


def _detached(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    return type(value)(_detached(v) for v in value) if type(value) in (list, tuple) else value


def _versions(value: Any) -> list[int]:
    return [v._version for v in (value if isinstance(value, list | tuple) else (value,)) if isinstance(v, Tensor)]


class _Keeping(TorchDispatchMode):
    """The first computation: keeps what the policy says."""

    def __init__(self, policy: Policy, kept: dict[Any, list[Any]]) -> None:
        self.policy = policy
        self.kept = kept

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if _keeps(self.policy(SelectiveCheckpointContext(is_recompute=False), func, *args, **kwargs)):
            self.kept.setdefault(func, []).append((_detached(result), _versions(result)))
        return result


class _Remembering(TorchDispatchMode):
    """The second computation: gives back what was kept, in the same order."""

    def __init__(self, policy: Policy, kept: dict[Any, list[Any]], may_change: bool) -> None:
        self.policy = policy
        self.kept = kept
        self.may_change = may_change

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _keeps(self.policy(SelectiveCheckpointContext(is_recompute=True), func, *args, **kwargs)):
            return func(*args, **kwargs)
        kept = self.kept.get(func)
        if kept is not None and not kept:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if not kept:
            raise RuntimeError(f"{func} encountered during backward, but not found in storage")
        result, versions = kept.pop(0)
        if not self.may_change and versions != _versions(result):
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return result


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> tuple[Any, Any]:
    """The contexts for `checkpoint(context_fn=...)` that keep the results of the ops that a policy (or list) names."""
    if isinstance(policy_fn_or_list, list):
        listed = policy_fn_or_list
        for op in listed:
            if not isinstance(op, OpOverload):
                hint = (
                    "Please update the OpOverloadPacket to a specific OpOverload. For example, if you have "
                    "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}."
                    + (f" {hint}" if isinstance(op, OpOverloadPacket) else "")
                )

        def policy(ctx: SelectiveCheckpointContext, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in listed else CheckpointPolicy.PREFER_RECOMPUTE
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[Any, list[Any]] = {}
    return _Keeping(policy, kept), _Remembering(policy, kept, allow_cache_entry_mutation)
