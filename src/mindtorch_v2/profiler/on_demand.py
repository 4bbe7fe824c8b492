"""serve_on_demand(): profile a running process on a signal, when a file is touched, or when a step is slow."""

from __future__ import annotations

import atexit
import contextlib
import difflib
import itertools
import os
import signal
import statistics
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from .config import ProfilerActivity, _ExperimentalConfig
from .profiler import profile
from .recording.hidden_threads import hide_thread
from .session.turns import MOST_WAITED_S, Turns, in_turn

_POLL_S = 0.2
_RETRY_S = 1.0  # between two tries to write what could not be written
_MOST_KEPT = 8  # recordings that could not be written
_HISTORY = 50  # steps whose median is the usual time
_WARM_UP = 10  # steps before any is called slow


_numbers = itertools.count()  # of recordings: two services of a process write no file of the same name


class OnDemand:
    """Records when triggered. `dumps` lists the files written so far; close() ends it and writes a recording under way.

    A recording that cannot be written, because its folder is gone or the disk is full, is kept and tried again: once a second,
    at every trigger, and when the service is closed. At most `_MOST_KEPT` are kept. What cannot be written even then goes to
    the folder for temporary files, and a warning says where it is.
    """

    def __init__(
        self, folder: str | os.PathLike[str], options: dict[str, Any], on_dump: Callable[[str], None] | None = None
    ) -> None:
        self.folder = os.fspath(folder)
        self.dumps: list[str] = []
        self._options = options
        self._profile: profile | None = None
        self._kept: list[tuple[profile, str]] = []  # with the file name of each
        self._turns = Turns()
        self._on_dump = on_dump
        self._on_close: list[Callable[[], None]] = []
        self._process = os.getpid()
        atexit.register(self.close)

    @property
    def recording(self) -> bool:
        """Whether a recording runs now."""
        return self._profile is not None

    @property
    def unwritten(self) -> int:
        """How many recordings have ended and could not be written yet."""
        return len(self._kept)

    @in_turn
    def start(self) -> None:
        """Begin to record every thread; nothing happens if it records already."""
        if self._profile is None and self._process == os.getpid():  # a forked child has no triggers
            prof = _of_all_threads(self._options)
            prof.start()
            self._steps = call_after_steps(prof.step)
            self._profile = prof  # only now: `recording` is not to be true before it is

    @in_turn
    def stop(self) -> str | None:
        """End the recording and write it; returns the file, None if nothing was recording.

        If it cannot be written it is kept, and the OSError is raised.
        """
        prof = self._profile
        if prof is None or self._process != os.getpid():
            return None
        self._steps.remove()
        prof.stop()
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self._kept.append((prof, f"on-demand-{os.getpid()}-{stamp}-{next(_numbers)}.mtp"))
        self._profile = None
        self._write_kept()
        return self.dumps[-1]

    @in_turn
    def toggle(self) -> None:
        """Start a recording, or stop and write the one that runs."""
        if self._profile is None:
            self.start()
        else:
            self.stop()

    @in_turn
    def retry(self) -> None:
        """Write what could not be written before; what still cannot be stays kept, without a word."""
        with contextlib.suppress(OSError):
            self._write_kept()

    def _write_kept(self) -> None:
        """Write what has ended, oldest first; the OSError of the first that fails."""
        if self._process != os.getpid():
            return
        while self._kept:
            prof, name = self._kept[0]
            path = os.path.join(self.folder, name)
            try:
                prof.save(path)
            except OSError:
                if len(self._kept) > _MOST_KEPT:
                    self._kept.pop(0)
                    warnings.warn(
                        f"more than {_MOST_KEPT} recordings could not be written: the oldest, {name}, is dropped",
                        RuntimeWarning,
                        stacklevel=2,
                    )
                raise
            self._kept.pop(0)
            self.dumps.append(path)
            if self._on_dump is not None:
                self._on_dump(path)

    def close(self) -> None:
        """Remove the triggers, and write a recording that runs and those that could not be written before."""
        atexit.unregister(self.close)
        if self._process != os.getpid():
            return
        while self._on_close:
            self._on_close.pop()()
        self._finish()

    @in_turn
    def _finish(self) -> None:
        try:
            self.stop()
            self._write_kept()
        except OSError as error:
            self.folder, folder = tempfile.gettempdir(), self.folder
            first = len(self.dumps)
            self._write_kept()
            warnings.warn(
                f"recordings could not be written to {folder!r} ({error}): they are {', '.join(self.dumps[first:])}",
                RuntimeWarning,
                stacklevel=4,
            )

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
    on_dump: Callable[[str], None] | None = None,
    **options: Any,
) -> OnDemand:
    """Let a running process be profiled: no daemon, no port.

    trigger: a signal, as number or name ("USR1": `kill -USR1 <pid>` starts, a second one stops and writes), or a path:
    creating or touching that file does the same; a file that has a signal's name is "./USR1", and a name that is almost a
    signal's is refused. slow_step: record the next
    `slow_steps_recorded` steps whenever a step (counted by the optimizers) took more than this many times the median of the
    last ones. Files go to `folder`, each of them complete as soon as it has its name; on_dump is called with the path of
    each. `options` are those of profile(). A signal needs the main thread, as Python has it.
    """
    if trigger is None and slow_step is None:
        raise ValueError("serve_on_demand needs a signal, a path or slow_step to be asked by")
    trigger = _signal_or_path(trigger)
    if slow_step is not None and slow_step <= 1:
        raise ValueError(f"slow_step must be more than 1, got {slow_step}")
    if not os.path.isdir(folder):
        raise NotADirectoryError(f"there is no folder {os.fspath(folder)!r} to write to")
    profile(**options)  # so that wrong options raise now, not at the first trigger
    served = OnDemand(folder, options, on_dump)
    try:
        touched = None if trigger is None or isinstance(trigger, int) else _touched(os.fspath(trigger))
        worker = _Worker(served, touched)
        served._on_close.append(worker.end)
        if isinstance(trigger, int):
            _on_signal(served, worker, trigger)
        if slow_step is not None:
            _on_slow_steps(served, slow_step, slow_steps_recorded)
    except BaseException:
        served.close()
        raise
    return served


