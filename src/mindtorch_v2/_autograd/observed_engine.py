"""The engine's walks of a backward pass that is profiled, has targets, or runs in anomaly mode.

In a profile each node is a span `autograd::engine::evaluate_function: X` around a span `X`. What the engine does to a gradient
after the node has run, summing it to the input's shape and adding several up, lies in the outer span alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.threads import ThreadState, threads
from .._dispatch import entry_globals
from .._dispatch.observer import BACKWARD, ENGINE, InputOutline, clock
from . import anomaly
from .engine import GraphTask, Waiting, run_leaf
from .graph import OpNode
from .hooks import run_hooked, run_tensor_hooks
from .nodes.accumulate import AccumulateGrad
from .nodes.grad_form import to_form
from .nodes.node import Edge, Gradients, Node
from .nodes.node_compiler import partial_run
from .nodes.pushforward import push

_EVALUATE = "autograd::engine::evaluate_function: "
_LEAF = AccumulateGrad.title
_EVALUATE_LEAF = f"{_EVALUATE}{_LEAF}"


class _Labels(dict[str, str]):
    """The names of the outer spans by the names of nodes, each formatted once."""

    def __missing__(self, name: str) -> str:
        label = self[name] = _EVALUATE + name
        return label


_labels = _Labels()


def walk_for(task: GraphTask) -> Callable[[GraphTask, Node, Waiting], None] | None:
    """The walk that a pass needs, None for the engine's plain one."""
    if task.targets is not None or anomaly.state.enabled:
        return _walk
    return _recorded_walk if entry_globals.observers_active and threads.state.span is not None else None


def _recorded_walk(task: GraphTask, node: Node, waiting: Waiting) -> None:
    """The engine's plain walk with two spans for each node.

    Written out in one piece, so that a recorded pass takes hardly longer than one that is not. As in the plain walk no variable
    refers to a gradient while it is delivered: its reference count tells the engine whether it may be changed in place.
    """
    state = threads.state
    pending, leaves, ready, deliver = task.pending, task.leaves, task.ready, task.deliver
    retain, create = task.retain_graph, task.create_graph
    following: Node | None
    if node.__class__ is AccumulateGrad:
        _evaluate_leaf(node, waiting, create, state)
        return
    while True:
        name, sequence = node.title or node.__class__.__name__, node.sequence
        began = clock()
        try:
            if node.hooks is None:
                inputs = () if state.capture_by_op is None else _outline(waiting[1])
                grads, saved = waiting.pop(), node.saved if node.plan.keeps_tensors else None
                start = clock()
                try:
                    results = node.plan.run(node, grads, retain)
                finally:
                    span = state.span
                    if span is not None:
                        span(name, BACKWARD, start, clock(), sequence, inputs)
                    # As in torch, the node's gradients and saved values are freed inside the outer span, not in the node's.
                    grads = saved = None  # noqa: F841
            else:
                results = run_hooked(node, waiting, _recorded(node.plan.run, state), retain)
            edges = node.edges
            if len(edges) == 1 and not ready and edges[0] is not None:
                # As in the plain walk: one gradient for one node that waits for nothing else.
                target = edges[0][0]
                form = target.inputs
                waiting = pending[target]
                if (
                    waiting[0] == 1
                    and waiting[1] is None
                    and target.__class__ is not AccumulateGrad
                    and form.__class__ is tuple
                ):
                    grad = results.pop()
                    if grad is not None and (grad._array.shape != form[0] or grad._array.dtype is not form[1]):
                        grad = to_form(node, 0, grad, form)
                    waiting[1] = grad
                    grad = None
                    node = target
                    del pending[node]
                    continue
            following = deliver(node, results)
            results = None
        finally:
            span = state.span
            if span is not None:
                span(_labels[name], ENGINE, began, clock(), sequence)
        if leaves:
            for leaf in leaves:
                _evaluate_leaf(leaf, pending.pop(leaf), create, state)
            leaves.clear()
        if following is None or ready:
            following = task.next_ready(following)
            if following is None:
                return
        node = following
        waiting = pending.pop(node)


def _evaluate_leaf(leaf: Node, waiting: Waiting, create_graph: bool, state: ThreadState) -> None:
    """Run a leaf with its two spans."""
    began = clock()
    try:
        _run_leaf(leaf, waiting, create_graph, state)
    finally:
        span = state.span
        if span is not None:
            span(_EVALUATE_LEAF, ENGINE, began, clock(), -1)


def _run_leaf(leaf: Node, waiting: Waiting, create_graph: bool, state: ThreadState) -> None:
    """Run a leaf with the inner span alone."""
    inputs = () if state.capture_by_op is None else _outline(waiting[1])
    start = clock()
    try:
        run_leaf(leaf, waiting, create_graph)
    finally:
        span = state.span
        if span is not None:
            span(_LEAF, BACKWARD, start, clock(), -1, inputs)


