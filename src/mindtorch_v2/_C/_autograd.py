"""torch._C._autograd: what programs ask of the engine and of the running profile under private names."""

from __future__ import annotations

from collections.abc import Sequence

from .._autograd.nodes.node import InputMetadata as _InputMetadata
from .._autograd.nodes.saved_hooks import hooks_disabled_message as _saved_tensors_hooks_get_disabled_error_message
from .._autograd.nodes.saved_tensor import SavedTensor
from .._autograd.running import running
from .._core.tensor import Tensor, storage_of
from ..autograd.profiler import (
    DeviceType,
    _disable_profiler,
    _KinetoEvent,
    _profiler_enabled,
    _profiler_type,
    _ProfilerResult,
    _record_function_with_args_enter,
    _record_function_with_args_exit,
    _supported_activities,
    kineto_available,
)

__all__ = [
    "DeviceType",
    "SavedTensor",
    "_InputMetadata",
    "_KinetoEvent",
    "_ProfilerResult",
    "_disable_profiler",
    "_profiler_enabled",
    "_profiler_type",
    "_record_function_with_args_enter",
    "_record_function_with_args_exit",
    "_saved_tensors_hooks_get_disabled_error_message",
    "_supported_activities",
    "kineto_available",
]


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether saved_tensors_hooks may be entered: not inside `disable_saved_tensors_hooks`."""
    return _saved_tensors_hooks_get_disabled_error_message() is None


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the backward pass under way keeps its graph; False outside of one."""
    return bool(running.tasks) and running.tasks[-1].retain_graph


def _unsafe_set_version_counter(tensors: Sequence[Tensor], versions: Sequence[int]) -> None:
    """Set the versions of tensors, so that writes into them in the meantime are not seen."""
    for tensor, version in zip(tensors, versions, strict=True):
        storage_of(tensor).version = version
