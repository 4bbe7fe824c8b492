"""Who keeps what is recorded while the recording goes on: a thread that takes it off the recorder again and again.

The recorder knows nothing of it, so recording costs what it costs anyway. `Stream` writes to a file, `Ring` keeps the
newest, `Aggregator` sums up.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from ..recording.device import DeviceRecorder
from ..recording.gc_pauses import GcWatch
from ..recording.out_variants import OutCalls
from ..recording.recorder import Recorder
from ..store.store import EventStore, StorageNotes
from .stats import AggregateStats

# A step asks for its events to be kept, but not more often than this: very short steps would do little else.
_LEAST_PAUSE_S = 0.05
# Numbers in the recorder's lists, some 45 bytes each: beyond that a step waits until they are kept. On a machine with too
# much to do the thread may have to wait for its turn.
_MOST_WAITING = 1 << 17


class Window:
    """One recording, from start to stop, and all that listens on its behalf."""

    def __init__(
        self,
        recorder: Recorder,
        gc_watch: GcWatch,
        device: DeviceRecorder | None,
        out_calls: OutCalls | None,
        meta: Mapping[str, Any],
    ) -> None:
        self.recorder = recorder
        self.gc_watch = gc_watch
        self.device = device
        self.out_calls = out_calls
        self.meta = dict(meta)  # options and trace_id


class RetentionPolicy:
    """Calls `keep()` from a thread of its own while a window is open, and once more when it closes."""

    def __init__(self, pause_s: float, most_s: float = float("inf")) -> None:
        """pause_s: how long to wait from one time to the next. most_s: after that long a step waits for it."""
        self.window: Window | None = None
        self.metadata: Callable[[], Mapping[str, Any]] = dict  # what was said about the trace
        self.lock = threading.RLock()
        self._pause_s = pause_s
        self._most_s = most_s
        self._wanted = threading.Event()
        self._open = False
        self._thread: threading.Thread | None = None
        self._waiting: list[threading.Event] = []  # for the next time that everything is kept
        self._kept_at = 0.0
        self._pid = 0

    # ------------------------------------------------------------------ what the profile calls

    def begin(self, window: Window) -> None:
        """A recording has started."""
        self.window = window
        self._pid = os.getpid()
        self.opened()
        self._kept_at = monotonic()
        self._open = True
        self._thread = threading.Thread(target=self._run, name="profiler keeper", daemon=True)
        self._thread.start()

    def step(self) -> None:
        """A step has ended: keep what it left behind soon, or at once if the thread does not get round to it."""
        assert self.window is not None
        recorder = self.window.recorder
        late = monotonic() - self._kept_at
        if late > self._most_s:
            self.flush()
        elif not recorder.options.with_stack and sum(len(tap.rows) for tap in recorder.taps) > _MOST_WAITING:
            self._keep_now()
        elif late > _LEAST_PAUSE_S:
            self._wanted.set()

    def end(self) -> None:
        """The recording has stopped."""
        if not self._open:
            return
        self._open = False
        self._wanted.set()
        if self._thread is not None and os.getpid() == self._pid:
            self._thread.join()
        self._thread = None
        self.flush()
        if os.getpid() == self._pid:
            self.closed()

    def flush(self) -> None:
        """Keep everything recorded so far, now. A process that was forked off keeps nothing: this one is still at it."""
        if os.getpid() != self._pid:
            return
        if self._open and self._thread is not None and self._thread.is_alive():
            # On the thread itself, since what another one does might be recorded, and there would be no end to it.
            done = threading.Event()
            self._waiting.append(done)
            self._wanted.set()
            done.wait()
        else:
            self._keep_now()

    def _keep_now(self) -> None:
        with self.lock:
            self._kept_at = monotonic()
            self.keep()

    # ------------------------------------------------------------------ what each does in its own way

    def opened(self) -> None:
        """Called when a window begins, before anything is kept of it."""

    def keep(self) -> None:
        """Take what was recorded off the recorder; called with the lock held."""
        raise NotImplementedError

    def closed(self) -> None:
        """Called when a window has ended and all of it is kept."""

    def store(self) -> EventStore | None:
        """The window as a store; None if the recorder still has it."""
        return None

    def storage_notes(self) -> StorageNotes | None:
        """What the window noted of storages; None if the recorder still has it."""
        return None

    def stats(self) -> AggregateStats:
        """The statistics of all windows, if that is what is kept."""
        raise RuntimeError("aggregate() needs profile(max_memory_mb=..., mode='aggregate')")

    @property
    def dropped_events(self) -> int:
        """Events of the window that are kept nowhere."""
        return 0

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        pause = _LEAST_PAUSE_S
        while True:
            # Soon at first: the first time takes longest, since everything is new.
            self._wanted.wait(min(pause, self._pause_s))
            pause = min(2 * pause, self._pause_s)
            self._wanted.clear()
            waiting = self._waiting[:]
            del self._waiting[: len(waiting)]
            try:
                if not self._open:
                    return
                self._keep_now()
            except Exception as error:  # nobody above us could hear of it, and the program must go on
                warnings.warn(
                    f"the profiler cannot keep what it records: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=1
                )
            finally:
                for one in waiting:
                    one.set()
