"""Python calls of threads that were running when a recording with stacks began, beside the one that is recorded.

As in torch only their calls are recorded, not their ops, and threads that begin later are not seen. A thread that Python's
`threading` does not know has no name to show it by, and is left out.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..._core.threads import ThreadState
from .python_calls.stream import PythonCallLog, PythonCallWindow

_LONG_S = 1.0  # no thread is to run between looking at another one's frames and tracing it


class OtherThread(NamedTuple):
    """A thread whose calls are traced from another one."""

    ident: int  # of the operating system
    name: str
    log: PythonCallLog
    window: PythonCallWindow


def trace_other_threads(clock: Callable[[], int]) -> Iterator[OtherThread]:
    """Begin to trace all threads but the calling one; what is yielded is traced."""
    interval = sys.getswitchinterval()
    try:
        sys.setswitchinterval(_LONG_S)
        for thread in threading.enumerate():
            frame = None if thread is threading.current_thread() else sys._current_frames().get(thread.ident or 0)
            if frame is None or thread.ident is None:
                continue
            log = PythonCallLog(clock, ThreadState())
            window = PythonCallWindow(log)
            if log.open_on(window, thread.ident, frame):
                yield OtherThread(thread.native_id or thread.ident, thread.name, log, window)
    finally:
        sys.setswitchinterval(interval)
