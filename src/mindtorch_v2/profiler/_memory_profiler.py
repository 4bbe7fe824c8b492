"""torch.profiler._memory_profiler: the memory profile and its parts under torch's module name."""

from __future__ import annotations

from .analysis.memory.flow.categories import CategoryDict
from .analysis.memory.flow.data_flow import DataFlowEdge, DataFlowGraph, DataFlowNode, OpTree, SizeMap
from .analysis.memory.flow.memory_profile import MemoryProfile
from .analysis.memory.flow.schema_matching import SchemaMatcher
from .analysis.memory.flow.tensor_keys import Key, TensorAndID, TensorKey, extract_gradients, extract_parameters
from .store.memory_profile import Action, Category

__all__ = [
    "Action",
    "Category",
    "CategoryDict",
    "DataFlowEdge",
    "DataFlowGraph",
    "DataFlowNode",
    "Key",
    "MemoryProfile",
    "OpTree",
    "SchemaMatcher",
    "SizeMap",
    "TensorAndID",
    "TensorKey",
    "extract_gradients",
    "extract_parameters",
]
