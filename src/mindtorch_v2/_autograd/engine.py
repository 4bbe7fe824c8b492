"""The engine: walks the graph from the roots, newest node first, and hands gradients on.

Each node shows in a profile as `autograd::engine::evaluate_function: X` around `X`; what the engine does
to a gradient after the node (summing it to the input's shape, adding several up) lies between the two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from sys import getrefcount
from typing import Any

from .._core.tensor import Tensor
from .._core.threads import ThreadState, threads
from .._dispatch import namespace, observer
from .._dispatch.registry import aten
from .node import Node
from .reduction import to_input

_EVALUATE = "autograd::engine::evaluate_function: "


def _dependencies(roots: Iterable[Node]) -> dict[Node, int]:
    """How many edges lead to each node that can be reached; iterative, since graphs may be deep."""
    counts: dict[Node, int] = dict.fromkeys(roots, 0)
    stack = list(counts)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None:
                node = edge[0]
                if node in counts:
                    counts[node] += 1
                else:
                    counts[node] = 1
                    stack.append(node)
    return counts


def _leading_to(targets: set[Node], counts: dict[Node, int]) -> set[Node]:
    """The nodes from which a target can be reached, targets included."""
    parents: dict[Node, list[Node]] = {}
    for node in counts:
        for edge in node.edges:
            if edge is not None:
                parents.setdefault(edge[0], []).append(node)
    found = {node for node in targets if node in counts}
    stack = list(found)
    while stack:
        for node in parents.get(stack.pop(), ()):
            if node not in found:
                found.add(node)
                stack.append(node)
    return found


class GraphTask:
    """One backward pass."""

    def __init__(self, retain_graph: bool, create_graph: bool, targets: dict[tuple[Node, int], int] | None) -> None:
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        # With targets, gradients are captured there and accumulated nowhere.
        self.targets = targets
        self.captured: dict[int, Tensor] = {}

    def run(self, roots: list[tuple[Node, int, Tensor]]) -> None:
        state = threads.state
        counts = _dependencies(node for node, _, _ in roots)
        needed: set[Node] | None = None
        target_nodes: dict[Node, list[tuple[int, int]]] = {}
        if self.targets is not None:
            for (node, number), index in self.targets.items():
                target_nodes.setdefault(node, []).append((number, index))
            needed = _leading_to(set(target_nodes), counts)
        buffers: dict[Node, list[Tensor | None]] = {}
        ready: list[tuple[int, int, Node]] = []
        leaves: deque[Node] = deque()
        order = 0
        for node, number, grad in roots:
            _deliver(buffers, node, number, grad)
        for node in list(buffers):
            if counts[node] == 0:
                heappush(ready, (-node.sequence, order, node))
                order += 1
        enabled = state.grad_enabled
        state.grad_enabled = self.create_graph
        try:
            while True:
                if leaves:
                    node = leaves.popleft()
                elif ready:
                    node = heappop(ready)[2]
                else:
                    return
                grads = buffers.pop(node, None)
                if grads is None:
                    grads = [None] * node.outputs
                for following in self._evaluate(node, grads, buffers, counts, needed, target_nodes, state):
                    if following.is_accumulator:
                        leaves.append(following)
                    else:
                        heappush(ready, (-following.sequence, order, following))
                        order += 1
        finally:
            state.grad_enabled = enabled

    def _evaluate(self, node: Node, grads: list[Tensor | None], buffers: dict[Node, list[Tensor | None]],
                  counts: dict[Node, int], needed: set[Node] | None, targets: dict[Node, list[tuple[int, int]]],
                  state: ThreadState) -> list[Node]:
        """Run one node and hand its results on; returns the nodes that became ready."""
        watched = namespace.watch and state.span is not None
        start = observer.clock() if watched else 0
        sequence = -1 if node.is_accumulator else node.sequence
        following: list[Node] = []
        try:
            if node.hooks is not None:
                _run_tensor_hooks(node, grads)
            skip = False
            if needed is not None:
                for number, index in targets.get(node, ()):
                    grad = grads[number]
                    if grad is not None:
                        self.captured[index] = grad
                # A target is evaluated only if it lies on the way to another one.
                skip = node.is_accumulator or node not in needed or not any(
                    edge is not None and edge[0] in needed for edge in node.edges)
            results: Any = ()
            if not skip and any(grad is not None for grad in grads):
                results = self._apply(node, grads, watched, sequence, state)
            grads.clear()
            for position, edge in enumerate(node.edges):
                if edge is None:
                    continue
                target, number = edge
                if needed is None or target in needed:
                    grad = results[position] if position < len(results) else None
                    if grad is not None:
                        grad = to_input(node, position, grad)
                        if results.__class__ is list:
                            results[position] = None  # so that the buffer is its only holder
                        _deliver(buffers, target, number, grad)
                left = counts[target] - 1
                counts[target] = left
                if left == 0 and (needed is None or target in needed):
                    following.append(target)
        finally:
            if watched and state.span is not None:
                state.span(_EVALUATE + node.name(), observer.ENGINE, start, observer.clock(), sequence)
        return following

    def _apply(self, node: Node, grads: list[Tensor | None], watched: bool, sequence: int, state: ThreadState) -> Any:
        hooks = node.hooks
        if hooks is not None:
            for hook in list(hooks.before.values()):
                changed = hook(tuple(grads))
                if changed is not None:
                    grads[:] = changed if isinstance(changed, tuple | list) else [changed]
        start = observer.clock() if watched else 0
        try:
            results = node.apply(grads)
        finally:
            if watched and state.span is not None:
                state.span(node.name(), observer.BACKWARD, start, observer.clock(), sequence)
        if len(results) < len(node.edges):
            results = [*results, *[None] * (len(node.edges) - len(results))]
        if hooks is not None and hooks.after:
            for hook in list(hooks.after.values()):
                changed = hook(tuple(results), tuple(grads))
                if changed is not None:
                    results = list(changed) if isinstance(changed, tuple | list) else [changed]
        if not self.retain_graph:
            node.release()
        return results


def _run_tensor_hooks(node: Node, grads: list[Tensor | None]) -> None:
    """Hooks on the tensors whose gradients arrived, and gradients to keep on them."""
    hooks = node.hooks
    for number, registered in hooks.tensor.items():
        for hook in list(registered.values()):
            grad = grads[number]
            if grad is not None:
                changed = hook(grad)
                if changed is not None:
                    grads[number] = changed
    for number, reference in hooks.retain.items():
        tensor, grad = reference(), grads[number]
        if tensor is not None and grad is not None:
            tensor._grad = grad if tensor._grad is None else tensor._grad + grad


def _deliver(buffers: dict[Node, list[Tensor | None]], node: Node, number: int, grad: Tensor) -> None:
    """Add a gradient to what has arrived for a node's output."""
    buffer = buffers.get(node)
    if buffer is None:
        buffer = buffers[node] = [None] * node.outputs
    held = buffer[number]
    if held is None:
        buffer[number] = grad
    # 3: the buffer, `held`, and the argument of getrefcount.
    elif (not threads.state.grad_enabled and getrefcount(held) <= 3 and held._base is None
          and (held._storage is None or getrefcount(held._storage) <= 2) and _same_form(held, grad)):
        aten.add_(held, grad)
    else:
        buffer[number] = aten.add(held, grad)


def _same_form(held: Tensor, grad: Tensor) -> bool:
    return held._array.shape == grad._array.shape and held._array.dtype == grad._array.dtype
