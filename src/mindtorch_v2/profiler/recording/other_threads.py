"""Python calls of threads that were running when a recording with stacks began, beside the one that is recorded.

As in torch only their calls are recorded, not their ops, and threads that begin later are not seen. A thread that Python's
`threading` does not know has no name to show it by, and is left out.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..._core.cpython import other_threads_waiting
from ..._core.threads import ThreadState
from .hidden_threads import is_of_a_tool
from .python_calls.stream import PythonCallLog, PythonCallWindow


class OtherThread(NamedTuple):
    """A thread whose calls are traced from another one."""

    ident: int  # of the operating system
    name: str
    log: PythonCallLog
    window: PythonCallWindow


def trace_other_threads(clock: Callable[[], int]) -> Iterator[OtherThread]:
    """Begin to trace all threads but the calling one; what is yielded is traced."""
    if threading.active_count() == 1:
        return
    with other_threads_waiting():  # no thread is to run between looking at its frames and tracing it
        for thread in threading.enumerate():
            frame = None if thread is threading.current_thread() else sys._current_frames().get(thread.ident or 0)
            if frame is None or thread.ident is None or is_of_a_tool(thread):
                continue
            log = PythonCallLog(clock, ThreadState())
            window = PythonCallWindow(log)
            if log.open_on(window, thread.ident, frame):
                yield OtherThread(thread.native_id or thread.ident, thread.name, log, window)
