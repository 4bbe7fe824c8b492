"""torch.autograd.graph: nodes and edges of the graph, and hooks on what nodes save."""

from __future__ import annotations

from .._autograd.multi_hooks import _MultiHandle as _MultiHandle
from .._autograd.multi_hooks import register_multi_grad_hook
from .._autograd.nodes.edges import GradientEdge, get_gradient_edge
from .._autograd.nodes.node import Node
from .._autograd.nodes.saved_hooks import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    increment_version,
    save_on_cpu,
    saved_tensors_hooks,
)

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]
