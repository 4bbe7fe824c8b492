"""torch.profiler.profile: steps, schedules, traces."""

from __future__ import annotations

import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Literal

from .._backends.errors import OutOfMemoryError
from .._core.cpython import without_signals_at_entry
from .._core.files import name_in_folder
from .._core.restoring import carry_out
from .._dispatch import observer
from ._io.terminal import shown
from .config import ProfilerActivity, _ExperimentalConfig, device_available, supported_activities
from .recording.record_function import step_function
from .retention.select import retention_policy
from .retention.stats import AggregateStats
from .session.execution_trace import ExecutionTraceObserver, TraceObserver
from .session.live_tensors import write_after_failure
from .session.schedule import TRANSITIONS, ProfilerAction, Schedule, record_always, schedule
from .session.step_counter import KinetoStepTracker
from .session.turns import in_turn
from .windows import _KinetoProfile

__all__ = [
    "ExecutionTraceObserver",
    "ProfilerAction",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

PROFILER_STEP_NAME = "ProfilerStep"
# torch's name of it, which Lightning assigns to `profile.schedule` when an epoch is too short for a schedule.
_default_schedule_fn = record_always


class profile(_KinetoProfile):
    """Profile a block of code: `with profile(...) as prof: ...`, calling prof.step() after every step of a loop.

    schedule: a function from step number to ProfilerAction, see schedule(). on_trace_ready: called with the profile
    whenever a window is complete. Results are those of the last complete window. Profiles may be nested: each
    records everything of its own time. The other arguments are those of _KinetoProfile, and five that torch does not have:

    stream_to: a file to which events are written while they are recorded, at least every flush_interval_s seconds; after a
    crash profiler.load(path) has all but the last of them. max_memory_mb: a bound of memory, with mode="ring" for the newest
    events (dropped_events counts the others), with mode="aggregate" for statistics instead of events, see aggregate().
    stacks_per_second: how many ops a second with_stack="sampled" notes the stack of, at most; 1,000 if not given. It traces no
    Python calls, and takes at most a twentieth of the time for stacks; the other ops have none, and tables and traces say so.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool | Literal["sampled"] = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: TraceObserver | None = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        stream_to: str | os.PathLike[str] | None = None,
        flush_interval_s: float = 1.0,
        max_memory_mb: float | None = None,
        mode: str | None = None,
        stacks_per_second: float | None = None,
    ) -> None:
        chosen = set(supported_activities()) if activities is None else activities
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
            if use_cuda:
                chosen = {*chosen, ProfilerActivity.CUDA}
        super().__init__(
            activities=chosen,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=(execution_trace_observer or ExecutionTraceObserver.build_execution_trace_obs_from_env()),
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
            stacks_per_second=stacks_per_second,
        )
        options = {
            "acc_events": acc_events,
            "with_stack": with_stack,
            "profile_memory": profile_memory,
            "use_device": self.use_device is not None and device_available(),
        }
        self._retention = retention_policy(stream_to, flush_interval_s, max_memory_mb, mode, options)
        if self._retention is not None:
            self._retention.metadata = self._trace_metadata
        self.schedule: Schedule = schedule if schedule else record_always
        self.record_steps = bool(schedule)
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn: step_function | None = None
        self.current_action = self._action_of(0)
        self._running = False
        # What stop() has yet to do, last one first: an interrupted stop() is gone on with by the next.
        self._ending: list[str] = []
        self._process = os.getpid()

    # ------------------------------------------------------------------ start, step, stop

    def __enter__(self) -> profile:
        self.start()
        return self

    @without_signals_at_entry
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is not None and issubclass(kind, (MemoryError, OutOfMemoryError)):
                write_after_failure()
            self.stop()
        finally:
            try:
                carry_out([lambda: KinetoStepTracker.erase_step_count(PROFILER_STEP_NAME), self._withdraw])
            finally:
                if self.execution_trace_observer is not None:
                    self.execution_trace_observer.cleanup()

    @in_turn
    def start(self) -> None:
        """Begin with the action of the current step. Nothing happens if the profile runs already."""
        if self._forked:  # started in the parent: in this process it starts anew
            self._running, self.step_rec_fn, self.profiler, self._process = False, None, None, os.getpid()
        if self._running:
            return
        self._process = os.getpid()
        self._ending = []
        try:
            KinetoStepTracker.init_step_count(PROFILER_STEP_NAME)
            self._transit_action(ProfilerAction.NONE, self.current_action)
            self._open_step()
        except BaseException:
            carry_out([self._withdraw])
            raise
        self._running = True

    @in_turn
    def stop(self) -> None:
        """End the profile. Its results stay; a second stop() does nothing, or goes on with one that was interrupted."""
        if self._forked or not (self._running or self._ending or self.profiler is None):
            return
        if not self._ending:
            ending = [*TRANSITIONS.get((self.current_action, None), ())][::-1]
            self._ending, self._running = ending, False
        self._close_step()
        ending = self._ending
        while ending:
            name = ending[-1]
            if name == "stop_trace":
                self._run_transition(name)
                del ending[-1]
            else:  # these are begun once, however they end
                del ending[-1]
                self._run_transition(name)

    def _withdraw(self) -> None:
        """Take out what a start() or stop() that was interrupted left in."""
        self._close_step()
        if self.profiler is not None:
            self.profiler.withdraw()
        if isinstance(self.execution_trace_observer, ExecutionTraceObserver):
            self.execution_trace_observer.stop()
        self._running = False

    @property
    def _is_running(self) -> bool:
        return self._running or super()._is_running

    def step(self) -> None:
        """Mark the end of a step: the next step begins, with the action that the schedule has for it."""
        if self.schedule is record_always:  # so nothing of the user's is called, and no tracer begins or ends
            observer.call_untraced(self._step)
        else:
            self._step()

    @in_turn
    def _step(self) -> None:
        if self._forked:
            return
        self._close_step()
        action = self._action_of(self.step_num + 1)
        before, self.current_action = self.current_action, action
        self.step_num += 1
        try:
            if self._running:
                if self.profiler is not None:
                    self.profiler._mark_step(self.step_num)
                self._transit_action(before, action)
        finally:
            if self._running:
                self._open_step()
        KinetoStepTracker.increment_step(PROFILER_STEP_NAME)

    @property
    def _forked(self) -> bool:
        """Whether this process was forked while the profile ran: the profile is the parent's and does nothing here."""
        return self._running and self._process != os.getpid()

    def _action_of(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if action is ProfilerAction.DEVICE_STOPPED:
            raise ValueError(
                "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be returned "
                "by a user-provided schedule"
            )
        return action

    def _open_step(self) -> None:
        self._unrecorded_steps.begin(is_first=self.step_num == 0)
        if self.record_steps and observer.is_active():
            scope = step_function(f"{PROFILER_STEP_NAME}#{self.step_num}")
            scope.__enter__()
            self.step_rec_fn = scope

    def _close_step(self) -> None:
        scope, self.step_rec_fn = self.step_rec_fn, None
        if scope is not None:
            scope.__exit__(None, None, None)
        self._unrecorded_steps.end()

    @property
    def action_map(self) -> dict[tuple[ProfilerAction, ProfilerAction | None], list[Callable[[], Any]]]:
        """What is done between two actions, as torch has it.

        Built at each access: bound methods in an attribute would make a reference cycle, and the recorded events would
        stay in memory until the garbage collector runs.
        """
        return {pair: [partial(self._run_transition, name) for name in names] for pair, names in TRANSITIONS.items()}

    def _run_transition(self, name: str) -> None:
        """Call a method by its name in TRANSITIONS, or give the warning that stands there."""
        if name.startswith("Incorrect"):
            warnings.warn(name, stacklevel=5)  # the caller of step() or stop(), past `in_turn`
        else:
            getattr(self, name)()

    def _transit_action(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """Go from one action to the next. If on_trace_ready raises, the next window is still prepared and started.

        An interrupt elsewhere leaves out the rest: nothing records then until the schedule has the next window.
        """
        failure: BaseException | None = None
        for name in TRANSITIONS.get((before, after), ()):
            try:
                self._run_transition(name)
            except BaseException as error:
                if name != self._trace_ready.__name__:
                    raise
                failure = error
        if failure is not None:
            raise failure

    def _trace_ready(self) -> None:
        if self.on_trace_ready:
            self.on_trace_ready(self)

    # ------------------------------------------------------------------ retention policies

    def aggregate(self) -> AggregateStats:
        """The statistics of all windows so far; needs mode="aggregate"."""
        if self._retention is None:
            raise RuntimeError("aggregate() needs profile(max_memory_mb=..., mode='aggregate')")
        return self._retention.stats()

    @property
    def dropped_events(self) -> int:
        """Events of the last window that were dropped: with mode="ring" the oldest, with stream_to what the disk refused."""
        return self._retention.dropped_events if self._retention is not None else 0

    def _trace_metadata(self) -> dict[str, Any]:
        """The metadata that the user added, parsed."""
        return {key: json.loads(value) for key, value in {**self.preset_metadata, **self._metadata}.items()}

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Take trace ids from a function, from the next window on."""
        super().set_custom_trace_id_callback(callback)

    def get_trace_id(self) -> str | None:
        """The id of the current or last window, None before the first."""
        return super().get_trace_id()


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[_KinetoProfile], None]:
    """An on_trace_ready that writes each window where TensorBoard's profiler plugin finds it.

    worker_name: unique among the processes that write to the folder; host name and process id if not given. It becomes part
    of the files' names, and raises ValueError if it could lead out of the folder.
    """
    if worker_name:
        name_in_folder(worker_name, "worker_name")

    def handler(prof: _KinetoProfile) -> None:
        if not os.path.isdir(dir_name):
            try:
                os.makedirs(dir_name, exist_ok=True)
            except OSError as error:
                raise RuntimeError(f"Can't create directory: {shown(str(dir_name))}") from error
        worker = worker_name or name_in_folder(f"{platform.node()}_{os.getpid()}", "the host's name")
        # Nanoseconds, so that two windows of one worker never have the same name.
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name), use_python_export)

    return handler
