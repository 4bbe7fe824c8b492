"""torch.autograd: backward passes, grad modes, custom Functions and gradient checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._autograd.anomaly import detect_anomaly, set_detect_anomaly
from .._autograd.backward import backward, grad
from .._autograd.function import Function
from .._autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .._lazy_imports import lazy_exports as _lazy_exports
from . import anomaly_mode, function, grad_mode, variable
from .gradcheck import gradcheck, gradgradcheck
from .variable import Variable

if TYPE_CHECKING:
    from . import forward_ad, functional, graph, profiler, profiler_legacy, profiler_util
    from .profiler import (
        DeviceType,
        ProfilerActivity,
        ProfilerConfig,
        ProfilerState,
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
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]

# Imported at their first use: training needs none of them.
__getattr__, __dir__ = _lazy_exports(
    __name__,
    ("_functions", "forward_ad", "functional", "graph", "profiler", "profiler_legacy", "profiler_util"),
    {
        ".profiler": (
            "DeviceType",
            "ProfilerActivity",
            "ProfilerConfig",
            "ProfilerState",
            "_KinetoEvent",
            "_ProfilerResult",
            "_disable_profiler",
            "_profiler_enabled",
            "_profiler_type",
            "_record_function_with_args_enter",
            "_record_function_with_args_exit",
            "_supported_activities",
            "kineto_available",
        ),
        "._names": ("SavedTensor", "_calculate_shape", "torch"),
    },
)
