"""The slot where an observer of ops may sit. The dispatcher knows this room and no profiler.

While nothing watches, an op reads one global (`namespace.watch`) and goes on. While something does, each
op, once it has ended or failed, hands `(op id, start, end, sequence number)` to its thread's observer:
`ThreadState.extend` takes just that, `ThreadState.detail` takes the op's arguments as well.
"""

from __future__ import annotations

import threading
from time import perf_counter_ns as clock
from types import TracebackType
from typing import Any

from .._core.threads import ThreadState, threads
from . import namespace

__all__ = ["BACKWARD", "COPY", "ENGINE", "FILL", "KERNEL", "MEMORY", "MODULE", "OP", "PYTHON", "RUNTIME", "SCOPE", "STEP",
           "Outline", "clock", "op_names", "op_overloads", "op_schemas", "span", "thread_state", "watch", "watching"]

# What a recorded range is. The numbers are stored in event columns.
OP, BACKWARD, ENGINE, SCOPE, STEP, PYTHON, MODULE, MEMORY = range(8)
# On a device: kernels, copies and fills. RUNTIME is the host's call that launched one or waited for it.
KERNEL, COPY, FILL, RUNTIME = range(8, 12)

# Filled by the registry, one entry per op overload; an op's id is its index.
op_names: list[str] = []
op_overloads: list[str] = []
op_schemas: list[Any] = []

# What a span was given: (shape, strides in bytes, NumPy dtype) of each tensor, None for one that is missing.
Outline = tuple[tuple[tuple[int, ...], tuple[int, ...], Any] | None, ...]

_lock = threading.Lock()


def thread_state() -> ThreadState:
    """The calling thread's state."""
    return threads.state


def watch(change: int) -> None:
    """Count one more (+1) or one fewer (-1) reason for ops to look at their thread's state."""
    with _lock:
        namespace.watch += change


def watching() -> bool:
    """Whether any thread is being watched."""
    return namespace.watch > 0


class span:
    """`with span("Optimizer.step#SGD.step"):` records a named range; nothing happens when nobody watches."""

    __slots__ = ("_kind", "_name", "_sequence", "_start")

    def __init__(self, name: str, kind: int = SCOPE, sequence: int = -1) -> None:
        self._name = name
        self._kind = kind
        self._sequence = sequence

    def __enter__(self) -> span:
        self._start = clock() if namespace.watch else 0
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        if namespace.watch:
            record = threads.state.span
            if record is not None and self._start:
                record(self._name, self._kind, self._start, clock(), self._sequence)
