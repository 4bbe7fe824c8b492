"""Selective checkpointing: a policy says which ops' results are kept for backward instead of being computed again."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.interception import TorchDispatchMode
from .._dispatch.overload_api import OpOverload, OpOverloadPacket, ops

# Ops that no policy is asked about: how often they run is not the same when a function is called again.
SAC_IGNORED_OPS = {ops.aten.detach.default}


class CheckpointPolicy(enum.Enum):
    """What is to happen to the result of an op; "prefer" leaves the choice to other systems: there are none."""

    __module__ = "mindtorch_v2.utils.checkpoint"

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4


class SelectiveCheckpointContext:
    """What a policy is told besides the op and its arguments: the op's result. It is asked in the first computation alone."""

    __module__ = "mindtorch_v2.utils.checkpoint"

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


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


# What there is of a call whose result is computed again, and of one whose result has been given back.
_COMPUTED_AGAIN, _GIVEN_BACK = object(), object()

_NOT_THE_SAME = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that changed "
    "between forward and backward."
)


class _Keeping(TorchDispatchMode):
    """The first computation: keeps what the policy says, by op and the number of its call."""

    def __init__(self, policy: Policy, kept: dict[Any, list[Any]]) -> None:
        self.policy = policy
        self.kept = kept

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func not in SAC_IGNORED_OPS:
            context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
            keeps = _keeps(self.policy(context, func, *args, **kwargs))
            self.kept.setdefault(func, []).append((_detached(result), _versions(result)) if keeps else _COMPUTED_AGAIN)
        return result


class _Remembering(TorchDispatchMode):
    """The second computation: gives back what was kept of the same call."""

    def __init__(self, kept: dict[Any, list[Any]], may_change: bool) -> None:
        self.kept = kept
        self.may_change = may_change
        self.calls: Counter[Any] = Counter()

    def __enter__(self) -> Any:
        self.calls.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in SAC_IGNORED_OPS:
            return func(*args, **(kwargs or {}))
        number = self.calls[func]
        self.calls[func] += 1
        kept = self.kept.get(func)
        if kept is None:
            raise RuntimeError(f"{func} encountered during backward but not found in storage. {_NOT_THE_SAME}")
        if number >= len(kept):
            raise RuntimeError(
                f"{func} invocation index {number} encountered during backward but not found in storage. {_NOT_THE_SAME}"
            )
        found = kept[number]
        if found is _GIVEN_BACK:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if found is _COMPUTED_AGAIN:
            return func(*args, **(kwargs or {}))
        kept[number] = _GIVEN_BACK
        result, versions = found
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
    return _Keeping(policy, kept), _Remembering(kept, allow_cache_entry_mutation)
