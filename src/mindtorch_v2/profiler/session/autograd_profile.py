"""torch.autograd.profiler.profile: one recording and its results. torch.profiler.profile drives one per cycle."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from time import perf_counter_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from ..._core.cpython import without_signals_at_entry
from ..._core.restoring import carry_out
from ..._core.threads import ThreadState
from ..assembly.freeze import freeze, storage_notes, tensor_notes
from ..assembly.sampled_stacks import describe
from ..config import (
    SAMPLED_STACKS,
    UNRECORDED_STEPS,
    ActiveProfilerType,
    ProfilerActivity,
    ProfilerConfig,
    ProfilerState,
    Switches,
    _ExperimentalConfig,
    as_flag,
    as_stack_option,
    as_strict_flag,
    as_timeout,
    device_available,
    filtered_out,
)
from ..recording import active
from ..recording.gc_pauses import GcPauseLog
from ..recording.out_variants import OutCalls
from ..recording.recorder import Options, Recorder
from ..retention.base import RecordingWindow, RetentionPolicy
from ..store.store import EventStore, StorageNotes
from ..views.averages import FunctionEventAvg
from ..views.event_list import EventList
from . import dataloader_workers  # noqa: F401  recordings reach DataLoader workers
from .stats import _ProfilerStats, event_numbers

if TYPE_CHECKING:
    from ..analysis.overhead import Calibration
    from ..recording.device import DeviceRecorder
    from ..views.kineto_results import _ProfilerResult

# How long the end of the process waits for a window to be written.
_LONGEST_ABANDON_S = 30.0
_DEVICES = ("cuda", "xpu", "mtia", "hpu", "npu")


class profile:
    """Record the ops of the calling thread: `with profile() as prof: ...`, then prof.key_averages(), prof.table().

    An object records once; torch.profiler.profile is the one with steps and schedules.
    """

    profiler_kind = ProfilerState.KINETO
    active_type = ActiveProfilerType.KINETO

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool | Literal["sampled"] = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: _ExperimentalConfig | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict[ProfilerActivity, set[str]] | None = None,
        stacks_per_second: float | None = None,
    ) -> None:
        self.enabled = enabled
        if not enabled:
            return
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            use_device = "cuda"
        self.activity_filters = activity_filters or {}
        self.use_cuda = use_cuda
        self.use_device = _available(use_device)
        self.entered = False
        shapes, flops = as_strict_flag("record_shapes", record_shapes), as_strict_flag("with_flops", with_flops)
        self.record_shapes = shapes or flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.use_cpu = use_cpu
        self.acc_events = acc_events
        self.experimental_config = _ExperimentalConfig() if experimental_config is None else experimental_config
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = as_timeout(post_processing_timeout_s)
        self.trace_id = ""
        self.kineto_activities = {ProfilerActivity.CPU} if use_cpu else set()
        if not use_cpu:
            if not use_kineto:
                raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
            raise AssertionError("No activities specified for the profiler")
        traces, samples = as_stack_option(with_stack, stacks_per_second)
        self._options = Options(
            record_shapes=shapes,
            profile_memory=as_flag("profile_memory", profile_memory),
            with_stack=traces,
            with_flops=flops,
            with_modules=as_flag("with_modules", with_modules),
            all_threads=self.experimental_config.profile_all_threads,
            adjust_steps=self.experimental_config.adjust_profiler_step,
            stacks_per_second=samples,
        )
        self._stats = _ProfilerStats()
        self._recorder: Recorder | None = None
        self._losses_told = False
        self._concrete_inputs = self._links = True
        # Nanoseconds of steps before the recording that nothing recorded.
        self.unrecorded_steps: list[int] = []
        self._is_read = True  # whether what was recorded last is complete: what a device did, what a thread has yet to drain
        self._left_out: list[str] = []
        self._gc: GcPauseLog | None = None
        self._device: DeviceRecorder | None = None
        self._out_calls: OutCalls | None = None
        # Drains the recorder while it records; None if rows stay with it until the end.
        self._retention: RetentionPolicy | None = None
        # The last recording, and with acc_events those before it, newest first.
        self._store: EventStore | None = None
        self._earlier: list[EventStore] = []
        self._events: EventList | None = None

    # ------------------------------------------------------------------ recording

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    @without_signals_at_entry
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self.enabled:
            try:
                self._stop_trace()
            finally:
                self.withdraw()

    def _prepare_trace(self) -> None:
        self.entered = True
        started = perf_counter_ns()
        if self.recording:  # an interrupt kept the last window from being ended
            self._stop_trace()
        self._left_out = filtered_out(self.activity_filters)
        self.trace_id = self.create_trace_id()
        recorder = Recorder(self._options)
        gc_log = GcPauseLog(recorder.clock)
        device = self._new_device_recorder(recorder.clock)
        out_calls = OutCalls(recorder.clock) if self.experimental_config.capture_overload_names else None
        earlier = [self.store, *self._earlier] if self.acc_events and self._recorder is not None else self._earlier
        # Without a call: an interrupt leaves the last recording or the new one.
        self._recorder, self._gc, self._device, self._out_calls = recorder, gc_log, device, out_calls
        self._store, self._events, self._earlier, self._losses_told = None, None, earlier, False
        self._concrete_inputs, self._links = Switches.concrete_inputs, Switches.forward_backward_links
        self._stats = _ProfilerStats(profiler_prepare_call_duration_us=_microseconds_since(started))

    def _start_trace(self, step: int = 0) -> None:
        """Begin to record. If that is interrupted or fails, nothing records, as before."""
        if self._recorder is None or self._recorder.steps:  # an interrupt kept the window from being prepared
            self._prepare_trace()
        assert self._recorder is not None and self._gc is not None
        started = perf_counter_ns()
        try:
            if self._device is not None:
                self._device.start()
            self._recorder.start(step)
            active.add(self)
            self._gc.start()
            if self._out_calls is not None:
                self._out_calls.start()
            if self._retention is not None:
                self._retention.start(RecordingWindow(self._recorder, self._gc, self._device, self._out_calls, self._meta()))
            self._stats.profiler_enable_call_duration_us = _microseconds_since(started)
        except BaseException:
            self.withdraw()
            if self._device is not None:
                self._device.abandon()
            self._recorder = None
            raise
        self._is_read = False  # without a call after the start: an interrupt would leave it recording

    def _stop_trace(self) -> None:
        """End the recording. If that is interrupted, nothing records any more, and stopping again gives the results."""
        if not self.recording and self._is_read:
            return
        started = perf_counter_ns()
        self.withdraw()
        if self._device is not None:
            self._device.stop()
            self._recorder_losses.extend(self._device.take_notes())
        if self._retention is not None:
            self._retention.stop()  # does nothing if the window has ended
        self._events = None
        self._is_read = True
        stats = self._stats
        stats.profiler_disable_call_duration_us = _microseconds_since(started)
        stats.profiling_window_duration_sec = (self.profiling_end_time_ns - self.profiling_start_time_ns) * 1e-9
        self._tell_losses()

    def _tell_losses(self) -> None:
        """Warn of what could not be recorded, once; it is in the recording, too."""
        if self._recorder is not None and not self._losses_told:
            self._losses_told = True
            for loss in self._recorder.losses:
                warnings.warn(loss, RuntimeWarning, stacklevel=4)

    @without_signals_at_entry
    def withdraw(self) -> None:
        """Take out every hook of the recording, whatever arrives meanwhile; what was recorded is read by _stop_trace()."""
        carry_out([self._withdraw])

    def _withdraw(self) -> None:
        active.remove(self)
        if self._out_calls is not None:
            self._out_calls.stop()
        if self._gc is not None:
            self._gc.stop()
        if self._recorder is not None and (self._recorder.steps or self._recorder.running):
            self._recorder.stop()
        if self._device is not None:
            self._device.withdraw()
        if self._retention is not None and self._device is None:  # a device tells what ran on it when it is stopped
            self._retention.end_soon()

    def abandon(self) -> None:
        """End the recording for `active`, when the process is forked or ends; waits only a while for what is being written."""
        self.withdraw()
        if self._retention is not None:
            self._retention.stop(_LONGEST_ABANDON_S)

    def _records_thread(self, state: ThreadState) -> bool:
        """Whether events of this thread are being recorded now."""
        return self._recorder is not None and self._recorder.records_thread(state)

    def _mark_step(self, number: int) -> None:
        if self._recorder is not None and self._recorder.running:
            self._recorder.step(number)
            if self._retention is not None:
                self._retention.step()

    @property
    def recording(self) -> bool:
        """Whether it has started and not stopped; true also while it is paused."""
        recorder = self._recorder
        return recorder is not None and bool(recorder.steps) and recorder.clock_end_ns is None

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume the collection of some activities while recording; only the CPU's has an effect here."""
        wanted = list(activities)
        for activity in wanted:
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(f"expected ProfilerActivity, got {type(activity).__name__}")
        if ProfilerActivity.CPU not in wanted or not self.recording:
            return
        assert self._recorder is not None
        if enabled and not self._recorder.running:
            self._recorder.resume()
        elif not enabled and self._recorder.running:
            self._recorder.pause()

    def config(self, create_trace_id: bool = False) -> ProfilerConfig:
        """The options of this profile as torch's ProfilerConfig."""
        if create_trace_id:
            self.trace_id = self.create_trace_id()
        options = self._options
        return ProfilerConfig(
            self.profiler_kind,
            options.captures_arguments,
            options.profile_memory,
            options.with_stack or bool(options.stacks_per_second),
            options.with_flops,
            options.with_modules,
            self.experimental_config,
            self.trace_id,
        )

    def _new_device_recorder(self, clock: Callable[[], int]) -> DeviceRecorder | None:
        if self.use_device != "npu":
            return None
        from ..recording.device import DeviceRecorder  # here, because few processes have a device

        return DeviceRecorder(clock, self._options.profile_memory)

    def default_trace_id(self) -> str:
        """32 upper-case hexadecimal digits, new every time."""
        return os.urandom(16).hex().upper()

    def create_trace_id(self) -> str:
        """A new trace id, from the user's callback if there is one."""
        if not self.custom_trace_id_callback:
            return self.default_trace_id()
        trace_id = self.custom_trace_id_callback()
        if not isinstance(trace_id, str):
            raise TypeError(f"custom_trace_id_callback must return a str, not {type(trace_id).__name__}")
        return trace_id

    # ------------------------------------------------------------------ results

    @property
    def store(self) -> EventStore:
        """The last recording; while recording, what there is so far."""
        if self._store is not None:
            return self._store
        tracer = sys.getprofile()
        # A tracer of Python calls must not trace what turns them into rows: the next store would have many times as many.
        # `pause` and `resume` are not Python functions, so that the tracer sees neither a call nor a return of theirs.
        pause, resume = partial(sys.setprofile, None), partial(sys.setprofile, tracer)
        if callable(tracer):
            pause()
        started = perf_counter_ns()
        try:
            store = self._build_store()
            self._number_events(store)
        finally:
            if callable(tracer):
                resume()
        if self._finished:
            self._store = store
            self._stats.parse_kineto_call_duration_us = _microseconds_since(started)
            for text in store.metadata.get("losses", ()) if self._retention is None else ():
                if text not in self._recorder_losses:  # those were told by stop()
                    warnings.warn(text, RuntimeWarning, stacklevel=3)
        return store

    def _number_events(self, store: EventStore) -> None:
        """Give the events numbers that no recording of the process has; those of a running one are not taken yet."""
        store.options["ids_before"] = event_numbers.take(len(store) if self._finished else 0)
        if not self._concrete_inputs:
            store.drop_values_of_inputs()

    @property
    def _recorder_losses(self) -> list[str]:
        return [] if self._recorder is None else self._recorder.losses

    def _build_store(self) -> EventStore:
        retention = self._retention if self._recorder is not None and bool(self._recorder.steps) else None
        if retention is None or retention.window is None:
            return self._store_from_recorder({})
        store = retention.store()
        if store is not None:
            return store
        with retention.lock:  # a drain moves rows from one list to another
            dropped = retention.dropped_events
            return self._store_from_recorder({"dropped_events": dropped} if dropped else {})

    def _meta(self) -> dict[str, Any]:
        """Options and trace id, as arguments of EventStore.freeze."""
        options: dict[str, Any] = self._options._asdict()
        options["with_stack"] |= bool(self._options.stacks_per_second)
        options["use_device"] = self.use_device
        if self._device is not None:
            options["device_properties"] = self._device.properties
        options["capture_overload_names"] = self.experimental_config.capture_overload_names
        options["expose_kineto_event_metadata"] = self.experimental_config.expose_kineto_event_metadata
        options["left_out_of_trace"] = self._left_out
        if self.unrecorded_steps:
            options[UNRECORDED_STEPS] = self.unrecorded_steps
        options["verbose"] = self.experimental_config.verbose
        options["forward_backward_links"] = self._links
        return {"options": options, "trace_id": self.trace_id}

    def _store_from_recorder(self, metadata: dict[str, Any]) -> EventStore:
        recorder = self._recorder if self._recorder is not None else Recorder(self._options)
        meta = self._meta()
        meta["options"]["gc_pauses"] = [] if self._gc is None else list(self._gc.pauses)
        if recorder.losses:
            metadata = {**metadata, "losses": list(recorder.losses)}
        store = freeze(recorder, release=self._finished, device=self._device, metadata=metadata, **meta)
        if self._options.stacks_per_second:
            store.metadata[SAMPLED_STACKS] = describe(store, self._options.stacks_per_second)
        if store.options["with_stack"]:
            from ..analysis.source.files import recorded_sources  # here, because most recordings have no stacks

            store.options["sources"] = recorded_sources(store.stacks)
        return store if self._out_calls is None else self._out_calls.shown_in(store)

    def calibration(self) -> Calibration:
        """What recording an event with these options costs; measured at the first call, after the recording has ended."""
        from ..analysis.overhead import calibration_of  # here, as below, because few recordings are asked for their overhead

        known = calibration_of(self.store)
        if known is None:
            from .calibration import calibrate

            known = calibrate(self._options)
            self.store.options["calibration"] = known._asdict()
        return known

    def storage_notes(self) -> StorageNotes:
        """Which storages ops read and wrote; needs record_shapes, profile_memory and with_stack."""
        notes = self._retention.storage_notes() if self._retention is not None else None
        if notes is not None:
            return notes
        return storage_notes(self._recorder if self._recorder is not None else Recorder(self._options))

    @property
    def kineto_results(self) -> _ProfilerResult | None:
        """The last recording as torch's native events; None before there is one."""
        if self._recorder is None or not self._recorder.steps:
            return None
        from ..views.kineto_results import _ProfilerResult  # here, because few recordings are read this way

        return _ProfilerResult(self.store, tensor_notes(self._recorder))

    @property
    def profiling_start_time_ns(self) -> int:
        """When the last recording began, by time.perf_counter_ns(); 0 before there is one."""
        return 0 if self._recorder is None or not self._recorder.steps else self._recorder.clock_start_ns

    @property
    def profiling_end_time_ns(self) -> int:
        """When the last recording ended, by time.perf_counter_ns(); 0 before that."""
        return 0 if self._recorder is None else self._recorder.clock_end_ns or 0

    def all_windows(self) -> EventStore:
        """The last recording, and with acc_events those before it."""
        return EventStore.joined([self.store, *self._earlier])

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """What copies and pickles are: of a finished profile what it recorded, as load() has it. A running one has none."""
        if not self.enabled or self._recorder is None:
            return super().__reduce_ex__(protocol)
        if not self._finished:
            raise TypeError("a running profile cannot be copied or pickled: stop it first")
        from ..formats._recovery import Recovery  # here, because few profiles are copied
        from ..results.loaded import LoadedProfile

        return LoadedProfile, (self.all_windows(), Recovery("live"))

    @property
    def function_events(self) -> EventList:
        """The events, newest recording first. While recording: those so far."""
        if self.experimental_config.trace_only:
            raise RuntimeError(
                "events() is not available when trace_only=True in ExperimentalConfig. Use export_chrome_trace() instead."
            )
        if self._recorder is None or self.post_processing_timeout_s == 0:
            return EventList(use_device=self.use_device)
        if self._events is not None:
            return self._events
        windows = self.all_windows()
        started = perf_counter_ns()
        events = EventList.from_store(windows)
        if self._finished:
            self._events = events
            self._stats.number_of_events = len(events)
            self._stats.function_events_build_tree_call_duration_us = _microseconds_since(started)
        return events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The events averaged by name, and if asked by input shapes, innermost frames or overload."""
        events = self.function_events
        events._tree_built = True
        return events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """One FunctionEventAvg over all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events together, children not counted twice."""
        return self.function_events.self_cpu_time_total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The events as a text table, one row for each."""
        return self.function_events.table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
        )

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the last recording as a Kineto trace."""
        if self._recorder is None:
            raise AttributeError("nothing was recorded: there is no trace to save")
        from ..exporters import chrome  # here, because not every recording is written

        chrome.export(self.store, path)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write collapsed stacks, input of flame graph tools."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def __repr__(self) -> str:
        return repr(self.function_events) if self._finished else "<unfinished torch.autograd.profile>"

    def __str__(self) -> str:
        return self.table() if self._finished else "<unfinished torch.autograd.profile>"

    @property
    def _finished(self) -> bool:
        return self.enabled and self._recorder is not None and self._recorder.clock_end_ns is not None


def _microseconds_since(started: int) -> int:
    """Whole microseconds, at least one: 0 says that something has not been done."""
    return max(1, (perf_counter_ns() - started) // 1000)


def _available(device: str | None) -> str | None:
    """The device to record, else a warning and None. "cuda" stands for the NPU where there is one: scripts ask for it so."""
    if device is None:
        return None
    if device in ("npu", "cuda") and device_available():
        return "npu"
    if device in _DEVICES:
        warnings.warn(f"{device.upper()} is not available, disabling {device.upper()} profiling", stacklevel=3)
    else:
        warnings.warn(f"The {device} is not a valid device option.", stacklevel=3)
    return None
