"""The walk of a pass that is watched, wants only some gradients, or looks out for NaN.

Each node shows in a profile as `autograd::engine::evaluate_function: X` around `X`; what the engine does
to a gradient after the node (summing it to the input's shape, adding several up) lies between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.threads import ThreadState, threads
from .._dispatch import namespace, observer
from . import anomaly
from .accumulate import AccumulateGrad
from .compiled import partial_run
from .engine import GraphTask, Waiting, run_leaf
from .graph import OpNode
from .hooks import run_hooked, run_tensor_hooks
from .node import Edge, Gradients, Node

_EVALUATE = "autograd::engine::evaluate_function: "


def walk_for(task: GraphTask) -> Callable[[GraphTask, Node, Waiting], None] | None:
    """The walk that a pass needs: this one, or None where the plain one will do."""
    if namespace.watch and threads.state.span is not None or task.targets is not None or anomaly.state.enabled:
        return _walk
    return None


def _walk(task: GraphTask, node: Node, waiting: Waiting) -> None:
    if task.targets is not None:
        task.needed = _leading_to({target for target, _ in task.targets}, node, task.pending)
    evaluation = _Evaluation(task)
    pending, leaves = task.pending, task.leaves
    following: Node | None = node
    while following is not None:
        node = following
        following = evaluation.evaluate(node, waiting)
        while leaves:
            leaf = leaves.pop(0)
            evaluation.evaluate(leaf, pending.pop(leaf))
        following = task.next_ready(following)
        if following is not None:
            waiting = pending.pop(following)


class _Evaluation:
    """Evaluates one node after another of a pass."""

    def __init__(self, task: GraphTask) -> None:
        self.task = task
        self.state: ThreadState = threads.state
        # Where gradients are to be caught: node -> edges.
        self.catches: dict[Node, list[Edge]] = {}
        if task.capture:
            for edge in task.targets or ():
                self.catches.setdefault(edge[0], []).append(edge)

    def evaluate(self, node: Node, waiting: Waiting) -> Node | None:
        """Run one node and hand its results on; returns as `hand_on` does."""
        start = observer.clock()
        try:
            results = self._run(node, waiting)
            if results is None:
                return None
            if anomaly.state.enabled:
                anomaly.check(node, results)
            return self.task.hand_on(node, results)
        except Exception:
            if anomaly.state.enabled:
                anomaly.report(node)
            raise
        finally:
            self._span(_EVALUATE + node.name(), observer.ENGINE, start, node)

    def _span(self, name: str, kind: int, start: int, node: Node, inputs: observer.Outline = ()) -> None:
        span = self.state.span
        if namespace.watch and span is not None:
            span(name, kind, start, observer.clock(), -1 if node.is_accumulator else node.sequence, inputs)

    def _outline(self, grads: Any) -> observer.Outline:
        """What a node is given, for a recording that wants to know; no gradient is held."""
        if self.state.detail is None:
            return ()
        given = list(grads) if grads.__class__ is list or grads.__class__ is tuple else [grads]
        while given and given[-1] is None:  # outputs that have no gradient, as indices and saved statistics
            given.pop()
        return tuple([None if g is None else (g._array.shape, g._array.strides, g._array.dtype) for g in given])

    def _run(self, node: Node, waiting: Waiting) -> Gradients | None:
        """A node's results, or None where it is not to be run."""
        catches = self.catches.get(node)
        goes_on = self._goes_on(node)
        if catches:
            grads = waiting[1] if node.inputs.__class__ is list else [waiting[1]]
            if not goes_on and node.hooks is not None:
                run_tensor_hooks(node, grads)
            for edge in catches:
                if grads[edge[1]] is not None:
                    self.task.captured[edge] = grads[edge[1]]
            del grads
        if not goes_on:
            return None
        if node.__class__ is AccumulateGrad:
            self._run_leaf(node, waiting)
            return None
        run = self._runner(node)
        if node.hooks is None:
            return run(node, waiting.pop(), self.task.retain_graph)
        return run_hooked(node, waiting, run, self.task.retain_graph)

    def _run_leaf(self, node: Node, waiting: Waiting) -> None:
        inputs = self._outline(waiting[1])
        start = observer.clock()
        try:
            run_leaf(node, waiting, self.task.create_graph)
        finally:
            self._span(node.name(), observer.BACKWARD, start, node, inputs)

    def _goes_on(self, node: Node) -> bool:
        """Whether a node is run: not if gradients are only caught there."""
        needed = self.task.needed
        if needed is None or not self.task.capture:
            return True
        return any(edge is not None and edge[0] in needed for edge in node.edges)

    def _runner(self, node: Node) -> Callable[..., Gradients]:
        run: Callable[..., Gradients] = node.plan.run
        needed = self.task.needed
        if needed is not None and isinstance(node, OpNode):
            run = partial_run(node.plan, _wanted(node, needed))

        def recorded(node: Node, grads: Any, retain: bool) -> Gradients:
            inputs = self._outline(grads)
            start = observer.clock()
            try:
                with anomaly.parent(node):
                    return run(node, grads, retain)
            finally:
                self._span(node.name(), observer.BACKWARD, start, node, inputs)

        return recorded


def _wanted(node: OpNode, needed: set[Node]) -> int:
    """The mask of a node's inputs whose gradients lead on to a target."""
    lists = node.plan.derivative.lists
    edges = iter(node.edges)
    mask = 0
    for position, is_list in enumerate(lists):
        count = len(node.edges) - len(lists) + 1 if is_list else 1
        for edge in [next(edges) for _ in range(count)]:
            if edge is not None and edge[0] in needed:
                mask |= 1 << position
    return mask


def _leading_to(targets: set[Node], root: Node, pending: dict[Node, Waiting]) -> set[Node]:
    """The nodes from which a target can be reached, targets included."""
    parents: dict[Node, list[Node]] = {}
    for node in (root, *pending):
        for edge in node.edges:
            if edge is not None:
                parents.setdefault(edge[0], []).append(node)
    found = {node for node in targets if node in pending or node is root}
    stack = list(found)
    while stack:
        for node in parents.get(stack.pop(), ()):
            if node not in found:
                found.add(node)
                stack.append(node)
    return found
