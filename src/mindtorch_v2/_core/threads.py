"""The state of each thread: grad mode, the autograd counter, active modes, and the slots of a recording."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

# Functions that pause and resume a tracer: the second one is sys.setprofile, bound to the tracer's function.
TracerSwitch = tuple[Callable[[], None], partial[None]]
ModuleCalls = tuple[list[int], dict[int, int], Callable[[Any], int], Callable[[], int], Iterator[int]]


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
        "optimizer_stepped",
        "paused_tracer",
        "saved_tensor_hooks",
        "sequence",
        "span",
        "thread_token",
        "tracer_pause_factory",
        "tracer_switch",
    )

    def __init__(self) -> None:
        # Whether ops record nodes. False: the program switched that off; None: the runtime did, for ops of its own.
        self.grad_enabled: bool | None = True
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
        # Module calls of a single recording: the list that those two add to, the modules' numbers by id(), the functions that
        # give an id and the time, and an iterator of the time.
        self.module_log: ModuleCalls | None = None
        # Called with each optimizer whose step has been made.
        self.optimizer_stepped: Callable[[Any], None] | None = None
        # Python-level interception (function and dispatch modes, autocast), innermost last.
        self.modes: list[Any] = []
        self.autocast: Any = None
        self.saved_tensor_hooks: list[Any] = []
        # Refers to an object that ends with the thread.
        self.thread_token: weakref.ref[_Token] | None = None

    @property
    def records(self) -> bool:
        """Whether rows of its ops are recorded."""
        return self.append_row is not None or self.append_row_traced is not None or self.capture_by_op is not None

    @property
    def has_ended(self) -> bool:
        """Whether its thread has ended, although something (a recording) still refers to the state."""
        return self.thread_token is not None and self.thread_token() is None


# Functions that are called with each new state, on its thread.
started: list[Callable[[ThreadState], None]] = []
_alive: weakref.WeakSet[ThreadState] = weakref.WeakSet()


def states() -> list[ThreadState]:
    """The states of all threads that have one and still run."""
    return [state for state in list(_alive) if not state.has_ended]


class _Token:
    """Held by the thread alone."""

    __slots__ = ("__weakref__",)


class _Threads(threading.local):
    """`threads.state` is the calling thread's ThreadState; threading.local runs __init__ once per thread."""

    def __init__(self) -> None:
        self.state = ThreadState()
        self.token = _Token()
        self.state.thread_token = weakref.ref(self.token)
        _alive.add(self.state)
        for callback in started:
            callback(self.state)


threads = _Threads()
