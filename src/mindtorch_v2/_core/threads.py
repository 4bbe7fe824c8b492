"""The state of each thread: grad mode, the autograd counter, active modes, and the slots of a recording."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

TracerSwitch = tuple[Callable[[], None], Callable[[], None]]


class ThreadState:
    """The state of one thread. Entries of ops read it only while something observes or a tensor requires grad."""

    __slots__ = (
        "__weakref__",
        "append_row",
        "append_row_traced",
        "autocast",
        "capture_by_op",
        "grad_enabled",
        "inference",
        "modes",
        "module_enter",
        "module_exit",
        "module_log",
        "paused_tracer",
        "saved_tensor_hooks",
        "sequence",
        "span",
        "tracer_pause_factory",
        "tracer_switch",
    )

    def __init__(self) -> None:
        self.grad_enabled = True
        self.inference = False
        # The number that the next autograd node of this thread gets.
        self.sequence = 0
        # Recording: at most one of these three is set (see _dispatch.observer, also for the tracer's).
        self.append_row: Callable[[tuple[int, ...]], None] | None = None
        self.append_row_traced: Callable[[tuple[int, ...]], None] | None = None
        self.capture_by_op: Mapping[int, Callable[..., None]] | None = None
        # Makes an object that an op keeps until it ends; a tracer of Python calls is paused for as long as there is one.
        self.tracer_pause_factory: Callable[[], Any] | None = None
        # The functions that pause and resume a tracer of Python calls; `paused_tracer` is the same pair while it is paused.
        self.tracer_switch: TracerSwitch | None = None
        self.paused_tracer: TracerSwitch | None = None
        self.span: Callable[..., None] | None = None
        self.module_enter: Callable[[Any], None] | None = None
        self.module_exit: Callable[[Any], None] | None = None
        # Module calls of a single recording: the list that those two add to, the modules' numbers by id(), and the functions
        # that give an id and the time.
        self.module_log: tuple[list[int], dict[int, int], Callable[[Any], int], Callable[[], int]] | None = None
        # Python-level interception (function and dispatch modes, autocast), innermost last.
        self.modes: list[Any] = []
        self.autocast: Any = None
        self.saved_tensor_hooks: list[Any] = []


# Functions that are called with each new state, on its thread.
started: list[Callable[[ThreadState], None]] = []
_alive: weakref.WeakSet[ThreadState] = weakref.WeakSet()


def states() -> list[ThreadState]:
    """The states of all threads that have one and still run."""
    return list(_alive)


class _Threads(threading.local):
    """`threads.state` is the calling thread's ThreadState; threading.local runs __init__ once per thread."""

    def __init__(self) -> None:
        self.state = ThreadState()
        _alive.add(self.state)
        for callback in started:
            callback(self.state)


threads = _Threads()
