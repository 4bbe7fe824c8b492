"""torch._C._profiler: the switches and enumerations of the profiler."""

from __future__ import annotations

from ..profiler._kineto_config import (
    ProfilerActivity,
    ProfilerConfig,
    ProfilerState,
    RecordScope,
    _ExperimentalConfig,
)

__all__ = ["ProfilerActivity", "ProfilerConfig", "ProfilerState", "RecordScope", "_ExperimentalConfig"]
