"""Communication between processes, as those see it that listen: a recording learns of each collective and message.

A communication is told when it begins, on the thread that begins it. It ends on any thread, or never, so a listener gets an
object whose `ended` is filled later. While nothing listens, beginning one reads one global.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from .observer import InputOutline, observers_lock

Listener = Callable[["Communication"], None]


class Communication:
    """One collective or message of this process: what it is, and when it began and ended on `observer.clock`."""

    __slots__ = ("describe", "ended", "inputs", "is_async", "lane", "name", "started")

    def __init__(self, name: str, lane: str, inputs: InputOutline, describe: Callable[[Communication], dict[str, Any]]) -> None:
        """`lane` names the process group and its engine; `describe` gives the arguments that a trace has of it."""
        self.name, self.lane, self.inputs, self.describe = name, lane, inputs, describe
        self.is_async = True
        self.ended: int | None = None
        self.started = perf_counter_ns()

    def end(self) -> None:
        """Note that it has ended now, well or not."""
        if self.ended is None:
            self.ended = perf_counter_ns()


class _Listeners:
    every: tuple[Listener, ...] = ()


listeners = _Listeners()


def add_listener(listener: Listener) -> None:
    """Have a function called with each communication that begins, on the thread that begins it."""
    with observers_lock:
        listeners.every = (*listeners.every, listener)


def remove_listener(listener: Listener) -> None:
    """Undo one `add_listener`; a listener that is not there is no error."""
    with observers_lock:
        listeners.every = tuple(each for each in listeners.every if each != listener)


def begin(
    name: str, lane: str, inputs: Callable[[], InputOutline], describe: Callable[[Communication], dict[str, Any]]
) -> Communication | None:
    """Tell the listeners that a communication begins; None if there are none."""
    if not listeners.every:
        return None
    communication = Communication(name, lane, inputs(), describe)
    for listener in listeners.every:
        listener(communication)
    return communication


# The process group's part of a trace: a function that `distributed` puts here, None while this process is in no group.
describe_groups: Callable[[], dict[str, Any] | None] = lambda: None  # noqa: E731