def _recorded(run: Callable[..., Gradients], state: ThreadState) -> Callable[..., Gradients]:
    """A plan's `run` with the inner span, as a parent of the nodes that it records."""

    def recorded(node: Node, grads: Any, retain: bool) -> Gradients:
        inputs = () if state.capture_by_op is None else _outline(grads)
        saved = node.saved if node.plan.keeps_tensors else None  # noqa: F841  kept alive until the span has ended
        start = clock()
        try:
            with anomaly.parent_of_new_nodes(node):
                return run(node, grads, retain)
        finally:
            span = state.span
            if span is not None:
                span(node.name(), BACKWARD, start, clock(), node.sequence, inputs)

    return recorded


def _outline(grads: Any) -> InputOutline:
    """Outlines of a node's gradients, for a recording with shapes; they refer to no gradient."""
    if grads is None:
        return ()
    if grads.__class__ is not list and grads.__class__ is not tuple:
        array = grads._array
        return ((array.shape, array.strides, array.dtype),)
    arrived = list(grads)
    while arrived and arrived[-1] is None:  # outputs that have no gradient, as indices and saved statistics
        arrived.pop()
    return tuple([None if g is None else (g._array.shape, g._array.strides, g._array.dtype) for g in arrived])


def _walk(task: GraphTask, node: Node, waiting: Waiting) -> None:
    """The walk with targets or in anomaly mode, recorded or not."""
    if task.targets is not None:
        task.needed = _leading_to({target for target, _ in task.targets}, node, task.pending)
        if node not in task.needed:
            return
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
    """Runs the nodes of a pass with targets or in anomaly mode."""

    def __init__(self, task: GraphTask) -> None:
        self.task = task
        self.state: ThreadState = threads.state
        # node -> the edges at which gradients are captured
        self.captures: dict[Node, list[Edge]] = {}
        if task.capture:
            for edge in task.targets or ():
                self.captures.setdefault(edge[0], []).append(edge)

    def evaluate(self, node: Node, waiting: Waiting) -> Node | None:
        """Run one node inside its outer span and deliver its results; returns what `deliver` does."""
        began = clock()
        try:
            results = self._run(node, waiting)
            if results is None:
                return None
            if anomaly.state.enabled:
                anomaly.check(node, results)
            return self.task.deliver(node, results)
        except Exception:
            if anomaly.state.enabled:
                anomaly.report(node)
            raise
        finally:
            span = self.state.span
            if span is not None:
                span(_labels[node.name()], ENGINE, began, clock(), -1 if node.is_accumulator else node.sequence)

    def _run(self, node: Node, waiting: Waiting) -> Gradients | None:
        """Capture gradients at a node and run it; returns its results, None for a leaf or a node that only captures."""
        edges = self.captures.get(node)
        is_run = self._is_run(node)
        if edges:
            grads = waiting[1] if node.inputs.__class__ is list else [waiting[1]]
            if not is_run and node.hooks is not None:
                run_tensor_hooks(node, grads)
            for edge in edges:
                if grads[edge[1]] is not None:
                    self.task.captured[edge] = grads[edge[1]]
            del grads
        if not is_run:
            return None
        if node.__class__ is AccumulateGrad:
            _run_leaf(node, waiting, self.task.create_graph, self.state)
            return None
        run = self._runner(node)
        if node.hooks is None:
            return run(node, waiting.pop(), self.task.retain_graph)
        return run_hooked(node, waiting, run, self.task.retain_graph)

    def _is_run(self, node: Node) -> bool:
        """Whether a node runs: not one that captures gradients and leads to no further target."""
        needed = self.task.needed
        if needed is None or not self.task.capture:
            return True
        return any(edge is not None and edge[0] in needed for edge in node.edges)

    def _runner(self, node: Node) -> Callable[..., Gradients]:
        """The `run` of a node's plan for this pass: the pushforward, only the gradients that lead to a target, or all."""
        run: Callable[..., Gradients] = node.plan.run
        needed = self.task.needed
        if self.task.linear and isinstance(node, OpNode) and node.plan.pushes:
            run = push
        elif needed is not None and isinstance(node, OpNode):
            run = partial_run(node.plan, _wanted(node, needed))
        return _recorded(run, self.state)


def _wanted(node: OpNode, needed: set[Node]) -> int:
    """The mask of a node's inputs whose gradients lead to a target."""
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
    leading = {node for node in targets if node in pending or node is root}
    stack = list(leading)
    while stack:
        for node in parents.get(stack.pop(), ()):
            if node not in leading:
                leading.add(node)
                stack.append(node)
    return leading
