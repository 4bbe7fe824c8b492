"""The profiler: torch.profiler's public names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import itt, profiler
from .config import ProfilerActivity, RecordScope, _ExperimentalConfig, kineto_available, supported_activities
from .profiler import _KinetoProfile, profile, tensorboard_trace_handler
from .recording.record_function import record_function
from .session.execution_trace import ExecutionTraceObserver
from .session.schedule import ProfilerAction, schedule
from .session.step_counter import KinetoStepTracker
from .views.events import DeviceType

if TYPE_CHECKING:
    from .formats import TraceError
    from .formats.validate import validate
    from .on_demand import serve_on_demand
    from .results.loaded import load
    from .session.compare import diff
    from .session.live_tensors import live_tensors

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "KinetoStepTracker",
    "ProfilerAction",
    "ProfilerActivity",
    "RecordScope",
    "TraceError",
    "_ExperimentalConfig",
    "_KinetoProfile",
    "diff",
    "itt",
    "kineto_available",
    "live_tensors",
    "load",
    "profile",
    "profiler",
    "record_function",
    "schedule",
    "serve_on_demand",
    "supported_activities",
    "tensorboard_trace_handler",
    "validate",
]

# Reading files is a room that most processes never enter: it is imported when first asked for.
_LATER = {
    "TraceError": "formats",
    "diff": "session.compare",
    "live_tensors": "session.live_tensors",
    "load": "results.loaded",
    "serve_on_demand": "on_demand",
    "validate": "formats.validate",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return found
