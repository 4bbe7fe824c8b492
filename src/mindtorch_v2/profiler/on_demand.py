"""serve_on_demand(): profile a running process on a signal, when a file is touched, or when a step is slow."""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any

from .config import _ExperimentalConfig
from .profiler import profile

_POLL_S = 0.2
_HISTORY = 50  # steps whose median is the usual time
_WARM_UP = 10  # steps before any is called slow


class OnDemand:
    """Records when triggered. `dumps` lists the files written so far; close() ends it and writes a recording under way."""

    def __init__(self, folder: str | os.PathLike[str], options: dict[str, Any]) -> None:
        self.folder = os.fspath(folder)
        self.dumps: list[str] = []
        self._options = options
        self._profile: profile | None = None
        self._lock = threading.RLock()
        self._on_close: list[Callable[[], None]] = []
        self._process = os.getpid()

    @property
    def recording(self) -> bool:
        """Whether a recording runs now."""
        return self._profile is not None

    def start(self) -> None:
        """Begin to record every thread; nothing happens if it records already."""
        with self._lock:
            if self._profile is None and self._process == os.getpid():  # a forked child has no triggers
                config = _ExperimentalConfig(profile_all_threads=True)
                prof = profile(experimental_config=config, **self._options)
                prof.start()
                self._profile = prof  # only now: `recording` is not to be true before it is

    def stop(self) -> str | None:
        """End the recording and write it; returns the file, None if nothing was recording."""
        with self._lock:
            prof, self._profile = self._profile, None
            if prof is None or self._process != os.getpid():
                return None
            prof.stop()
            stamp = time.strftime("%Y%m%d-%H%M%S")
            path = os.path.join(self.folder, f"on-demand-{os.getpid()}-{stamp}-{len(self.dumps)}.mtp")
            prof.save(path)
            self.dumps.append(path)
            return path

    def toggle(self) -> None:
        """Start a recording, or stop and write the one that runs."""
        with self._lock:
            if self._profile is None:
                self.start()
            else:
                self.stop()

    def close(self) -> None:
        """Remove the triggers, and write a recording that runs."""
        for remove_trigger in self._on_close:
            remove_trigger()
        self._on_close.clear()
        self.stop()

    def __enter__(self) -> OnDemand:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def serve_on_demand(
    trigger: int | str | os.PathLike[str] | None = None,
    *,
    folder: str | os.PathLike[str] = ".",
    slow_step: float | None = None,
    slow_steps_recorded: int = 5,
    **options: Any,
) -> OnDemand:
    """Let a running process be profiled: no daemon, no port.

    trigger: a signal number (`kill -USR1 <pid>` starts, a second one stops and writes), or a path: creating or touching
    that file does the same. slow_step: record the next `slow_steps_recorded` steps whenever a step (counted by the
    optimizers) took more than this many times the median of the last ones. Files go to `folder`; `options` are those of
    profile(). A signal needs the main thread, as Python has it.
    """
    if trigger is None and slow_step is None:
        raise ValueError("serve_on_demand needs a signal, a path or slow_step to be asked by")
    if slow_step is not None and slow_step <= 1:
        raise ValueError(f"slow_step must be more than 1, got {slow_step}")
    if not os.path.isdir(folder):
        raise NotADirectoryError(f"there is no folder {os.fspath(folder)!r} to write to")
    served = OnDemand(folder, options)
    profile(**options)  # so that wrong options raise now, not at the first trigger
    if isinstance(trigger, int):
        _on_signal(served, trigger)
    elif trigger is not None:
        _on_touch(served, os.fspath(trigger))
    if slow_step is not None:
        _on_slow_steps(served, slow_step, slow_steps_recorded)
    return served


def _on_signal(served: OnDemand, number: int) -> None:
    # The handler may run between any two bytecodes of the main thread, so the work is left to another thread.
    requests = threading.Semaphore(0)
    closed = threading.Event()
    previous = signal.signal(number, lambda received, frame: requests.release())

    def work() -> None:
        while True:
            requests.acquire()
            if closed.is_set():
                return
            _toggle(served)

    worker = threading.Thread(target=work, name="profiler on demand", daemon=True)
    worker.start()

    def remove_trigger() -> None:
        signal.signal(number, previous)
        closed.set()
        requests.release()
        worker.join()

    served._on_close.append(remove_trigger)


def _toggle(served: OnDemand) -> None:
    """Toggle from the thread that waits for triggers; a failure is a warning, so that the thread goes on waiting."""
    try:
        served.toggle()
    except Exception as error:  # there is no caller to handle it
        warnings.warn(f"profiling on demand failed: {error}", RuntimeWarning, stacklevel=2)


def _on_touch(served: OnDemand, path: str) -> None:
    closed = threading.Event()
    seen = _touched(path)

    def work() -> None:
        nonlocal seen
        while not closed.wait(_POLL_S):
            now = _touched(path)
            if now is not None and now != seen:
                _toggle(served)
            seen = now

    worker = threading.Thread(target=work, name="profiler on demand", daemon=True)
    worker.start()

    def remove_trigger() -> None:
        closed.set()
        worker.join()

    served._on_close.append(remove_trigger)


def _touched(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


class SlowSteps:
    """Tells slow steps: those that took more than `times` the median of the last ones."""

    def __init__(self, times: float, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._times = times
        self._clock = clock
        self._usual: deque[int] = deque(maxlen=_HISTORY)
        self._last: int | None = None

    def slow(self) -> bool:
        """Called at the end of each step: whether it was slow. A slow step does not count for the median."""
        now = self._clock()
        last, self._last = self._last, now
        if last is None:
            return False
        took = now - last
        if len(self._usual) >= _WARM_UP and took > self._times * statistics.median(self._usual):
            return True
        self._usual.append(took)
        return False

    def forget_last(self) -> None:
        """Do not count the time until the next call as a step, because a recording was written in it."""
        self._last = None


def _on_slow_steps(served: OnDemand, times: float, count: int) -> None:
    from ..optim.optimizer import call_after_steps

    steps = SlowSteps(times)
    left = 0

    def after_step() -> None:
        nonlocal left
        slow = steps.slow()
        if left:
            left -= 1
            if not left:
                served.stop()
                steps.forget_last()
        elif slow and not served.recording:
            served.start()
            left = count

    handle = call_after_steps(after_step)
    served._on_close.append(handle.remove)
