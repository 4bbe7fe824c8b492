"""torch.utils._python_dispatch: modes that see every op below autograd."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch.interception import TorchDispatchMode

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type"]


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor of a subclass can be taken apart into others and put together again."""
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """The same for a class: it has `__tensor_flatten__` and `__tensor_unflatten__`."""
    return t is not Tensor and issubclass(t, Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The dispatch modes that are active on this thread, outermost first."""
    return [mode for mode in threads.state.modes if isinstance(mode, TorchDispatchMode)]


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost dispatch mode, or None."""
    return next(reversed(_get_current_dispatch_mode_stack()), None)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a dispatch mode is active on this thread. None belongs to a compiler."""
    return bool(_get_current_dispatch_mode_stack())
