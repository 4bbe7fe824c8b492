"""torch.autograd.graph: nodes and edges of the graph, and hooks on what nodes save."""

from __future__ import annotations

from typing import Any

from .._autograd.context import BackwardCFunction
from .._autograd.multi_hooks import _MultiHandle as _MultiHandle
from .._autograd.multi_hooks import register_multi_grad_hook
from .._autograd.nodes.edges import GradientEdge, get_gradient_edge
from .._autograd.nodes.mutation import allow_mutation_on_saved_tensors
from .._autograd.nodes.node import Node as _Node
from .._autograd.nodes.saved_hooks import (
    disable_saved_tensors_hooks,
    increment_version,
    save_on_cpu,
    saved_tensors_hooks,
)
from .._lazy_imports import lazy_exports as _lazy_exports


class _NodeKind(type):
    """Makes every node of the graph an instance of `Node`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _Node | BackwardCFunction)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _Node | BackwardCFunction)


class Node(metaclass=_NodeKind):
    """What every `grad_fn` is an instance of, for `isinstance` alone: no class of nodes has it among its bases."""

    def name(self) -> str:
        """The node's name, as `MulBackward0`."""
        raise NotImplementedError

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that take this node's gradients."""
        raise NotImplementedError

    def metadata(self) -> dict[str, Any]:
        """A dict for notes about the node."""
        raise NotImplementedError

    @property
    def _input_metadata(self) -> list[Any]:
        raise NotImplementedError

    def register_hook(self, fn: Any) -> Any:
        """Call `fn(grad_inputs, grad_outputs)` after the node has run."""
        raise NotImplementedError

    def register_prehook(self, fn: Any) -> Any:
        """Call `fn(grad_outputs)` before the node runs."""
        raise NotImplementedError


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

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
