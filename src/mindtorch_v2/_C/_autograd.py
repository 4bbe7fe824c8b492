"""torch._C._autograd: what scripts ask of the running profile and hand to it."""

from __future__ import annotations

from ..autograd.profiler import (
    DeviceType,
    _disable_profiler,
    _KinetoEvent,
    _profiler_enabled,
    _profiler_type,
    _ProfilerResult,
    _record_function_with_args_enter,
    _record_function_with_args_exit,
    _supported_activities,
    kineto_available,
)

__all__ = [
    "DeviceType",
    "_KinetoEvent",
    "_ProfilerResult",
    "_disable_profiler",
    "_profiler_enabled",
    "_profiler_type",
    "_record_function_with_args_enter",
    "_record_function_with_args_exit",
    "_supported_activities",
    "kineto_available",
]
