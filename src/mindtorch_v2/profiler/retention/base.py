"""RetentionPolicy: a thread that drains the recorder's lists again and again while the recording runs.

In: the lists of a Recorder, which knows nothing of it, so that recording an event costs no more. Out, by policy: a file
(`Stream`), the newest events within a bound of memory (`Ring`), or statistics (`Aggregator`).
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from ..recording.device import DeviceRecorder
from ..recording.gc_pauses import GcPauseLog
from ..recording.out_variants import OutCalls
from ..recording.recorder import Recorder
from ..store.store import EventStore, StorageNotes
from .stats import AggregateStats

# A step asks for a drain, but not more often than this: very short steps would do little else.
_LEAST_PAUSE_S = 0.05
# Numbers in the recorder's lists, some 45 bytes each: beyond that a step drains them itself, since on a busy machine the
# draining thread may not get its turn in time.
_MOST_UNDRAINED = 1 << 17


class RecordingWindow:
    """One recording from start to stop: its recorder, and what is recorded beside it."""

    def __init__(
        self,
        recorder: Recorder,
        gc_log: GcPauseLog,
        device: DeviceRecorder | None,
        out_calls: OutCalls | None,
        meta: Mapping[str, Any],
    ) -> None:
        self.recorder = recorder
        self.gc_log = gc_log
        self.device = device
        self.out_calls = out_calls
        self.meta = dict(meta)  # options and trace_id


class RetentionPolicy:
    """Calls drain() from a thread of its own while a window is recorded, and once more when it has ended.

    Subclasses define drain() and what happens at the start and end of a window.
    """

    def __init__(self, pause_s: float, most_s: float = float("inf")) -> None:
        """pause_s: time between two drains. most_s: a step that comes later than that after the last one waits for a drain."""
        self.window: RecordingWindow | None = None
        self.metadata: Callable[[], Mapping[str, Any]] = dict  # what the user added to the trace
        self.lock = threading.RLock()
        self._pause_s = pause_s
        self._most_s = most_s
        self._wake = threading.Event()
        self._open = False
        self._thread: threading.Thread | None = None
        self._flushing: list[threading.Event] = []  # set after the next drain, one for each flush() that waits for it
        self._drained_at = 0.0
        self._pid = 0

    # ------------------------------------------------------------------ what the profile calls

    def start(self, window: RecordingWindow) -> None:
        """Begin to drain a recording that has just started."""
        self.window = window
        self._pid = os.getpid()
        self.on_window_start()
        self._drained_at = monotonic()
        self._open = True
        self._thread = threading.Thread(target=self._run, name="profiler retention", daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Called at the end of a step: have its events drained soon, or drain them here if the thread is too late."""
        assert self.window is not None
        recorder = self.window.recorder
        late = monotonic() - self._drained_at
        if late > self._most_s:
            self.flush()
        elif (
            not recorder.options.with_stack
            and sum(len(recording.rows) for recording in recorder.thread_recordings) > _MOST_UNDRAINED
        ):
            self._drain_now()
        elif late > _LEAST_PAUSE_S:
            self._wake.set()

    def stop(self) -> None:
        """Drain the rest of a recording that has just stopped, and end the thread."""
        if not self._open:
            return
        self._open = False
        self._wake.set()
        if self._thread is not None and os.getpid() == self._pid:
            self._thread.join()
        self._thread = None
        self.flush()
        if os.getpid() == self._pid:
            self.on_window_end()

    def flush(self) -> None:
        """Drain everything recorded so far and return when that is done. Does nothing in a forked child: the window is the
        parent's.
        """
        if os.getpid() != self._pid:
            return
        if self._open and self._thread is not None and self._thread.is_alive():
            # On the draining thread, which is not recorded: draining here would add events to drain.
            done = threading.Event()
            self._flushing.append(done)
            self._wake.set()
            done.wait()
        else:
            self._drain_now()

    def _drain_now(self) -> None:
        with self.lock:
            self._drained_at = monotonic()
            self.drain()

    # ------------------------------------------------------------------ what each policy defines

    def on_window_start(self) -> None:
        """Called when a window begins, before its first drain."""

    def drain(self) -> None:
        """Move what was recorded off the recorder's lists; called with the lock held."""
        raise NotImplementedError

    def on_window_end(self) -> None:
        """Called when a window has ended, after its last drain."""

    def store(self) -> EventStore | None:
        """The window as a store; None if it is still with the recorder."""
        return None

    def storage_notes(self) -> StorageNotes | None:
        """The storages that ops were given; None if that is still with the recorder."""
        return None

    def stats(self) -> AggregateStats:
        """The statistics of all windows; only Aggregator has them."""
        raise RuntimeError("aggregate() needs profile(max_memory_mb=..., mode='aggregate')")

    @property
    def dropped_events(self) -> int:
        """How many events of the window were dropped."""
        return 0

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        pause = _LEAST_PAUSE_S
        while True:
            # Soon at first: the first drain takes longest, since every name and input is new.
            self._wake.wait(min(pause, self._pause_s))
            pause = min(2 * pause, self._pause_s)
            self._wake.clear()
            flushing = self._flushing[:]
            del self._flushing[: len(flushing)]
            try:
                if not self._open:
                    return
                self._drain_now()
            except Exception as error:  # no caller could handle it, and the program must go on
                warnings.warn(
                    f"the profiler cannot keep what it records: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=1
                )
            finally:
                for done in flushing:
                    done.set()
