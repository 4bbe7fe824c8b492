"""torch.profiler._KinetoProfile: windows that are begun and ended by hand, and what is asked of their results."""

from __future__ import annotations

import copy
import json
import os
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from .._core.restoring import carry_out
from .._dispatch import communications
from ._io.strict_json import checked, dumps
from .assembly.flops import ops_without_formula
from .config import SAMPLED, ProfilerActivity, _ExperimentalConfig, as_stack_option, device_of, parse_activities
from .results import writers
from .results.mixin import ResultsMixin
from .retention.base import RetentionPolicy
from .session import autograd_profile
from .session.execution_trace import ExecutionTraceObserver, ObservedWindow, TraceObserver
from .session.stats import _ProfilerStats
from .session.turns import Turns, in_turn
from .session.unrecorded_steps import UnrecordedSteps
from .store.store import EventStore
from .views.event_list import EventList

if TYPE_CHECKING:
    from .analysis.memory.categories import Uses
    from .analysis.memory.flow.memory_profile import MemoryProfile
    from .analysis.overhead import Calibration
    from .store.memory_profile import MemoryBlocks


class _KinetoProfile(ResultsMixin):
    """One window after another, begun and ended by hand: prepare_trace(), start_trace(), stop_trace(), and results.

    activities: what to record, CPU if not given. record_shapes: input shapes and types. profile_memory: allocations
    and frees. with_stack: Python calls and source locations; "sampled": the stacks of some ops, at most stacks_per_second
    (1,000). with_flops: FLOPs of ops that have a formula. with_modules: the nn.Module path of every op. acc_events: keep the
    events of earlier windows.
    """

    __module__ = "mindtorch_v2.profiler.profiler"

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool | Literal["sampled"] = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: TraceObserver | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        stacks_per_second: float | None = None,
    ) -> None:
        if stacks_per_second is not None:
            as_stack_option(with_stack, stacks_per_second)  # refuses bad values
        self.stacks_per_second = stacks_per_second
        self.activities, self.activity_filters = parse_activities(activities)
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.experimental_config = _compatible(experimental_config, bool(with_stack))
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler: autograd_profile.profile | None = None
        self.mem_tl: MemoryBlocks | None = None
        self.use_device = device_of(self.activities)
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, str] = {}
        self._turns = Turns()
        self._unrecorded_steps = UnrecordedSteps()
        # The last window as the execution trace observer saw it.
        self._observed: ObservedWindow | None = None
        # Drains the recorder while it records; None if rows stay with it until the end.
        self._retention: RetentionPolicy | None = None

    # ------------------------------------------------------------------ recording

    @in_turn
    def start(self) -> None:
        """Begin to record a new window: prepare_trace(), then start_trace()."""
        self.prepare_trace()
        self.start_trace()

    @in_turn
    def stop(self) -> None:
        """End the window, as stop_trace() does."""
        self.stop_trace()

    @in_turn
    def prepare_trace(self) -> None:
        """Prepare a new window; its results replace those of the last one."""
        if self.profiler is not None and self.profiler.recording:  # an interrupt kept the last window from being ended
            self.stop_trace()
        if self.profiler is not None and not self.acc_events:
            _warn_once(
                "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle will be "
                "reported. To keep events across cycles, set acc_events=True."
            )
        if self.profiler is None or not self.acc_events:
            self.profiler = autograd_profile.profile(
                use_cpu=ProfilerActivity.CPU in self.activities,
                use_device=self.use_device,
                record_shapes=self.record_shapes,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_modules=self.with_modules,
                use_kineto=True,
                experimental_config=self.experimental_config,
                acc_events=self.acc_events,
                custom_trace_id_callback=self.custom_trace_id_callback,
                post_processing_timeout_s=self.post_processing_timeout_s,
                activity_filters=self.activity_filters,
                stacks_per_second=self.stacks_per_second,
            )
        self.profiler.custom_trace_id_callback = self.custom_trace_id_callback
        self.profiler._retention = self._retention
        self._observed = None
        self.profiler._prepare_trace()

    @in_turn
    def start_trace(self) -> None:
        """Begin to record; prepare_trace() must have been called."""
        profiler = self._ready("starting trace")
        groups = communications.describe_groups()
        if groups is not None:
            self.add_metadata_json("distributedInfo", dumps(groups))
        trace_observer = self.execution_trace_observer
        try:
            if trace_observer is not None:
                trace_observer.start()
            profiler.unrecorded_steps = self._unrecorded_steps.durations()
            profiler._start_trace(getattr(self, "step_num", 0))
        except BaseException:
            if trace_observer is not None:
                carry_out([trace_observer.stop])
            raise

    @in_turn
    def stop_trace(self) -> None:
        """End the window; nothing happens if it has ended already."""
        profiler = self._ready("stopping trace")
        if profiler.recording or not profiler._is_read:
            profiler._stop_trace()
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.stop()
                if isinstance(self.execution_trace_observer, ExecutionTraceObserver):
                    self._observed = self.execution_trace_observer.last_window

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume the collection of some activities; nothing happens while nothing records."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def _ready(self, purpose: str) -> autograd_profile.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self.profiler

    # ------------------------------------------------------------------ results

    def events(self) -> EventList:
        """The recorded events in order of start; while recording, those so far."""
        return self._ready("accessing events").function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The events averaged by name, and if asked by input shapes, by the innermost n frames, by overload."""
        profiler = self._ready("getting key averages")
        return profiler.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """What copies and pickles are: of a finished profile what it recorded, as load() has it. A running one has none."""
        if self._is_running:
            raise TypeError("a running profile cannot be copied or pickled: stop() it first")
        if self.profiler is None:
            return super().__reduce_ex__(protocol)
        from .formats._recovery import Recovery  # here, because few profiles are copied
        from .results.loaded import LoadedProfile

        store = copy.copy(self.profiler.all_windows())
        more = {key: json.loads(value) for key, value in {**self.preset_metadata, **self._metadata}.items()}
        store.metadata = {**store.metadata, **more}
        store.options = {**store.options, **self._stored_memory_uses()}
        return LoadedProfile, (store, Recovery("live"))

    @property
    def _is_running(self) -> bool:
        return self.profiler is not None and self.profiler.recording

    def _recording(self) -> EventStore:
        return self._ready("accessing events").store

    def _calibration(self) -> Calibration:
        return self._ready("measuring its overhead").calibration()

    def ops_without_flops(self) -> list[str]:
        """Names of the recorded ops that count no FLOPs because there is no formula for them. Needs with_flops."""
        if not self.with_flops:
            raise ValueError("with_flops=True required for ops_without_flops().")
        return ops_without_formula(self._ready("asking for FLOPs").store)

    def export_chrome_trace(self, path: str | os.PathLike[str], use_python_export: bool = False) -> None:
        """Write the last window as a Kineto trace (JSON, gzipped if the name ends in .gz).

        `use_python_export` leaves out trace_id and host_name, as torch's export of that name does.
        """
        store = self._ready("exporting chrome trace").store
        metadata = {**self.preset_metadata, **self._metadata}
        ids = None if self._observed is None else self._observed.record_function_ids(store)
        writers.get("chrome")(store, path, metadata=metadata, brief=use_python_export, record_function_ids=ids)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write one line per stack, root first, with its metric: input of flame graph tools. Needs with_stack."""
        self._ready("exporting stacks").export_stacks(path, metric)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the last window in this project's own format; profiler.load(path) reads it, on any machine."""
        store = self._ready("saving").store
        store.options.update(self._stored_memory_uses())
        metadata = {**self.preset_metadata, **self._metadata}
        if "distributedInfo" in metadata:
            from .exporters.chrome import host_name  # here, because only recordings of a rank need it

            metadata.setdefault("host_name", dumps(host_name()))  # whose clock it is that times were read on
        writers.get("saved")(store, path, metadata=metadata)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write memory in use by category over time: JSON, gzipped, raw events or HTML, by the name's suffix.

        Needs record_shapes, profile_memory and with_stack.
        """
        warnings.warn(
            "`export_memory_timeline` is deprecated and will be removed in a future version.", FutureWarning, stacklevel=2
        )
        blocks = self.mem_tl = self._memory_blocks()
        from .exporters import memory  # here, because few recordings are written this way

        memory.export(blocks, path, device="cpu" if device is None else device)

    def _stats(self) -> _ProfilerStats | None:
        """What the last window cost by itself, None before the first."""
        return None if self.profiler is None else self.profiler._stats

    def _memory_profile(self) -> MemoryProfile:
        """Which op read, wrote, made and freed which memory, and what the memory was for."""
        profiler = self._checked_for_memory()
        if self._retention is not None:
            raise NotImplementedError("_memory_profile() of a profile that is streamed or bounded: it has no event tree")
        from .analysis.memory.flow.memory_profile import MemoryProfile  # here, because few recordings are read this way

        return MemoryProfile(profiler.kineto_results)

    def _memory_blocks(self) -> MemoryBlocks:
        """Every allocation and free with its category."""
        from .store.memory_profile import MemoryBlocks  # here, as below, because few recordings have memory, shapes and stacks

        profiler = self._checked_for_memory()
        return MemoryBlocks(profiler.store, profiler.storage_notes())

    def _checked_for_memory(self) -> autograd_profile.profile:
        missing = [
            flag for flag in ("record_shapes", "profile_memory", "with_stack") if getattr(self, flag) in (False, SAMPLED)
        ]
        if missing:
            raise ValueError(f"{', '.join(f'{flag}=True' for flag in missing)} required for memory profiling.")
        return self._ready("getting the memory profile")

    def _memory_uses(self) -> Uses | None:
        if not (self.record_shapes and self.profile_memory and self.with_stack) or self.with_stack == SAMPLED:
            return None
        from .analysis.memory.categories import uses

        return uses(self._recording(), self._memory_blocks())

    def _stored_memory_uses(self) -> dict[str, Any]:
        """The option of a store that has them, if they are known."""
        known = self._memory_uses()
        if known is None:
            return {}
        from .analysis.memory.categories import encoded_uses

        return {"memory_uses": encoded_uses(known)}

    def _repr_html_(self) -> str | None:
        """A notebook's view: key_averages() as a table; None, which means repr(), before anything was recorded."""
        return None if self.profiler is None or self.profiler.recording else self.key_averages()._repr_html_()

    # ------------------------------------------------------------------ metadata of a trace

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text under a key at the top level of the trace."""
        if not isinstance(value, str):
            kind = TypeError if isinstance(value, bytes) else AttributeError
            raise kind(f"add_metadata: the value must be a str, not {type(value).__name__}")
        self.add_metadata_json(key, dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a JSON value, given as text, under a key at the top level of the trace."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError("add_metadata_json: key and value must be str")
        self._metadata[key] = checked(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Put a JSON value, given as text, into every trace of this profile; callable before recording starts."""
        self.preset_metadata[key] = checked(value)

    def get_trace_id(self) -> str | None:
        """The id of the current or last window, None before the first."""
        return self.profiler.trace_id if self.profiler is not None else None

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Take trace ids from a function, from the next window on."""
        self.custom_trace_id_callback = callback


_warned: set[str] = set()


def _warn_once(message: str) -> None:
    """Warn once per process and message: a training loop has many cycles."""
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=4)


def _compatible(config: _ExperimentalConfig | None, with_stack: bool) -> _ExperimentalConfig | None:
    """The experimental switches; trace_only is turned off, with a warning, if with_stack is on."""
    if config is None or not config.trace_only or not with_stack:
        return config
    warnings.warn(
        "trace_only=True is incompatible with with_stack=True (stack traces require event post-processing). "
        "Disabling trace_only.",
        stacklevel=4,
    )
    return _ExperimentalConfig(**{**vars(config), "trace_only": False})
