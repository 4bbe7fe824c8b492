"""torch.autograd: gradients of recorded computations."""

from __future__ import annotations

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
from . import (
    anomaly_mode,
    forward_ad,
    function,
    functional,
    grad_mode,
    graph,
    profiler,
    profiler_legacy,
    profiler_util,
    variable,
)
from .gradcheck import gradcheck, gradgradcheck
from .profiler import (
    DeviceType,
    ProfilerActivity,
    ProfilerConfig,
    ProfilerState,
    _disable_profiler,
    _profiler_enabled,
    kineto_available,
)
from .variable import Variable

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
