"""The profiler: torch.profiler's public names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import itt, profiler
from ._kineto_config import (
    ProfilerActivity,
    RecordScope,
    _ExperimentalConfig,
    kineto_available,
    supported_activities,
)
from ._schedule import ProfilerAction, schedule
from ._step_tracker import KinetoStepTracker
from .events import DeviceType
from .execution_trace import ExecutionTraceObserver
from .profiler import _KinetoProfile, profile, tensorboard_trace_handler
from .record_function import record_function

if TYPE_CHECKING:
    from ._compare import diff
    from ._live import live_tensors
    from ._on_demand import serve_on_demand
    from .formats import TraceError
    from .formats.loaded import load
    from .formats.validate import validate

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
    "diff": "_compare",
    "live_tensors": "_live",
    "load": "formats.loaded",
    "serve_on_demand": "_on_demand",
    "validate": "formats.validate",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return found
