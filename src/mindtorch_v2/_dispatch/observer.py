"""The slot where an observer of ops may sit. The dispatcher knows this room and no profiler.

While nothing watches, an op reads one global (`entry_globals.observers_active`) and goes on. While something does, each
op, once it has ended or failed, hands its row to its thread's observer, of which there is at most one:
`ThreadState.append_row` takes `(op id, start, end, sequence number)`; `ThreadState.append_row_traced` takes the same where somebody
also listens to Python calls; `ThreadState.capture_by_op[op id]` is called with start, end, sequence number and the op's arguments.

Whoever listens to Python calls and wants to hear nothing of an op's inside puts a function into `ThreadState.tracer_pause_factory`. An op
takes it out, calls it when it begins, and lets go of what it returned when its frame ends: the object's end is the sign.
Longer insides, such as the walk of a backward pass, run as `call_untraced(function, ...)`, and call what belongs to the user as
`call_user_code(function, ...)`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from time import perf_counter_ns as clock
from types import FrameType, TracebackType
from typing import Any

from .._core.cpython import is_only_thread
from .._core.threads import ThreadState, TracerSwitch, threads
from . import entry_globals

__all__ = [
    "BACKWARD",
    "COPY",
    "ENGINE",
    "FILL",
    "KERNEL",
    "MEMORY",
    "MODULE",
    "OP",
    "PYTHON",
    "RUNTIME",
    "SCOPE",
    "STEP",
    "Outline",
    "acquire",
    "call_untraced",
    "call_user_code",
    "clock",
    "is_active",
    "op_names",
    "op_overloads",
    "op_schemas",
    "release",
    "span",
    "thread_state",
]

# What a recorded range is. The numbers are stored in event columns.
OP, BACKWARD, ENGINE, SCOPE, STEP, PYTHON, MODULE, MEMORY = range(8)
# On a device: kernels, copies and fills. RUNTIME is the host's call that launched one or waited for it.
KERNEL, COPY, FILL, RUNTIME = range(8, 12)

# Filled by the registry, one entry per op overload; an op's id is its index.
op_names: list[str] = []
op_overloads: list[str] = []
op_schemas: list[Any] = []

# What a span was given: (shape, strides in bytes, NumPy dtype) of each tensor, None for one that is missing or for what is
# not told, (type, number), (list, number, ...).
Outline = tuple[tuple[Any, ...] | None, ...]

# Held while it changes whether anybody watches.
changing = threading.Lock()

# Filled by whoever records: what to send to a worker process along with a task, so that it records itself (begin(number)
# and end() there, deliver() of what end() returned here); None while nobody records.
for_workers: Callable[[], Any] = lambda: None  # noqa: E731


def thread_state() -> ThreadState:
    """The calling thread's state."""
    return threads.state


def acquire() -> None:
    """Count one more reason for ops to look at their thread's state."""
    with changing:
        entry_globals.observers_active += 1


def release() -> None:
    """Count one fewer."""
    with changing:
        entry_globals.observers_active -= 1


# Where entries find their thread's state. ContextVar.get takes an eighth of the time of threading.local, which is as much
# as a reading of the clock. A context may be copied to another thread, though, so `_own` is asked only while there is
# no other thread; a thread or a context that does not know answers None, and then the entry asks `threads`.
_own: ContextVar[ThreadState | None] = ContextVar("state of the only thread", default=None)
_unknown: ContextVar[ThreadState | None] = ContextVar("no state", default=None)
entry_globals.current = _unknown.get


def expect_one_thread(*, hidden_from_tracer: bool = False) -> None:
    """Spare ops the search for their thread's state for as long as the calling thread is the only one.

    `hidden_from_tracer`: somebody listens to every call of a builtin, so have them call it in a way that is not heard.
    """
    alone = is_only_thread() and threading.getprofile() in (None, _thread_began)
    find = _own.get if alone else _unknown.get
    if alone:
        _own.set(threads.state)
        threading.setprofile(_thread_began)
    entry_globals.current = partial(find) if hidden_from_tracer or isinstance(entry_globals.current, partial) else find


def expect_threads(*, hidden_from_tracer: bool = False) -> None:
    """Have every op look for its thread's state."""
    entry_globals.current = partial(_unknown.get) if hidden_from_tracer else _unknown.get
    if threading.getprofile() is _thread_began:
        threading.setprofile(None)


def _thread_began(frame: FrameType, event: str, arg: Any) -> None:
    """What a new thread does first, before it can run an op."""
    sys.setprofile(None)
    expect_threads(hidden_from_tracer=isinstance(entry_globals.current, partial))


def is_active() -> bool:
    """Whether any thread is being watched."""
    return entry_globals.observers_active > 0


def call_untraced(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of this runtime's own whose Python calls nobody need hear."""
    state = threads.state
    switch = state.tracer_switch
    return function(*args) if switch is None else _call_with_tracer_paused(state, switch, function, args)


def call_user_code(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of the user's from an inside: whoever listens to Python calls is resumed for it."""
    state = threads.state
    switch = state.paused_tracer
    return function(*args) if switch is None else _call_with_tracer_resumed(state, switch, function, args)


def _call_with_tracer_paused(
    state: ThreadState, switch: TracerSwitch, function: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    # The call of this function and its return are heard, nothing in between.
    pause, resume = switch
    pause()
    state.paused_tracer, state.tracer_pause_factory = switch, None
    try:
        return function(*args)
    finally:
        state.paused_tracer = None
        resume()


def _call_with_tracer_resumed(
    state: ThreadState, switch: TracerSwitch, function: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    pause, resume = switch
    state.paused_tracer = None
    resume()
    try:
        return function(*args)
    finally:
        pause()
        state.paused_tracer, state.tracer_pause_factory = switch, None


# Frames from a function of the second code up to one of the first are on the stack without having been heard.
UNTRACED_CALL, USER_CODE_CALL = _call_with_tracer_paused.__code__, _call_with_tracer_resumed.__code__


class span:
    """`with span("Optimizer.step#SGD.step"):` records a named range; nothing happens when nobody watches."""

    __slots__ = ("_kind", "_name", "_sequence", "_start")

    def __init__(self, name: str, kind: int = SCOPE, sequence: int = -1) -> None:
        self._name = name
        self._kind = kind
        self._sequence = sequence

    def __enter__(self) -> span:
        self._start = clock() if entry_globals.observers_active else 0
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if entry_globals.observers_active:
            record = threads.state.span
            if record is not None and self._start:
                record(self._name, self._kind, self._start, clock(), self._sequence)
