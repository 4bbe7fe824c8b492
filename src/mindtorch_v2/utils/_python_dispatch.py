"""torch.utils._python_dispatch: modes that see every op below autograd."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch.interception import TorchDispatchMode
from ._aliasing import AliasInfo, SchemaInfo, get_alias_info, return_and_correct_aliasing

__all__ = [
    "AliasInfo",
    "BaseTorchDispatchMode",
    "SchemaInfo",
    "TorchDispatchMode",
    "TraceableWrapperSubclass",
    "any_torch_dispatch_mode_on_stack",
    "get_alias_info",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that passes every op on as it is: a base for those that look at some."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class TraceableWrapperSubclass(Protocol):
    """A subclass whose tensors are taken apart into others, and put together again of others by that name."""

    def __tensor_flatten__(self) -> tuple[Sequence[str], object]:
        """The names of the attributes that are tensors, and what else is needed."""
        ...

    @staticmethod
    def __tensor_unflatten__(
        inner_tensors: Mapping[str, Any], metadata: object, outer_size: Sequence[int], outer_stride: Sequence[int]
    ) -> Tensor:
        """A tensor of the class of those by name, with a size and strides."""
        ...


TensorWithFlatten = TraceableWrapperSubclass  # its former name


def transform_subclass(t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None) -> Any:
    """A tensor of the same subclass whose inner tensors are those that `callback` makes of a name and the tensor there.

    `outer_size` and `outer_stride` are those of the result, if they are others than now. AssertionError if it has not.
    """
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, metadata = t.__tensor_flatten__()
    made = type(t).__tensor_unflatten__({name: callback(name, getattr(t, name)) for name in names}, metadata, size, stride)
    for word, wanted, got in (("shape", size, made.shape), ("stride", stride, made.stride())):
        if got != wanted:
            raise AssertionError(
                f"Expected return value from {type(t)}__tensor_unflatten__() to have {word} equal to {wanted}, but got: {got}"
            )
    return made


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


def any_torch_dispatch_mode_on_stack() -> bool:
    """Whether a mode is active that wants to see what a compiler would see."""
    return any(not mode.is_infra_mode() and not mode.ignore_compile_internals() for mode in _get_current_dispatch_mode_stack())


def is_in_any_mode_without_ignore_compile_internals() -> bool:
    """Whether a mode is active that does not ask to be left alone by compilers."""
    return any(not mode.ignore_compile_internals() for mode in _get_current_dispatch_mode_stack())
