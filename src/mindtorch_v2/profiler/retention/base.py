"""RetentionPolicy: a thread that drains the recorder's lists again and again while the recording runs.

In: the lists of a Recorder, which knows nothing of it, so that recording an event costs no more. Out, by policy: a file
(`Stream`), the newest events within a bound of memory (`Ring`), or statistics (`Aggregator`).
"""

from __future__ import annotations

import os
import threading
import warnings
from _thread import start_new_thread
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..recording.gc_pauses import GcPauseLog
from ..recording.out_variants import OutCalls
from ..recording.recorder import Recorder
from ..store.store import EventStore, StorageNotes
from .stats import AggregateStats

if TYPE_CHECKING:
    from ..recording.device import DeviceRecorder

# A step asks for a drain, but not more often than this: very short steps would do little else.
_LEAST_PAUSE_S = 0.05
# Numbers in the recorder's lists, some 45 bytes each: beyond that a step waits for a drain, since on a busy machine the
# draining thread may not get its turn in time.
_MOST_UNDRAINED = 1 << 17
# How long flush() and stop() wait for the draining thread, which may hang in a disk that does not answer.
MOST_WAITED_S = 60.0


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

    Subclasses define drain() and what happens at the start and end of a window. All of that runs on the thread, which no
    signal interrupts, so that an interrupt neither loses rows on their way nor leaves a file open. The thread hears of requests
    by a queue, and whoever waits for an answer looks again and again whether the thread still runs: nothing waits for ever.
    """

    def __init__(self, pause_s: float, most_s: float = float("inf")) -> None:
        """pause_s: time between two drains. most_s: a step that comes later than that after the last one waits for a drain."""
        self.window: RecordingWindow | None = None
        self.metadata: Callable[[], Mapping[str, Any]] = dict  # what the user added to the trace
        self.lock = threading.RLock()
        self._pause_s = pause_s
        self._most_s = most_s
        self._thread: Any = _NoThread(self)
        self._drained_at = 0.0
        self._pid = 0

    # ------------------------------------------------------------------ what the profile calls

    def start(self, window: RecordingWindow) -> None:
        """Begin to drain a recording that has just started."""
        self._thread.ask(_END)  # of a window whose start or end was interrupted
        self.window = window
        self._pid = os.getpid()
        self._drained_at = monotonic()
        # Taken over before it runs, so that stop() ends it however far an interrupt let it come.
        self._thread = thread = _DrainingThread(self)
        try:
            thread.start()
            thread.ask(_NOTHING)
            thread.raise_failure()
        except Exception:  # no thread to be had, or a file that is another's
            self.window = None
            raise

    def step(self) -> None:
        """Called at the end of a step: have its events drained soon, or wait for that if the thread is too late."""
        assert self.window is not None
        recorder = self.window.recorder
        late = monotonic() - self._drained_at
        undrained = sum(len(recording.rows) for recording in recorder.thread_recordings)
        if late > self._most_s or undrained > _MOST_UNDRAINED:
            self.flush()
        elif late > _LEAST_PAUSE_S:
            self._thread.request(_DRAIN)

    def end_soon(self) -> None:
        """Have the rest of a recording that has stopped drained, and the thread end, without waiting for it."""
        self._thread.request(_END)

    def stop(self, most_s: float | None = None) -> None:
        """The same, and wait for it, at most for `most_s` seconds. Nothing happens if that was done already."""
        if self._pid and os.getpid() != self._pid:  # a forked child: the window is the parent's
            self.on_fork()
            return
        thread, most_s = self._thread, MOST_WAITED_S if most_s is None else most_s
        if not thread.ask(_END, most_s):
            warnings.warn(
                f"the recording is not complete yet: the thread that keeps it has been busy for {most_s:.0f} s, and ends the "
                "window when it gets on",
                RuntimeWarning,
                stacklevel=2,
            )
            return
        thread.raise_failure()

    def flush(self) -> None:
        """Drain everything recorded so far and return when that is done; TimeoutError if the thread does not get there.

        Does nothing in a forked child, see stop().
        """
        if os.getpid() == self._pid and not self._thread.ask(_DRAIN, MOST_WAITED_S):
            raise TimeoutError(f"the thread that keeps the recording has been busy for {MOST_WAITED_S:.0f} s")

    @property
    def _open(self) -> bool:
        """Whether a window has begun and not ended."""
        return bool(self._thread.runs)

    def drain_now(self) -> None:
        """Drain; runs on the draining thread."""
        with self.lock:
            self._drained_at = monotonic()
            self.drain()

    # ------------------------------------------------------------------ what each policy defines

    def on_window_start(self) -> None:
        """Called when a window begins, before its first drain."""

    def on_window_failed(self) -> None:
        """Called when a window could not begin: close what on_window_start() opened."""

    def on_fork(self) -> None:
        """Called in a forked child whose parent has a window open: let go of what is the parent's."""

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


