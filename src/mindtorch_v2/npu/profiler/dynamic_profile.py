"""torch_npu's dynamic_profile: a running program is profiled by what profiler_config.json says, without being started anew.

    from torch_npu.profiler import dynamic_profile as dp
    dp.init("folder")       # writes folder/profiler_config.json if there is none
    for batch in data:
        train(batch)
        dp.step()           # looks whether the file has changed

or without a change of the program by PROF_CONFIG_PATH=folder, where a step is one of an optimizer.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import warnings
from collections.abc import Mapping
from typing import Any

from ...profiler.live.environment import follow_variable
from . import config_file
from .config_file import Request
from .profiler import profile, tensorboard_trace_handler
from .scheduler import Schedule

__all__ = ["init", "set_state", "start", "step"]

VARIABLE = "PROF_CONFIG_PATH"


class _DynamicProfile:
    """The recordings that a file asks for, one at a time."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, config_file.NAME)
        self.cur_step = 0
        self.recording: profile | None = None
        self._steps_left = 0
        self._seen: tuple[int, int] | None = None  # when the file was changed, and its size
        self._wanted: Request | None = None
        self._process = os.getpid()
        self._lock = threading.RLock()
        if not os.path.lexists(self.path):
            config_file.write_defaults(self.path)

    def step(self) -> None:
        """A step has ended."""
        if self._process != os.getpid():  # a forked worker is not what the file is about
            return
        with self._lock:
            self.cur_step += 1
            if self.recording is not None:
                self._go_on(self.recording)
            else:
                self._look()
                if self._wanted is not None and self._wanted.start_step in (-1, self.cur_step):
                    self.begin(self._wanted)

    def _go_on(self, recording: profile) -> None:
        self._steps_left -= 1
        if self._steps_left:
            recording.step()
        else:
            self.finish()

    def _look(self) -> None:
        """Read the file if it has changed. One that cannot be read is a warning, and nothing is recorded until it changes."""
        try:
            found = os.stat(self.path)
        except OSError:
            return  # it may be on its way from one state to the next
        seen = (found.st_mtime_ns, found.st_size)
        if seen == self._seen:
            return
        self._seen = seen
        self._wanted = None
        try:
            self._wanted = config_file.read(self.path)
        except (OSError, ValueError) as error:
            warnings.warn(f"{self.path} cannot be used: {error}", RuntimeWarning, stacklevel=4)
        if self._wanted is not None and 0 < self._wanted.start_step < self.cur_step:
            text = f"{self.path}: start_step {self._wanted.start_step} is over, step {self.cur_step} has begun"
            warnings.warn(text, RuntimeWarning, stacklevel=4)
            self._wanted = None

    def begin(self, wanted: Request) -> None:
        """Record from here on."""
        self._wanted = None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Profiler won't be using warmup")
            # Steps have the program's numbers.
            schedule = Schedule(wait=0, warmup=wanted.warmup, active=wanted.active, repeat=1, skip_first=self.cur_step)
        recording = profile(
            activities=wanted.activities,
            schedule=schedule,
            on_trace_ready=tensorboard_trace_handler(wanted.folder, analyse_flag=wanted.analyse, async_mode=wanted.async_mode),
            experimental_config=wanted.experimental,
            **wanted.flags,  # type: ignore[arg-type]
        )
        for key, value in wanted.metadata.items():
            recording.add_metadata_json(key, json.dumps(value))
        recording.step_num = self.cur_step
        recording.current_action = schedule(self.cur_step)
        recording.start()
        self.recording = recording
        self._steps_left = wanted.warmup + wanted.active

    def finish(self) -> None:
        """End the recording that runs, if one does, and write it. What cannot be written is a warning: the program goes on."""
        with self._lock:
            recording, self.recording = self.recording, None
            if recording is None or self._process != os.getpid():
                return
            try:
                recording.stop()
            except OSError as error:
                warnings.warn(f"the recording could not be written: {error}", RuntimeWarning, stacklevel=3)


_current: _DynamicProfile | None = None


def init(path: str | os.PathLike[str]) -> None:
    """Follow `profiler_config.json` in a folder, which is written with the defaults if it is not there.

    A second call is a warning. NotADirectoryError: there is no such folder.
    """
    global _current  # one a process, as there  # noqa: PLW0603
    if not os.path.isdir(path):
        raise NotADirectoryError(f"there is no folder {os.fspath(path)!r} to look for {config_file.NAME} in")
    if _current is not None and _current._process == os.getpid():
        warnings.warn("Init dynamic profiling repeatedly", RuntimeWarning, stacklevel=2)
        return
    _current = _DynamicProfile(os.path.abspath(path))
    atexit.register(_current.finish)


def step() -> None:
    """Tell that a step has ended: a recording begins, goes on or ends. RuntimeError before init()."""
    _ready("step").step()


def start(config_path: str | os.PathLike[str] | None = None) -> None:
    """Record now, as a file says, by default that of init(); its start_step does not matter. Steps are counted by step().

    RuntimeError before init() and while a recording runs; OSError or ValueError: the file cannot be read.
    """
    current = _ready("start")
    if current.recording is not None:
        raise RuntimeError("dynamic_profile.start(): a recording runs already")
    wanted = config_file.read(current.path if config_path is None else os.fspath(config_path), now=True)
    if wanted is not None:
        with current._lock:
            current.begin(wanted)


def set_state(state: Mapping[str, Any]) -> None:
    """Set the number of the current step, as {"cur_step": n}, where a program goes on from a checkpoint."""
    current = _ready("set_state")
    if set(state) != {"cur_step"} or type(state["cur_step"]) is not int or state["cur_step"] < 0:
        raise ValueError(f'dynamic_profile.set_state() takes {{"cur_step": n}} with n of at least 0, got {dict(state)!r}')
    current.cur_step = state["cur_step"]


def _ready(name: str) -> _DynamicProfile:
    if _current is None:
        raise RuntimeError(f"dynamic_profile.{name}(): call dynamic_profile.init(folder) first")
    return _current


def follow(folder: str) -> None:
    """What PROF_CONFIG_PATH asks for: init(), and a step after each step() of an optimizer."""
    follow_variable(VARIABLE, folder, _init_with_optimizers)


def _init_with_optimizers(folder: str) -> None:
    from ...optim.optimizer import call_after_steps  # here, because few processes are started so

    init(folder)
    call_after_steps(step)