def _signal_or_path(trigger: int | str | os.PathLike[str] | None) -> int | str | os.PathLike[str] | None:
    """The trigger, a signal's name as its number. ValueError for what is neither a signal nor the name of a file."""
    if isinstance(trigger, int):
        return signal.Signals(trigger)
    if not isinstance(trigger, str):
        return trigger
    known = signal.Signals.__members__
    number = known.get(trigger, known.get(f"SIG{trigger}"))
    if number is not None:
        return number
    if not trigger:
        raise ValueError("'' is neither a signal nor the name of a file")
    # Signals are written in capitals; of other words only one that differs in nothing else may be a signal's.
    cutoff = 0.7 if trigger.isupper() else 1.0
    names = [name.removeprefix("SIG") for name in known]
    near = difflib.get_close_matches(trigger.upper().removeprefix("SIG"), names, 1, cutoff)
    if near and not os.path.dirname(trigger):
        a_file = os.path.join(os.curdir, trigger)
        raise ValueError(f"{trigger!r} is no signal: did you mean {near[0]!r}? A file of that name is {a_file!r}")
    return trigger


def _of_all_threads(options: dict[str, Any]) -> profile:
    return profile(experimental_config=_ExperimentalConfig(profile_all_threads=True), **options)


def call_after_steps(function: Callable[[], None]) -> Any:
    """Call a function after every step of every optimizer, until remove() of what is returned."""
    from ..optim.optimizer import call_after_steps as register  # here, because few processes need it

    return register(function)


class StepCount:
    """Marks the steps of optimizers in a recording, and ends it with the last one that is wanted, on the thread that steps."""

    def __init__(self, prof: profile, wanted: int | None) -> None:
        self._prof = prof
        self._wanted = wanted
        self.count = 0

    @property
    def all_done(self) -> bool:
        """Whether nothing is recorded any more."""
        return self._wanted is not None and self.count >= self._wanted

    def step(self) -> None:
        """A step has ended."""
        if self.all_done:
            return
        self.count += 1
        if self.all_done:
            self._prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        else:
            self._prof.step()


