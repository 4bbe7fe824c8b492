"""The profiler: torch.profiler's public names."""

from __future__ import annotations

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

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "KinetoStepTracker",
    "ProfilerAction",
    "ProfilerActivity",
    "RecordScope",
    "_ExperimentalConfig",
    "_KinetoProfile",
    "itt",
    "kineto_available",
    "profile",
    "profiler",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
