"""Nodes of the autograd graph: what was done, what it needs to be undone, and where gradients go next."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch.registry import aten

Edge = tuple["Node", int]
# Runs as soon as it is ready: larger than any forward op's number.
ACCUMULATE_SEQUENCE = 1 << 62


class Node:
    """One step of the graph. `edges[i]` says where the gradient of input i goes (None: nowhere)."""

    __slots__ = ("__dict__", "__weakref__", "edges", "hooks", "inputs", "outputs", "sequence")

    is_accumulator = False
    title: str | None = None

    edges: list[Edge | None]
    # (shape, NumPy dtype) of each input that takes a gradient; gradients are brought to it.
    inputs: list[Any]
    outputs: int
    sequence: int
    hooks: Any

    def apply(self, grads: list[Tensor | None]) -> Sequence[Tensor | None]:
        """Gradients of the inputs, given those of the outputs."""
        raise NotImplementedError

    def release(self) -> None:
        """Let go of what was saved; the graph will not be walked again."""

    def name(self) -> str:
        return self.title or type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def metadata(self) -> dict[str, Any]:
        return self.__dict__.setdefault("_metadata", {})

    def _sequence_nr(self) -> int:
        return self.sequence

    def _hooks(self) -> Hooks:
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(grad_inputs, grad_outputs)` after this node ran; it may return other grad_inputs."""
        return Handle(self._hooks().after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(grad_outputs)` before this node runs; it may return other grad_outputs."""
        return Handle(self._hooks().before, hook)

    def __repr__(self) -> str:
        return f"<{self.name()} object at 0x{id(self):x}>"


class Hooks:
    """Hooks of one node, in order of registration. Most nodes have none, so they are kept apart."""

    __slots__ = ("after", "before", "post_accumulate", "retain", "tensor")

    def __init__(self) -> None:
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        # output number -> hooks on that output's tensor
        self.tensor: dict[int, dict[int, Callable[..., Any]]] = {}
        # output number -> tensor whose gradient is kept
        self.retain: dict[int, weakref.ref[Tensor]] = {}
        self.post_accumulate: dict[int, Callable[..., Any]] = {}


class Handle:
    """Removes a hook again."""

    _next = 0

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.id = Handle._next
        Handle._next += 1
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


class AccumulateGrad(Node):
    """The end of a path: adds what arrives to a leaf's `.grad`. The leaf owns it, so it holds the leaf weakly."""

    __slots__ = ("_variable",)

    is_accumulator = True
    title = "torch::autograd::AccumulateGrad"

    def __init__(self, variable: Tensor) -> None:
        self._variable = weakref.ref(variable)
        self.edges = []
        self.inputs = []
        self.outputs = 1
        self.sequence = ACCUMULATE_SEQUENCE
        self.hooks = None

    @property
    def variable(self) -> Tensor | None:
        return self._variable()

    def apply(self, grads: list[Tensor | None]) -> Sequence[Tensor | None]:
        variable = self._variable()
        grad = grads[0]
        if variable is None or grad is None:
            return ()
        held = variable._grad
        if held is None:
            if threads.state.grad_enabled:
                variable._grad = grad
            elif _may_steal(grads, variable):
                variable._grad = aten.detach(grad)
            else:
                variable._grad = aten.clone(grad)
        elif threads.state.grad_enabled:
            variable._grad = held + grad  # type: ignore[operator]
        else:
            held.add_(grad)  # type: ignore[attr-defined]
        if self.hooks is not None:
            for hook in list(self.hooks.post_accumulate.values()):
                hook(variable)
        return ()

    def name(self) -> str:
        return self.title


def _may_steal(grads: list[Tensor | None], variable: Tensor) -> bool:
    """Whether a gradient can become `.grad` as it is: nobody else holds it and it is laid out like the leaf."""
    grad = grads[0]
    assert grad is not None
    return unshared(grad, 3) and grad._array.strides == variable._array.strides and not grad._keys


def unshared(grad: Tensor, held: int) -> bool:
    """Whether only `held` known references to a gradient exist, and nobody shares its memory."""
    return getrefcount(grad) <= held + 2 and grad._base is None and (
        grad._storage is None or getrefcount(grad._storage) <= 2)