def recorded_file(
    path: str, options: dict[str, Any], wait: Callable[[StepCount], object], wanted: int | None = None
) -> tuple[profile, int]:
    """Record all threads but this one while wait() runs, with steps of optimizers as steps, at most as many as are wanted.

    Returns the profile and how many steps ended in it; the file is whole then. The calling thread is one of the profiler's from
    now on.
    """
    hide_thread()
    prof = _of_all_threads(options)
    prof.start()
    steps = StepCount(prof, wanted)
    listener = call_after_steps(steps.step)
    try:
        wait(steps)
    finally:
        listener.remove()
        prof.stop()
    prof.save(path)
    return prof, steps.count


class _Worker:
    """The thread that does what triggers ask for, one after another, and writes again what could not be written.

    A trigger only puts a request into the queue. A signal's handler runs between any two bytecodes of the main thread, also
    inside another run of itself: it must not wait for a lock which the interrupted code may hold. `SimpleQueue.put` takes none.
    """

    def __init__(self, served: OnDemand, poll: Callable[[], bool] | None = None) -> None:
        """poll: looked at every _POLL_S seconds; True asks for a toggle."""
        self.requests: SimpleQueue[bool] = SimpleQueue()  # True: toggle; False: end
        self._served = served
        self._poll = poll
        self._ending = False
        self._thread = threading.Thread(target=self._work, name="profiler on demand", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the thread after what it is doing; requests that wait are dropped. Waits for a bounded time."""
        self._ending = True
        self.requests.put(False)
        self._thread.join(MOST_WAITED_S)

    def _work(self) -> None:
        hide_thread()
        retried = time.monotonic()
        while not self._ending:
            try:
                asked = self.requests.get(timeout=_POLL_S if self._poll is not None else _RETRY_S)
            except Empty:
                asked = self._poll is not None and self._poll()
            if asked and not self._ending:
                _attempt(self._served, self._served.toggle)
            elif self._served.unwritten and time.monotonic() - retried > _RETRY_S:
                retried = time.monotonic()
                self._served.retry()


def _attempt(served: OnDemand, action: Callable[[], object]) -> None:
    """Do what a trigger asks for; a failure is a warning, so that the worker, or the training loop, goes on."""
    try:
        action()
    except Exception as error:  # there is no caller to handle it
        kept = f"; {served.unwritten} recordings are kept and will be tried again" if served.unwritten else ""
        warnings.warn(f"profiling on demand failed: {error}{kept}", RuntimeWarning, stacklevel=2)


def _on_signal(served: OnDemand, worker: _Worker, number: int) -> None:
    put = worker.requests.put
    try:
        previous = signal.signal(number, lambda received, frame: put(True))
    except OSError:
        raise ValueError(f"no program can handle the signal {signal.Signals(number).name}") from None
    # A handler that was not set from Python cannot be put back: the default takes its place.
    served._on_close.append(lambda: _set_handler(number, signal.SIG_DFL if previous is None else previous))


def _set_handler(number: int, handler: Any) -> None:
    signal.signal(number, handler)


class _Touched:
    """Tells whether a file was created or touched since the last call."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = self._modified()

    def __call__(self) -> bool:
        before, self._seen = self._seen, self._modified()
        return self._seen is not None and self._seen != before

    def _modified(self) -> int | None:
        try:
            return os.stat(self._path).st_mtime_ns
        except OSError:
            return None


def _touched(path: str) -> _Touched:
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise NotADirectoryError(f"there is no folder {folder!r} in which the file {path!r} could be touched")
    return _Touched(path)


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
    steps = SlowSteps(times)
    left = 0

    def after_step() -> None:
        nonlocal left
        slow = steps.slow()
        if left:
            left -= 1
            if not left:
                _attempt(served, served.stop)
                steps.forget_last()
        elif slow and not served.recording:
            _attempt(served, served.start)
            left = count if served.recording else 0

    handle = call_after_steps(after_step)
    served._on_close.append(handle.remove)
