"""torch.autograd.profiler: the inner profiler and its relatives."""

from __future__ import annotations

from typing import Any

from ..profiler._autograd_profile import profile
from ..profiler._legacy import EnforceUnique, emit_itt, emit_nvtx, load_nvprof, parse_nvprof_trace
from ..profiler._recorder import sites as _sites
from ..profiler._step_tracker import KinetoStepTracker
from ..profiler.event_list import EventList
from ..profiler.events import FunctionEvent, MemRecordsAcc
from ..profiler.record_function import record_function

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


def kineto_available() -> bool:
    """Whether profiles have the form of Kineto's: they do."""
    return True


def __getattr__(name: str) -> Any:
    if name == "_is_profiler_enabled":
        return bool(_sites)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
