"""Nodes of the autograd graph: what was done, and where gradients go next."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .._core.tensor import Tensor
from .handles import Handle

Edge = tuple["Node", int]
Gradients = list[Tensor | None]
# Hooks in order of registration, each under its handle's id.
HookTable = dict[int, Callable[..., Any]]


class GeneralPlan:
    """How the engine runs a node that has an `apply` of its own."""

    keeps_tensors = True  # or may do so

    @staticmethod
    def run(node: Node, grads: Any, retain: bool) -> Gradients:
        results = list(node.apply(grads if node.inputs.__class__ is list else [grads]))
        if not retain:
            node.release()
        results += [None] * (len(node.edges) - len(results))
        return results


class Node:
    """One step of the graph. `edges[i]` says where the gradient of input i goes (None: nowhere).

    `inputs` describes the gradients that the node takes, one per output of the forward op: (shape, NumPy
    dtype) if there is one output, else a list of those. Gradients are brought to that form on their way in.
    """

    __module__ = "mindtorch_v2.autograd.graph"

    __slots__ = ("edges", "hooks", "inputs", "sequence")

    # What the engine calls: plan.run(node, gradient or list of gradients, retain_graph).
    plan: Any = GeneralPlan
    title: str | None = None
    # What was kept of the forward pass; nodes that keep something have a slot of that name.
    saved: Any = None

    is_accumulator = False

    edges: Sequence[Edge | None]
    inputs: Any
    sequence: int
    hooks: Hooks | None

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        """Gradients of the inputs, given those of the outputs."""
        raise NotImplementedError

    def __call__(self, *grads: Tensor | None) -> Any:
        """Run the node by itself: the gradient of its input, or a tuple of them."""
        results = self.plan.run(self, list(grads) if self.inputs.__class__ is list else grads[0], True)
        return results[0] if len(results) == 1 else tuple(results)

    def release(self) -> None:
        """Let go of what was saved; the graph will not be walked again."""

    def name(self) -> str:
        return self.title or type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def metadata(self) -> dict[str, Any]:
        """Whatever anybody wants to keep with a node."""
        return self.own_hooks().metadata

    def _sequence_nr(self) -> int:
        return self.sequence

    def _set_sequence_nr(self, number: int) -> None:
        self.sequence = number

    def own_hooks(self) -> Hooks:
        """This node's hooks, made at the first one."""
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def register_hook(self, fn: Callable[..., Any]) -> Handle:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; it may return other grad_inputs."""
        return Handle(self.own_hooks().after, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> Handle:
        """Call `fn(grad_outputs)` before this node runs; it may return other grad_outputs."""
        return Handle(self.own_hooks().before, fn)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at 0x{id(self):x}>"


class Hooks:
    """Hooks of one node, and notes about it. Most nodes have none, so they are kept apart."""

    __slots__ = ("after", "before", "metadata", "post_accumulate", "retain", "tensor")

    def __init__(self) -> None:
        self.before: HookTable = {}
        self.after: HookTable = {}
        # output number -> hooks on that output's tensor
        self.tensor: dict[int, HookTable] = {}
        # output number -> tensor whose gradient is kept
        self.retain: dict[int, weakref.ref[Tensor]] = {}
        self.post_accumulate: HookTable = {}
        self.metadata: dict[str, Any] = {}
