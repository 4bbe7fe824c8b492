"""torch._C._profiler: the switches and enumerations of the profiler, and the types of the events of its tree."""

from __future__ import annotations

from ..profiler.config import ProfilerActivity, ProfilerConfig, ProfilerState, RecordScope, _ExperimentalConfig
from ..profiler.views.event_tree import (
    _EventType,
    _ExtraFields_Allocation,
    _ExtraFields_Kineto,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _NNModuleInfo,
    _ProfilerEvent,
    _PyFrameState,
    _TensorMetadata,
)

__all__ = [
    "ProfilerActivity",
    "ProfilerConfig",
    "ProfilerState",
    "RecordScope",
    "_EventType",
    "_ExperimentalConfig",
    "_ExtraFields_Allocation",
    "_ExtraFields_Kineto",
    "_ExtraFields_PyCCall",
    "_ExtraFields_PyCall",
    "_ExtraFields_TorchOp",
    "_NNModuleInfo",
    "_ProfilerEvent",
    "_PyFrameState",
    "_TensorMetadata",
]
