"""no_grad, enable_grad, set_grad_enabled, inference_mode: context managers and decorators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.cpython import without_signals_at_entry
from .._core.restoring import carry_out
from .._core.threads import threads
from . import inference
from .decorator_context import DecoratorContextManager
from .running import multithreading


class _GradMode(DecoratorContextManager):
    """Sets grad mode inside a block, or inside every call of a decorated function."""

    _mode = False
    # What the open blocks of this object replaced, innermost first: (mode, those around).
    _previous: Any = ()

    def __enter__(self) -> None:
        state = threads.state
        self._previous = (state.grad_enabled, self._previous)
        state.grad_enabled = self._mode

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        threads.state.grad_enabled, self._previous = self._previous


def _decorator_form(cls: type, function: Any) -> Any:
    """A new mode, or the decorated function where the class itself is used as a decorator, without parentheses."""
    mode: Any = object.__new__(cls)
    if function is None:
        return mode
    mode.__init__()
    return mode(function)


class no_grad(_GradMode):
    """A block in which ops record no nodes. Also a decorator, with or without parentheses."""

    __module__ = "mindtorch_v2.autograd.grad_mode"

    def __new__(cls, orig_func: Any = None) -> Any:
        return _decorator_form(cls, orig_func)

    def __init__(self, orig_func: Any = None) -> None:
        pass


class enable_grad(_GradMode):
    """A block in which ops record nodes, also inside no_grad. Also a decorator, with or without parentheses."""

    __module__ = "mindtorch_v2.autograd.grad_mode"

    _mode = True

    def __new__(cls, orig_func: Any = None) -> Any:
        return _decorator_form(cls, orig_func)

    def __init__(self, orig_func: Any = None) -> None:
        pass


class set_grad_enabled(_GradMode):
    """Sets grad mode at once; as a context manager, restores the previous mode at the end."""

    __module__ = "mindtorch_v2.autograd.grad_mode"

    def __init__(self, mode: bool) -> None:
        self._mode = bool(mode)
        self._before = threads.state.grad_enabled
        threads.state.grad_enabled = self._mode

    def __enter__(self) -> None:
        self._previous = (self._before, self._previous)
        threads.state.grad_enabled = self._mode

    def clone(self) -> _GradMode:
        return set_grad_enabled(self._mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        threads.state.grad_enabled = self._before
        return super().__call__(function)


class inference_mode(_GradMode):
    """As no_grad, for results that autograd never uses: using one in a recorded computation is an error."""

    __module__ = "mindtorch_v2.autograd.grad_mode"

    def __new__(cls, mode: Any = True) -> Any:
        return _decorator_form(cls, None if isinstance(mode, bool) else mode)

    def __init__(self, mode: Any = True) -> None:
        self._on = mode if isinstance(mode, bool) else True

    def __enter__(self) -> None:
        state = threads.state
        inside = inference.Inside() if self._on else None
        if inside is not None:
            try:
                inside.enter()
            except BaseException:
                carry_out([inside.leave])
                raise
        self._previous = ((state.grad_enabled, state.inference, inside), self._previous)
        state.grad_enabled = not self._on
        state.inference = self._on

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        state = threads.state
        (state.grad_enabled, state.inference, inside), self._previous = self._previous
        if inside is not None:
            carry_out([inside.leave])

    def clone(self) -> _GradMode:
        return inference_mode(self._on)


def is_grad_enabled() -> bool:
    """Whether ops on this thread record nodes."""
    return bool(threads.state.grad_enabled)


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside inference_mode."""
    return threads.state.inference


def is_multithreading_enabled() -> bool:
    """The setting of `set_multithreading_enabled`. Each backward pass runs on the thread that calls it either way."""
    return multithreading.enabled


class set_multithreading_enabled:
    """Stores the setting for `is_multithreading_enabled`; each backward pass runs on the calling thread either way."""

    __module__ = "mindtorch_v2.autograd.grad_mode"

    def __init__(self, mode: bool) -> None:
        self.prev = multithreading.enabled
        self.mode = mode
        multithreading.enabled = mode

    def __enter__(self) -> None:
        pass

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        multithreading.enabled = self.prev

    def clone(self) -> set_multithreading_enabled:
        return set_multithreading_enabled(self.mode)
