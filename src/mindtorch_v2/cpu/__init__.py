"""torch.cpu: the calls that device-neutral scripts make, for the one device that is always there."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .._core.cpython import without_signals_at_entry
from . import amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
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
    """Whether the CPU is ready to be used: always."""
    return True


def device_count() -> int:
    """How many CPU devices there are: one, whatever its number of cores."""
    return 1


def current_device() -> str:
    """The name of the device in use: "cpu", as there are no indices."""
    return "cpu"


def set_device(device: Any) -> None:
    """Choose the CPU to use: there is one."""


def synchronize(device: Any = None) -> None:
    """Wait for work to finish: ops have finished when they return."""


class Stream:
    """A stream of work, as scripts for any device make them: ops run one after the other either way."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Wait for another stream, whose work is done."""

    def record_event(self) -> None:
        """Mark a place: there is nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """Wait for a mark: the work before it is done."""


class Event:
    """A mark in a stream: all work before it is done."""

    def query(self) -> bool:
        """Whether the work before the mark is done: always."""
        return True

    def record(self, stream: Any = None) -> None:
        """Mark the work so far, which is done already."""

    def synchronize(self) -> None:
        """Return at once: the work before the mark is done."""

    def wait(self, stream: Any = None) -> None:
        """Have a stream wait for the mark."""


_default_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The stream that work goes to."""
    return _current[-1]


_current: list[Stream] = [_default_stream]


class StreamContext(AbstractContextManager[None]):
    """Inside, `current_stream()` is the given one."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        current = _current
        current += (current[-1] if self.stream is None else self.stream,)

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        del _current[-1]


def stream(stream: Stream | None) -> StreamContext:
    """Send work to a stream inside a block."""
    return StreamContext(stream)
