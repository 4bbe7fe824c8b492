"""torch.overrides: for libraries that intercept calls through `__torch_function__`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ._core.keys import PYTHON
from ._core.tensor import Tensor
from ._dispatch.interception import TorchFunctionMode

__all__ = ["TorchFunctionMode", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
           "has_torch_function_variadic", "is_tensor_like", "resolve_name"]


def _intercepts(value: Any) -> bool:
    if isinstance(value, Tensor):
        return bool(value._keys & PYTHON)
    return hasattr(type(value), "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether any argument wants to see the call."""
    return any(map(_intercepts, relevant_args))


def has_torch_function_unary(value: Any) -> bool:
    """As has_torch_function, for one argument."""
    return _intercepts(value)


def has_torch_function_variadic(*values: Any) -> bool:
    """As has_torch_function, for several arguments."""
    return any(map(_intercepts, values))


def is_tensor_like(value: Any) -> bool:
    """Whether a value is a tensor or behaves as one."""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Ask the arguments' types, in order, to handle a call."""
    types: list[type] = []
    for value in relevant_args:
        if _intercepts(value) and type(value) not in types:
            types.append(type(value))
    for kind in types:
        result = kind.__torch_function__(public_api, tuple(types), args, kwargs)  # type: ignore[attr-defined]
        if result is not NotImplemented:
            return result
    raise TypeError(f"no implementation found for '{resolve_name(public_api)}' on types that implement "
                    f"__torch_function__: {types}")


def resolve_name(function: Any) -> str | None:
    """A function's name for messages."""
    name = getattr(function, "__name__", None)
    return None if name is None else f"torch.{name}"
