"""torch.fx: functions and modules as graphs that can be read and changed, and run again as Python.

`symbolic_trace` runs a function on proxies and records what it does; a GraphModule's code is Python.
"""

from __future__ import annotations

from . import immutable_collections
from ._symbolic_trace import PH, Tracer, is_fx_tracing, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
