"""Nodes of the autograd graph: each computes the gradients of an op's inputs, and its edges say which nodes take them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.device import device as Device
from ..._core.dtype import from_numpy
from ..._core.tensor import Tensor
from ..handles import Handle

Edge = tuple["Node", int]
Gradients = list[Tensor | None]
# Hooks in order of registration, each under its handle's id.
HookTable = dict[int, Callable[..., Any]]


class GeneralPlan:
    """The plan of a node with an `apply` of its own; the nodes of declared ops have compiled plans."""

    keeps_tensors = True  # it may: only the node knows

    @staticmethod
    def run(node: Node, grads: Any, retain: bool) -> Gradients:
        """Apply a node to its gradient, or list of gradients; one result per edge."""
        results = list(node.apply(grads if node.inputs.__class__ is list else [grads]))
        if not retain:
            node.release()
        results += [None] * (len(node.edges) - len(results))
        return results


class Node:
    """One op of the graph. `edges[i]`, a node and its output number, takes the gradient of input i (None: it needs none).

    `inputs` has the form of the gradients that the node takes, one per output of the forward op: (shape, NumPy dtype) if there
    is one output, else a list of those. The engine brings gradients to that form before the node runs.
    """

    __module__ = "mindtorch_v2.autograd.graph"

    __slots__ = ("edges", "hooks", "inputs", "sequence")

    # What the engine calls: plan.run(node, gradient or list of gradients, retain_graph).
    plan: Any = GeneralPlan
    title: str | None = None
    # Values saved by the forward pass; nodes that save something have a slot of that name.
    saved: Any = None

    is_accumulator = False

    edges: Sequence[Edge | None]
    inputs: Any
    sequence: int
    hooks: Hooks | None

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        """The gradients of the op's inputs from those of its outputs."""
        raise NotImplementedError

    def __call__(self, *grads: Tensor | None) -> Any:
        """Run the node outside a backward pass; returns the gradient of its input, or a tuple of them."""
        form = self.inputs
        expected = len(form) if form.__class__ is list else 1
        if len(grads) != expected:
            raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
        for position, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, Tensor):
                raise TypeError(f"argument {position} is not a Variable")
        results = self.plan.run(self, list(grads) if form.__class__ is list else grads[0], True)
        return results[0] if len(results) == 1 else tuple(results)

    def release(self) -> None:
        """Free the saved values, after a pass without `retain_graph`."""

    def name(self) -> str:
        """torch's name of the node, as `MulBackward0`."""
        return self.title or type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The edges as torch shows them, with (None, 0) for an input that needs no gradient."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def _input_metadata(self) -> tuple[InputMetadata | None, ...]:
        """The form of each gradient that the node takes."""
        forms = self.inputs if self.inputs.__class__ is list else [self.inputs]
        return tuple(None if form is None else InputMetadata(*form) for form in forms)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict for the program's notes about this node; anomaly mode stores the stack of the forward call there."""
        return self.own_hooks().metadata

    def _sequence_nr(self) -> int:
        return self.sequence

    def _set_sequence_nr(self, number: int) -> None:
        self.sequence = number

    def own_hooks(self) -> Hooks:
        """This node's hooks, created at the first use."""
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def register_hook(self, fn: Callable[..., Any]) -> Handle:
        """Call `fn(grad_inputs, grad_outputs)` after this node has run; it may return other grad_inputs."""
        return Handle(self.own_hooks().after, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> Handle:
        """Call `fn(grad_outputs)` before this node runs; it may return other grad_outputs."""
        return Handle(self.own_hooks().before, fn)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at 0x{id(self):x}>"


class InputMetadata:
    """Shape and dtype of a gradient that a node takes, as torch's tools read them."""

    is_nested_tensor = False
    is_cpp_nested_tensor = False

    def __init__(self, shape: tuple[int, ...], np_dtype: Any, device: Any = "cpu") -> None:
        self.shape = list(shape)
        self.dtype = from_numpy(np_dtype)
        self.device = Device(device)


class Hooks:
    """The hooks and the metadata of one node; a separate object, since most nodes have none."""

    __slots__ = ("after", "before", "metadata", "post_accumulate", "retain", "tensor")

    def __init__(self) -> None:
        self.before: HookTable = {}
        self.after: HookTable = {}
        # output number -> hooks on that output's tensor
        self.tensor: dict[int, HookTable] = {}
        # output number -> tensor on which retain_grad() was called
        self.retain: dict[int, weakref.ref[Tensor]] = {}
        self.post_accumulate: HookTable = {}
        self.metadata: dict[str, Any] = {}
