"""torch.cpu: the calls that device-neutral scripts make, for the one device that is always there."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from . import amp

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is a CPU."""
    return True


def is_initialized() -> bool:
    """Whether it is ready."""
    return True


def device_count() -> int:
    """How many CPU devices there are: one, whatever its number of cores."""
    return 1


def current_device() -> str:
    """The CPU's name."""
    return "cpu"


def set_device(device: Any) -> None:
    """Choose the CPU to use: there is one."""


def synchronize(device: Any = None) -> None:
    """Wait for work to finish: ops have finished when they return."""


def stream(stream: Any) -> AbstractContextManager[None]:
    """A stream of work: ops run one after the other either way."""
    return nullcontext()
