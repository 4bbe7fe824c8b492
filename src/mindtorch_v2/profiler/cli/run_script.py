"""Runs a script as `python script.py args` does, inside a profile."""

from __future__ import annotations

import importlib.util
import io
import os
import runpy
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..._dispatch import observer
from ..config import _ExperimentalConfig
from ..profiler import ProfilerAction, profile
from ..recording.python_calls.stream import OUTERMOST
from ..results.loaded import LoadedProfile
from ..session import autograd_profile
from ..store.store import EventStore
from . import signals


class Target(NamedTuple):
    """What to run: a path, or with `module` the name of a module, and its arguments."""

    name: str
    args: Sequence[str] = ()
    module: bool = False


class Handle(Protocol):
    """A registered callback."""

    def remove(self) -> None:
        """Unregister it."""


# What a session leaves behind.
Recording: TypeAlias = profile | LoadedProfile


class Session(Protocol):
    """What a script runs under."""

    def start(self) -> None:
        """Begin, before the script does."""

    def stop(self, failed: bool) -> None:
        """End; `failed`: the script ended by an error."""

    @property
    def steps(self) -> int:
        """How many training steps were counted."""

    @property
    def recording(self) -> Recording | None:
        """What was recorded; None if that is nothing at all."""


def is_better(last: EventStore, whole: EventStore | None, failed: bool) -> bool:
    """Whether the window that a script ended in is worth more than the last one that it finished, or than none.

    It is if it has as many finished steps, at least one. Of a script that failed it tells most, once it has any event.
    """
    begun = _step_rows(last)
    if failed:
        return len(last) > begun
    return begun - 1 >= (1 if whole is None else _step_rows(whole))


def _step_rows(store: EventStore) -> int:
    return int(np.count_nonzero(store.kind == observer.STEP))


def mute_schedule() -> None:
    """Have the profiler not warn of what a schedule does with windows and warm-up: its warnings are for who calls it."""
    for message in ("Warning: Profiler clears events", "Profiler won't be using warmup"):
        warnings.filterwarnings("ignore", message, UserWarning)


class OwnSession:
    """The profiler of this package, on all threads. With a schedule the recording is its last window, see `is_better`.

    `every_step(function)` registers a function to call after each training step; it steps the schedule.
    """

    def __init__(
        self,
        options: dict[str, Any],
        schedule: Callable[[int], ProfilerAction] | None = None,
        every_step: Callable[[Callable[[], None]], Handle] | None = None,
    ) -> None:
        config = _ExperimentalConfig(profile_all_threads=True)
        keep = None if schedule is None else self._keep
        self.profile = profile(experimental_config=config, schedule=schedule, on_trace_ready=keep, **options)
        self._whole: autograd_profile.profile | None = None
        self._is_stopping = False
        self._every_step = every_step
        self._handle: Handle | None = None

    def start(self) -> None:
        """Begin to record, or to wait for the schedule."""
        if self._every_step is not None:
            mute_schedule()
            self._handle = self._every_step(self.profile.step)
        self.profile.start()

    def stop(self, failed: bool) -> None:
        """End the recording, and choose the window that is kept."""
        self._is_stopping = True
        self.profile.stop()
        if self._handle is not None:
            self._handle.remove()
        last, whole = self.profile.profiler, self._whole
        if self._every_step is None or last is None or last is whole:
            return
        if not is_better(last.store, None if whole is None else whole.store, failed):
            self.profile.profiler = whole

    def _keep(self, prof: profile) -> None:
        if not self._is_stopping:
            self._whole = prof.profiler

    @property
    def steps(self) -> int:
        """How many training steps were counted."""
        return self.profile.step_num

    @property
    def recording(self) -> Recording | None:
        """The profile; None if the schedule recorded no step."""
        return None if self.profile.profiler is None else self.profile


class Outcome:
    """How the script ended, and the recording of it."""

    def __init__(self, session: Session, error: BaseException | None) -> None:
        self.steps = session.steps
        self.recording = session.recording
        self.error = error
        self._script_trace = None if error is None else _script_frames(error.__traceback__)

    @property
    def code(self) -> int:
        """The exit code with which Python ends after the same error."""
        error = self.error
        if error is None:
            return 0
        if isinstance(error, SystemExit):
            return error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1

    def explain(self) -> None:
        """Print to stderr what Python prints for the error: the traceback, without the frames of this command."""
        error = self.error
        if isinstance(error, SystemExit):
            if error.code is not None and not isinstance(error.code, int):
                print(error.code, file=sys.stderr)
        elif error is not None:
            traceback.print_exception(type(error), error, self._script_trace)

    @property
    def events(self) -> int:
        """How many events were recorded."""
        return 0 if self.recording is None else len(self.recording._recording())

    @property
    def only_python(self) -> bool:
        """Whether nothing but Python calls was recorded."""
        return self.recording is None or bool(self.recording._recording().is_python.all())

    @property
    def module_missing(self) -> bool:
        """Whether the module to run was not found or cannot be run, so that nothing of it ran."""
        return isinstance(self.error, ImportError) and self._script_trace is None

    @property
    def torch_missing(self) -> bool:
        """Whether the script ended because it imports torch and torch is not installed."""
        return isinstance(self.error, ModuleNotFoundError) and self.error.name == "torch"

    def reraise(self) -> None:
        """Raise the error that ended the script, if there was one."""
        if self.error is not None:
            raise self.error


def run_recorded(target: Target, session: Session) -> Outcome:
    """Run the target from start to end in a session; what it raises is part of the outcome."""
    error: BaseException | None = None
    argv, first = sys.argv, sys.path[:1]
    try:
        sys.argv = [target.name, *target.args]
        sys.path[:1] = [os.getcwd() if target.module else os.path.dirname(os.path.realpath(target.name))]
        with signals.sigterm_raises():
            session.start()
            if target.module:
                runpy.run_module(target.name, run_name="__main__", alter_sys=True)
            else:
                _run_file(target.name)
    except BaseException as caught:
        error = caught
    finally:
        # A second signal must not lose the recording.
        with signals.ignored(signal.SIGINT, signal.SIGTERM):
            session.stop(failed=not _is_fine(error))
            sys.argv, sys.path[:1] = argv, first
    return Outcome(session, error)


OUTERMOST.add(run_recorded.__code__)  # the frames of this command are not the script's


def _is_fine(error: BaseException | None) -> bool:
    return error is None or (isinstance(error, SystemExit) and not error.code)


def _run_file(path: str) -> None:
    with io.open_code(path) as stream:
        code = compile(stream.read(), path, "exec")
    # As `python script.py` does: the script is __main__ itself, so that pickling its classes works.
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = path, __builtins__  # type: ignore[attr-defined]
    before, sys.modules["__main__"] = sys.modules["__main__"], main
    try:
        exec(code, main.__dict__)
    finally:
        sys.modules["__main__"] = before


_COMMAND_FILES = (__file__, runpy.__file__, importlib.util.__file__, "<frozen runpy>")


def _script_frames(trace: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback from the script's first frame on; None if the script did not get that far."""
    while trace is not None and _is_before_script(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_before_script(file: str) -> bool:
    return file in _COMMAND_FILES or file.startswith("<frozen importlib")
