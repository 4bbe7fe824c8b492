"""torch_npu's profile, its handler that writes `*_ascend_pt` folders, and analyse() for folders that were only recorded."""

from __future__ import annotations

import copy
import os
import platform
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

from ..._core.files import name_in_folder
from ..._dispatch import observer
from ...profiler import profiler as kineto
from ...profiler.config import ProfilerActivity, supported_activities
from ...profiler.config import _ExperimentalConfig as _Switches
from ...profiler.formats import TraceError
from ...profiler.formats.ascend import export
from ...profiler.formats.ascend.folder import OUTPUT
from ...profiler.recording.hidden_threads import hide_thread
from ...profiler.session.schedule import ProfilerAction
from ...profiler.store.store import EventStore
from .experimental_config import ProfilerLevel, _ExperimentalConfig, supported_export_type
from .scheduler import Schedule

__all__ = ["_KinetoProfile", "analyse", "profile", "supported_activities", "tensorboard_trace_handler"]

_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
_recording_now: list[profile] = []
_FOLDER = re.compile(r".*_ascend_pt")


class profile(kineto.profile):
    """torch_npu's profile, with the results that a profile of this project has.

    Every thread is recorded. experimental_config is torch_npu's. Without activities the device is recorded where the program
    uses one. The other arguments are those of mindtorch_v2.profiler.profile.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
    ) -> None:
        if experimental_config is not None and not isinstance(experimental_config, _ExperimentalConfig):
            raise TypeError(
                "experimental_config must be torch_npu.profiler._ExperimentalConfig, "
                f"not {type(experimental_config).__module__}.{type(experimental_config).__qualname__}"
            )
        for name, function in (("schedule", schedule), ("on_trace_ready", on_trace_ready)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be callable, not {type(function).__name__}")
        self.npu_config = experimental_config or _ExperimentalConfig()
        chosen = set(supported_activities()) if activities is None else set(activities)
        if self.npu_config._profiler_level == ProfilerLevel.Level_none:
            chosen = {activity for activity in chosen if activity is not ProfilerActivity.NPU} or {ProfilerActivity.CPU}
        super().__init__(
            activities=chosen,
            schedule=schedule,
            on_trace_ready=on_trace_ready,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=_Switches(profile_all_threads=True),
            custom_trace_id_callback=custom_trace_id_callback,
        )

    # ------------------------------------------------------------------ while it runs

    def start_trace(self) -> None:
        """Begin to record; marks of mstx are recorded if the options ask for them."""
        observer.mark_filters.append(self.npu_config.wants_domain)
        _recording_now.append(self)
        try:
            super().start_trace()
        except BaseException:
            self._no_longer_running()
            raise

    def stop_trace(self) -> None:
        """End the window. Until then the options say which marks the device tells of."""
        try:
            super().stop_trace()
        finally:
            self._no_longer_running()

    def _withdraw(self) -> None:
        self._no_longer_running()
        super()._withdraw()

    def _no_longer_running(self) -> None:
        if any(other is self for other in _recording_now):
            _recording_now[:] = [other for other in _recording_now if other is not self]
            observer.mark_filters.remove(self.npu_config.wants_domain)

    @classmethod
    def enable_profiler_in_child_thread(cls, **options: Any) -> None:
        """Check that a profile runs which records what `options` ask for: every thread is recorded anyway.

        RuntimeError if none runs, NotImplementedError for an option that the running one does not have: threads cannot differ.
        """
        if not _recording_now:
            raise RuntimeError("enable_profiler_in_child_thread: no profile is running")
        unknown = [name for name in options if name not in _FLAGS]
        if unknown:
            raise TypeError(f"enable_profiler_in_child_thread: unknown option {unknown[0]!r}, known are {', '.join(_FLAGS)}")
        missing = [name for name, value in options.items() if value and not getattr(_recording_now[-1], name)]
        if missing:
            raise NotImplementedError(
                f"enable_profiler_in_child_thread({missing[0]}=True): the profile that runs was started without it, and "
                "threads of one profile record the same"
            )

    @classmethod
    def disable_profiler_in_child_thread(cls) -> None:
        """Do nothing: the thread is recorded until the profile ends."""

    # ------------------------------------------------------------------ results

    def export_chrome_trace(self, output_path: str, use_python_export: bool = False) -> None:  # type: ignore[override]
        """Write the last window as a Chrome trace; the name must end in .json or .json.gz."""
        if not os.fspath(output_path).endswith((".json", ".json.gz")):
            raise RuntimeError("Invalid parameter output_path, which must be a json file.")
        super().export_chrome_trace(output_path, use_python_export)

    def export_stacks(self, output_path: str, metric: str = "self_cpu_time_total") -> None:  # type: ignore[override]
        """Write stacks with the time on the CPU or, by "self_npu_time_total", on the device."""
        super().export_stacks(output_path, "self_privateuse1_time_total" if metric == "self_npu_time_total" else metric)

    def export_memory_timeline(self, output_path: str, device: str | None = None) -> None:  # type: ignore[override]
        """Write memory in use by category over time."""
        super().export_memory_timeline(output_path, device)

    def recorded(self) -> EventStore:
        """The last window with what Ascend folders tell besides: options, and what the program added."""
        store = copy.copy(self._recording())
        store.metadata = {**store.metadata, **self._trace_metadata(), "ascend_config": self._settings()}
        return store

    def _settings(self) -> dict[str, Any]:
        schedule = self.schedule.settings() if isinstance(self.schedule, Schedule) else None
        activities = sorted("ProfilerActivity." + ("CPU" if a is ProfilerActivity.CPU else "NPU") for a in self.activities)
        common = {"activities": activities, "schedule": schedule, **{flag: bool(getattr(self, flag)) for flag in _FLAGS}}
        return {"common_config": common, "experimental_config": self.npu_config.settings()}


_KinetoProfile = profile


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str] | None = None,
    worker_name: str | None = None,
    analyse_flag: bool = True,
    async_mode: bool = False,
) -> Callable[[profile], None]:
    """An on_trace_ready that writes each window as `{worker}_{time}_ascend_pt` below a folder.

    dir_name: $ASCEND_WORK_PATH/profiling_data or the current folder if not given. worker_name: host name and process id if not
    given. analyse_flag: False writes the recording alone, which analyse() processes later. async_mode: files are written by
    another thread while the program goes on; the interpreter waits for it before it ends.
    """
    if worker_name:
        name_in_folder(worker_name, "worker_name")
    for name, flag in (("analyse_flag", analyse_flag), ("async_mode", async_mode)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be a bool, not {type(flag).__name__}")

    def handler(prof: profile) -> None:
        if not isinstance(prof, profile):
            raise TypeError("this handler is for torch_npu's profile: mindtorch_v2.profiler has one of the same name")
        folder = dir_name
        if folder is None:
            work = os.environ.get("ASCEND_WORK_PATH")
            folder = os.path.join(work, "profiling_data") if work else os.curdir
        os.makedirs(folder, exist_ok=True)
        config = prof.npu_config
        write = partial(
            export.export,
            prof.recorded(),
            _new_folder(os.fspath(folder), worker_name),
            config.export_type if analyse_flag else (),
            keep_recording=not config._data_simplification,
        )
        if async_mode:
            threading.Thread(target=_written_aside, args=(write,), name="profiler folder").start()
        else:
            write()

    return handler


def _new_folder(above: str, worker: str | None) -> str:
    """A name that no folder has yet."""
    worker = worker or name_in_folder(f"{platform.node()}_{os.getpid()}", "the host's name")
    while True:
        now = time.time_ns() // 1_000_000
        stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(now // 1000)) + f"{now % 1000:03}"
        path = os.path.join(above, f"{worker}_{stamp}_ascend_pt")
        if path not in _given and not os.path.lexists(path):
            _given.add(path)
            return path
        time.sleep(0.001)  # names have milliseconds


_given: set[str] = set()  # names of folders that another thread may be about to write


def _written_aside(write: Callable[[], None]) -> None:
    hide_thread()
    try:
        write()
    except OSError as error:  # there is no caller to handle it
        warnings.warn(f"the profiler's folder could not be written: {error}", RuntimeWarning, stacklevel=2)


def analyse(
    profiler_path: str | os.PathLike[str], max_process_number: int | None = None, export_type: str | list[str] | None = None
) -> list[str]:
    """Write the files of folders that were recorded with analyse_flag=False; returns those that it processed.

    profiler_path: such a folder, or one with several. max_process_number: how many processes work on several of them, half of
    the cores if not given. export_type: "text", "db" or a list, what each was recorded with if not given. A folder that cannot
    be processed is a warning. TraceError: there is none.
    """
    if max_process_number is not None and (type(max_process_number) is not int or max_process_number < 1):
        raise ValueError(f"max_process_number must be a positive int, got {max_process_number!r}")
    forms = [export_type] if isinstance(export_type, str) else export_type
    unknown = [form for form in forms or () if form not in supported_export_type()]
    if unknown:
        raise ValueError(f"export_type is text or db, not {unknown[0]!r}")
    top = os.fspath(profiler_path)
    found = [top] if _FOLDER.fullmatch(os.path.basename(os.path.abspath(top))) else []
    if not found and os.path.isdir(top):
        found = sorted(os.path.join(top, name) for name in os.listdir(top) if _FOLDER.fullmatch(name))
    if not found:
        raise TraceError(f"{top!r} is no *_ascend_pt folder and has none in it")
    waiting = [path for path in found if not os.path.isdir(os.path.join(path, OUTPUT))]
    processes = min(max_process_number or max((os.cpu_count() or 2) // 2, 1), len(waiting))
    work = partial(_analyzed, forms=forms)
    if processes > 1:
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            failures = list(pool.map(work, waiting))
    else:
        failures = [work(path) for path in waiting]
    for path, failure in zip(waiting, failures, strict=True):
        if failure:
            warnings.warn(f"{path} could not be analyzed: {failure}", RuntimeWarning, stacklevel=2)
    return [path for path, failure in zip(waiting, failures, strict=True) if not failure]


def _analyzed(path: str, forms: list[str] | None) -> str:
    """Process one folder; returns what kept it from being done, "" if nothing did."""
    try:
        export.analyse(path, forms)
    except (OSError, TraceError) as error:
        return str(error)
    return ""
