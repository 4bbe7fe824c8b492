"""The default device as a context, under torch's private names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._core.cpython import without_signals_at_entry
from .._core.device import device as _device
from .._core.device import get_default_device

__all__ = ["DeviceContext", "device_decorator", "set_device"]


class DeviceContext:
    """Tensors made inside without `device=` are made on `device`."""

    def __init__(self, device: Any) -> None:
        self.device = _device(device)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: object) -> None:
        self.device.__exit__(*exc)


def device_decorator(device: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with `device` as the default inside."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with DeviceContext(device):
            return func(*args, **kwargs)

    return call


def set_device(device: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: functions that have `device` as the default inside."""
    return functools.partial(device_decorator, _device(device))


def __getattr__(name: str) -> Any:
    if name == "CURRENT_DEVICE":  # None for the CPU, as long as no other was chosen
        chosen = get_default_device()
        return None if chosen.type == "cpu" else chosen
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
