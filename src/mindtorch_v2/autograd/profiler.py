"""torch.autograd.profiler: `profile` and `record_function` under their older names, and the parts they are made of."""

from __future__ import annotations

from typing import Any

from .._core.threads import threads
from ..profiler.config import ActiveProfilerType
from ..profiler.config import ProfilerActivity as ProfilerActivity
from ..profiler.config import ProfilerConfig as ProfilerConfig
from ..profiler.config import ProfilerState as ProfilerState
from ..profiler.config import _ExperimentalConfig as _ExperimentalConfig
from ..profiler.config import kineto_available as kineto_available
from ..profiler.config import supported_activities as _supported_activities  # noqa: F401
from ..profiler.recording import active
from ..profiler.recording.functions_with_arguments import enter_with_arguments as _record_function_with_args_enter  # noqa: F401
from ..profiler.recording.functions_with_arguments import leave as _record_function_with_args_exit  # noqa: F401
from ..profiler.recording.record_function import record_function
from ..profiler.recording.recorder import active_recorders as _active_recorders
from ..profiler.recording.recorder import recorders_by_thread as _recorders_by_thread
from ..profiler.session.autograd_profile import profile
from ..profiler.session.legacy import EnforceUnique, emit_itt, emit_nvtx, load_nvprof, parse_nvprof_trace
from ..profiler.session.step_counter import KinetoStepTracker
from ..profiler.views.event_list import EventList
from ..profiler.views.events import DeviceType as DeviceType
from ..profiler.views.events import FunctionEvent, MemRecordsAcc
from ..profiler.views.kineto_results import _KinetoEvent as _KinetoEvent
from ..profiler.views.kineto_results import _ProfilerResult as _ProfilerResult
from .profiler_util import MEMORY_EVENT_NAME as MEMORY_EVENT_NAME
from .profiler_util import OUT_OF_MEMORY_EVENT_NAME as OUT_OF_MEMORY_EVENT_NAME

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]


def _profiler_enabled() -> bool:
    """Whether the calling thread is being recorded."""
    return any(recorder.records_thread(threads.state) for recorder in _active_recorders)


def _profiler_type() -> ActiveProfilerType:
    """The kind of profile that records the calling thread, the newest one's; NONE if there is none."""
    kinds = [
        session.active_type
        for session in active.running()
        if isinstance(session, profile) and session._records_thread(threads.state)
    ]
    return kinds[-1] if kinds else ActiveProfilerType.NONE


def _disable_profiler() -> None:
    """Stop every profile that records the calling thread; each keeps what it has recorded."""
    for session in active.running():
        if isinstance(session, profile) and session._records_thread(threads.state):
            session.abandon()


def __getattr__(name: str) -> Any:
    if name == "_is_profiler_enabled":
        return bool(_recorders_by_thread)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