# ---------------------------------------------------------------- the thread

# What a thread can be asked for: only an answer, a drain, or a last drain and its end.
_NOTHING, _DRAIN, _END = range(3)
_POLL_S = 0.05


class _DrainingThread:
    """The thread of one window. A plain one: neither starting nor asking it has a place where an interrupt leaves it half done.

    An Event or a Condition will not do here: their methods are written in Python, and an interrupt in one of them may leave its
    lock held.
    """

    def __init__(self, policy: RetentionPolicy) -> None:
        self._policy = policy
        self._requests: SimpleQueue[tuple[int, SimpleQueue[None] | None]] = SimpleQueue()
        self._failure: BaseException | None = None
        self._at_end: list[SimpleQueue[None]] = []  # who waits for the end
        self.runs = False

    def start(self) -> None:
        """Start it."""
        run = self._run
        try:
            self.runs = True  # no signal comes between this and the start
            start_new_thread(run, ())
        except RuntimeError:  # no more threads
            self.runs = False
            raise

    def request(self, what: int) -> None:
        """Ask for something without waiting."""
        self._requests.put((what, None))

    def ask(self, what: int, most_s: float | None = None) -> bool:
        """Ask for something and wait until it is done or the thread has ended: False if neither is after `most_s` seconds."""
        answer: SimpleQueue[None] = SimpleQueue()
        until = monotonic() + (MOST_WAITED_S if most_s is None else most_s)
        if self.runs:
            self._requests.put((what, answer))
        while self.runs and monotonic() < until:
            try:
                answer.get(timeout=_POLL_S)
            except Empty:
                continue
            return True
        return not self.runs

    def raise_failure(self) -> None:
        """Raise what happened at the start or the end of the window, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self) -> None:
        policy = self._policy
        try:
            try:
                policy.on_window_start()
            except BaseException:
                policy.on_window_failed()
                raise
            try:
                while self._serve():
                    pass
            finally:
                try:
                    policy.drain_now()
                finally:
                    with policy.lock:
                        policy.on_window_end()
        except BaseException as failure:
            self._failure = failure
        finally:
            self.runs = False
            for answer in self._at_end:
                answer.put(None)

    def _serve(self) -> bool:
        """Wait for requests, drain, and answer; False when the end was asked for."""
        # Soon at first: the first drain takes longest, since every name and input is new.
        self._pause = min(2 * self._pause, self._policy._pause_s)
        requests = []
        try:
            requests.append(self._requests.get(timeout=self._pause))
            while True:
                requests.append(self._requests.get_nowait())
        except Empty:
            pass
        wanted = max((what for what, _ in requests), default=_DRAIN)
        if wanted == _END:
            self._at_end = [answer for _, answer in requests if answer is not None]
            return False
        if wanted == _DRAIN:
            try:
                self._policy.drain_now()
            except Exception as error:  # no caller could handle it, and the program must go on
                warnings.warn(
                    f"the profiler cannot keep what it records: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=1
                )
        for _, answer in requests:
            if answer is not None:
                answer.put(None)
        return True

    _pause = _LEAST_PAUSE_S / 2


class _NoThread:
    """Stands for the thread until a window has started one: who asks for a drain drains."""

    def __init__(self, policy: RetentionPolicy) -> None:
        self._policy = policy
        self.runs = False

    def request(self, what: int) -> None:
        pass

    def ask(self, what: int, most_s: float = 0.0) -> bool:
        if what == _DRAIN and self._policy.window is not None:
            self._policy.drain_now()
        return True

    def raise_failure(self) -> None:
        pass
