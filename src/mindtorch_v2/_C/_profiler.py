"""torch._C._profiler: the switches and enumerations of the profiler, and the types of the events of its tree."""

from __future__ import annotations

from ..profiler.config import (
    ActiveProfilerType,
    ProfilerActivity,
    ProfilerConfig,
    ProfilerState,
    RecordScope,
    _ExperimentalConfig,
    _set_cuda_sync_enabled_val,
    _set_fwd_bwd_enabled_val,
    _set_record_concrete_inputs_enabled_val,
)
from ..profiler.recording.functions_with_arguments import _RecordFunctionFast
from ..profiler.views.event_tree import (
    _EventType,
    _ExtraFields_Allocation,
    _ExtraFields_Kineto,
    _ExtraFields_PyCall,
    _ExtraFields_PyCCall,
    _ExtraFields_TorchOp,
    _NNModuleInfo,
    _OptimizerInfo,
    _ProfilerEvent,
    _PyFrameState,
    _TensorMetadata,
)

__all__ = [
    "ActiveProfilerType",
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
    "_OptimizerInfo",
    "_ProfilerEvent",
    "_PyFrameState",
    "_RecordFunctionFast",
    "_TensorMetadata",
    "_set_cuda_sync_enabled_val",
    "_set_fwd_bwd_enabled_val",
    "_set_record_concrete_inputs_enabled_val",
]
