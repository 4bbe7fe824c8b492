"""torch.overrides: for libraries that intercept calls through `__torch_function__`."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

from . import _settings, _surface
from ._core.keys import PYTHON
from ._core.tensor import Tensor
from ._core.threads import threads
from ._dispatch import registry
from ._dispatch.interception import TorchFunctionMode, disabled_torch_function, without_subclasses
from ._dispatch.schema import REQUIRED

__all__ = [
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


def _intercepts(value: Any) -> bool:
    if isinstance(value, Tensor):
        return bool(value._keys & PYTHON)
    return hasattr(type(value), "__torch_function__")


def _asked(values: Iterable[Any]) -> bool:
    if _skipping.once:
        _skipping.once = False
        return False
    return any(map(_intercepts, values)) or any(isinstance(mode, TorchFunctionMode) for mode in threads.state.modes)


class _Skipping(threading.local):
    """Whether the next question on this thread is answered with no."""

    once = False


_skipping = _Skipping()


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether any argument, or a mode, wants to see the call."""
    return _asked(relevant_args)


def has_torch_function_unary(value: Any) -> bool:
    """As has_torch_function, for one argument."""
    return _asked((value,))


def has_torch_function_variadic(*values: Any) -> bool:
    """As has_torch_function, for several arguments."""
    return _asked(values)


def is_tensor_like(value: Any) -> bool:
    """Whether a value is a tensor or behaves as one."""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Ask the innermost mode, which is off meanwhile, then the arguments' types, in order, to handle a call."""
    types: list[type] = []
    for value in relevant_args:
        if _intercepts(value) and type(value) not in types:
            types.append(type(value))
    modes = threads.state.modes
    mode = next((one for one in reversed(modes) if isinstance(one, TorchFunctionMode)), None)
    if mode is not None:
        place = modes.index(mode)
        kinds = tuple(types)
        del modes[place]
        try:
            result = mode.__torch_function__(public_api, kinds, args, kwargs)
        finally:
            modes[place:place] = (mode,)
        if result is not NotImplemented:
            return result
    for kind in types:
        result = kind.__torch_function__(public_api, tuple(types), args, kwargs)  # type: ignore[attr-defined]
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"no implementation found for '{resolve_name(public_api)}' on types that implement __torch_function__: {types}"
    )


def redispatch_function(func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Call a function from inside a `__torch_function__` without being asked about it again; about what it calls, yes."""
    named = kwargs or {}
    if not any(packet.function is func for packet in registry.packets.values()):
        _skipping.once = True
        try:
            return func(*args, **named)
        finally:
            _skipping.once = False
    modes = threads.state.modes
    aside = [mode for mode in modes if isinstance(mode, TorchFunctionMode)]
    others = [mode for mode in modes if mode not in aside]
    modes[:] = others
    try:
        return disabled_torch_function(func, types, *without_subclasses(args, named))
    finally:
        modes[:] = [*modes, *aside]


def resolve_name(function: Any) -> str | None:
    """A function's name for messages."""
    name = getattr(function, "__name__", None)
    return None if name is None else f"torch.{name}"


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a function that `__torch_function__` is to see: `dispatcher(*args, **kwargs)` gives the arguments to ask."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(call, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return call

    return decorate


# ---------------------------------------------------------------- which functions are seen


@functools.cache
def _overridable() -> dict[Any, registry.Packet]:
    """The functions of ops that take tensors, which are what `__torch_function__` is asked about."""
    return {
        packet.function: packet
        for packet in registry.packets.values()
        if any(a.is_tensor or a.is_tensor_list for spec in packet.overloads.values() for a in spec.schema.arguments)
    }


def _public(home: Mapping[str, Any]) -> list[Any]:
    return [value for name, value in home.items() if isinstance(value, FunctionType) and not name.startswith("_")]


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Where functions are found, and those there that `__torch_function__` is asked about."""
    from . import fft, linalg, special  # here, because nn needs this module, and few programs the ops that these declare

    homes = {
        sys.modules[__package__]: _surface.functions(),
        Tensor: vars(Tensor),
        fft: vars(fft),
        linalg: vars(linalg),
        special: vars(special),
    }
    known = _overridable()
    return {home: [value for value in _public(found) if value in known] for home, found in homes.items()}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """The functions and methods that no `__torch_function__` is asked about as such; the ops that they call, it may be."""
    known = _overridable()
    settings = [getattr(_settings, name) for name in _settings.__all__]
    listed = [*_surface.functions().values(), *settings, *vars(Tensor).values()]
    return {value for value in listed if isinstance(value, FunctionType) and value not in known}


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The getters whose tensors stay plain where a subclass is asked: `_base`, `grad` and `_grad`."""
    getters = (vars(Tensor).get(name) for name in ("_base", "grad", "_grad"))
    return {getter.__get__ for getter in getters if getter is not None}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For every function that can be overridden, one with its signature that returns -1."""
    return {function: _stand_in(packet) for function, packet in _overridable().items()}


def _stand_in(packet: registry.Packet) -> Callable[..., Any]:
    def override(*args: Any, **kwargs: Any) -> int:
        return -1

    override.__signature__ = _signature(next(iter(packet.overloads.values())))  # type: ignore[attr-defined]
    return override


def _signature(op: registry.OpSpec) -> inspect.Signature:
    """How a function is called, by the first of its op's schemas."""
    parameters, optional = [], False
    for position, argument in enumerate(op.schema.arguments):
        kind = inspect.Parameter.KEYWORD_ONLY if argument.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        optional = optional or (argument.default is not REQUIRED and not argument.keyword_only)
        default = argument.default
        if default is REQUIRED:
            default = None if optional and not argument.keyword_only else inspect.Parameter.empty
        name = "input" if position == 0 and argument.name == "self" else argument.python_name
        parameters.append(inspect.Parameter(name, kind, default=default))
    return inspect.Signature(parameters)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of tensors, or the getter or setter of one of their properties."""
    attribute = inspect.getattr_static(Tensor, getattr(func, "__name__", ""), None)
    return attribute is func or getattr(func, "__name__", None) in ("__get__", "__set__")
