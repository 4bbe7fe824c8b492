"""torch_npu.profiler's names on this project's profiler, whose events(), key_averages() and reports its profiles have, too."""

from __future__ import annotations

from ...profiler.config import ProfilerActivity
from ...profiler.session.schedule import ProfilerAction
from . import dynamic_profile
from .experimental_config import (
    AiCMetrics,
    ExportType,
    HostSystem,
    ProfilerLevel,
    _ExperimentalConfig,
    supported_ai_core_metrics,
    supported_export_type,
    supported_profiler_level,
)
from .profiler import _KinetoProfile, analyse, profile, supported_activities, tensorboard_trace_handler
from .scheduler import Schedule

schedule = Schedule  # torch_npu has both names

__all__ = [
    "AiCMetrics",
    "ExportType",
    "HostSystem",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerLevel",
    "Schedule",
    "_ExperimentalConfig",
    "_KinetoProfile",
    "analyse",
    "dynamic_profile",
    "profile",
    "schedule",
    "supported_activities",
    "supported_ai_core_metrics",
    "supported_export_type",
    "supported_profiler_level",
    "tensorboard_trace_handler",
]
