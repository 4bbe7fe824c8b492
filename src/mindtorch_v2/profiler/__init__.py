"""torch.profiler's public names, and this project's own: load, from_torch, diff, validate, live_tensors, and for
processes that run serve_on_demand, arm, disarm, listen."""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import itt, profiler
from .config import ProfilerActivity, RecordScope, _ExperimentalConfig, kineto_available, supported_activities
from .profiler import profile, tensorboard_trace_handler
from .recording.record_function import record_function
from .session.execution_trace import ExecutionTraceObserver
from .session.schedule import ProfilerAction, schedule
from .session.step_counter import KinetoStepTracker
from .views.events import DeviceType
from .windows import _KinetoProfile

if TYPE_CHECKING:
    from .formats import TraceError
    from .formats.validate import validate
    from .live.environment import arm, disarm
    from .live.page import listen
    from .notebook import load_ipython_extension, unload_ipython_extension
    from .on_demand import serve_on_demand
    from .results.loaded import load
    from .results.torch_profiles import from_torch, trace_handler
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
    "arm",
    "diff",
    "disarm",
    "from_torch",
    "itt",
    "kineto_available",
    "listen",
    "live_tensors",
    "load",
    "load_ipython_extension",
    "profile",
    "profiler",
    "record_function",
    "schedule",
    "serve_on_demand",
    "supported_activities",
    "tensorboard_trace_handler",
    "trace_handler",
    "unload_ipython_extension",
    "validate",
]

# Imported when first used: most processes read no files.
_LAZY = {
    "TraceError": "formats",
    "arm": "live.environment",
    "diff": "session.compare",
    "disarm": "live.environment",
    "from_torch": "results.torch_profiles",
    "listen": "live.page",
    "live_tensors": "session.live_tensors",
    "load": "results.loaded",
    "load_ipython_extension": "notebook",
    "serve_on_demand": "on_demand",
    "trace_handler": "results.torch_profiles",
    "unload_ipython_extension": "notebook",
    "validate": "formats.validate",
}


def _count_steps_of_optimizers() -> None:
    """Count each optimizer's step in KinetoStepTracker, as torch does for a daemon that profiles by steps."""
    from ..optim.optimizer import call_after_steps  # here, because few processes are started so

    call_after_steps(partial(KinetoStepTracker.increment_step, "Optimizer"))


if os.environ.get("KINETO_USE_DAEMON"):
    _count_steps_of_optimizers()


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    return value
