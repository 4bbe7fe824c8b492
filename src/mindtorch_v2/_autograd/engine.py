"""The engine of the backward pass: runs the nodes below the roots, newest first, and delivers gradients along the edges.

This is the plain walk, for a pass that is not recorded and computes every gradient; `observed_engine` has the others.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from .._core.cpython import REFCOUNT_WITH_OWNER, getrefcount
from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch import entry_globals
from .._dispatch.observer import call_user_code
from .._dispatch.registry import aten
from .hooks import run_after_hooks, run_before_hooks, run_hooked, run_tensor_hooks
from .nodes.accumulate import AccumulateGrad, owns_memory
from .nodes.grad_form import to_form
from .nodes.node import Edge, Gradients, Node
from .running import running

# What the engine keeps for a node until it runs: how many edges have yet to deliver, and its gradient, or list of gradients.
Waiting = list[Any]
Root = tuple[Node, int, Tensor | None]

_task_ids = itertools.count()


class GraphTask:
    """One backward pass. With `targets` only the nodes that lead to them are run."""

    def __init__(
        self, retain_graph: bool, create_graph: bool, targets: Sequence[Edge] | None = None, capture: bool = False
    ) -> None:
        self.id = next(_task_ids)
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.targets = targets
        # Whether gradients are captured at the targets (autograd.grad), or the targets run like other nodes (backward).
        self.capture = capture
        # Whether gradients are computed only to be differentiated by the seeds: see `backward.pullback`.
        self.linear = False
        self.captured: dict[Edge, Tensor] = {}
        # The nodes from which a target can be reached; None: all nodes.
        self.needed: set[Node] | None = None
        self.callbacks: list[Callable[[], None]] = []
        self.pending: dict[Node, Waiting] = {}
        self.ready: list[tuple[int, int, Node]] = []
        self.leaves: list[Node] = []
        self.root: Node | None = None
        self._order = itertools.count()

    def run(
        self, root: Node, number: int, grad: Tensor | None, walk: Callable[[GraphTask, Node, Waiting], None] | None = None
    ) -> None:
        """Run the pass below a root, whose output `number` has the gradient `grad`; `walk` replaces the plain walk."""
        state = threads.state
        self.root = root
        self._count_edges(root)
        waiting = self.pending.pop(root)
        if grad is not None:
            if waiting[1] is None:
                waiting[1] = grad
            else:
                waiting[1][number] = grad
        del grad  # from here on only buffers refer to gradients: reference counts tell whether one may be changed in place
        tasks, enabled, hooks, node = running.tasks, state.grad_enabled, state.saved_tensor_hooks, running.node
        # From the changes to `try`, and in `finally`, there is no call after which a signal would be handled.
        tasks += (self,)
        state.grad_enabled = self.create_graph or None
        try:
            (walk or _walk)(self, root, waiting)
            for callback in self.callbacks:
                call_user_code(callback)
        finally:
            state.grad_enabled = enabled
            del tasks[-1]
            running.node = node
            if state.saved_tensor_hooks != hooks:  # code of the program's has entered or left a block and not undone it
                from .nodes.saved_hooks import restore_hooks  # loaded by the block that was entered

                restore_hooks(state, hooks)

    def _count_edges(self, root: Node) -> None:
        """Count the edges to each node below the root; iterative, since graphs may be deep."""
        pending = self.pending
        inputs = root.inputs
        pending[root] = [0, [None] * len(inputs) if inputs.__class__ is list else None]
        stack = [root]
        while stack:
            for edge in stack.pop().edges:
                if edge is not None:
                    node = edge[0]
                    if node in pending:
                        pending[node][0] += 1
                    else:
                        inputs = node.inputs
                        pending[node] = [1, [None] * len(inputs) if inputs.__class__ is list else None]
                        stack.append(node)

    def deliver(self, node: Node, results: Gradients) -> Node | None:
        """Deliver a node's results along its edges, and add them up where several arrive at one output.

        Returns one of the nodes that became ready; further ones go to `ready`, leaves to `leaves`.
        """
        pending, needed = self.pending, self.needed
        following: Node | None = None
        position = -1
        for edge in node.edges:
            position += 1
            if edge is None:
                continue
            target, number = edge
            waiting = pending[target]
            left = waiting[0] = waiting[0] - 1
            if needed is not None and target not in needed:
                continue
            grad = results[position]
            if grad is not None:
                results[position] = None  # so that only the buffer refers to it
                form = target.inputs
                if form.__class__ is tuple:
                    buffer, place = waiting, 1
                else:
                    form, buffer, place = form[number], waiting[1], number
                array = grad._array
                if form is not None and (array.shape != form[0] or array.dtype is not form[1]):
                    grad = to_form(node, position, grad, form)
                total = buffer[place]
                if total is None:
                    buffer[place] = grad
                else:
                    if position + 1 < len(results):
                        _validate(node, results, position + 1)
                    if (
                        getrefcount(total) <= REFCOUNT_WITH_OWNER
                        and not self.create_graph
                        and not total._keys
                        and total._base is None
                        and total._array.base is None
                        and not grad._keys
                        and (total._storage is None or owns_memory(total))
                    ):
                        if entry_globals.observers_active:
                            aten.add_(total, grad)
                        else:
                            # Only the buffer refers to this gradient, so no version has to be counted: the values will do.
                            array = total._array
                            np.add(array, grad._array, array)
                    else:
                        buffer[place] = aten.add(total, grad)
            if not left:
                if target.__class__ is AccumulateGrad:
                    self.leaves.append(target)
                elif following is None:
                    following = target
                else:
                    heappush(self.ready, (-target.sequence, next(self._order), target))
        return following

    def next_ready(self, following: Node | None) -> Node | None:
        """The newest ready node, among `following` and those in `ready`; None if there is none."""
        ready = self.ready
        if following is None:
            return heappop(ready)[2] if ready else None
        if ready and -ready[0][0] > following.sequence:
            heappush(ready, (-following.sequence, next(self._order), following))
            return heappop(ready)[2]
        return following


def _walk(task: GraphTask, node: Node, waiting: Waiting) -> None:
    """The plain walk: run a node, deliver its results, run the leaves that became ready, go on with the newest ready node."""
    pending, leaves, ready = task.pending, task.leaves, task.ready
    retain, create = task.retain_graph, task.create_graph
    deliver = task.deliver
    if node.__class__ is AccumulateGrad:
        run_leaf(node, waiting, create)
        return
    while True:
        if node.hooks is None:
            results = node.plan.run(node, waiting.pop(), retain)
        else:
            results = run_hooked(node, waiting, node.plan.run, retain)
        edges = node.edges
        if len(edges) == 1 and not ready and edges[0] is not None:
            # The most common step: one gradient for one node that waits for nothing else. `deliver` would do the same.
            target = edges[0][0]
            form = target.inputs
            waiting = pending[target]
            if waiting[0] == 1 and waiting[1] is None and target.__class__ is not AccumulateGrad and form.__class__ is tuple:
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
        if leaves:
            for leaf in leaves:
                run_leaf(leaf, pending.pop(leaf), create)
            leaves.clear()
        if following is None or ready:
            following = task.next_ready(following)
            if following is None:
                return
        node = following
        waiting = pending.pop(node)


def _validate(node: Node, results: Gradients, start: int) -> None:
    """Bring the results from `start` on to the form that their receivers take; as in torch, before the first addition."""
    for position in range(start, len(node.edges)):
        edge, grad = node.edges[position], results[position]
        if edge is not None and grad is not None:
            form = edge[0].inputs
            results[position] = to_form(node, position, grad, form[edge[1]] if form.__class__ is list else form)


def run_leaf(leaf: Node, waiting: Waiting, create_graph: bool) -> None:
    """Run a leaf's hooks in torch's order, and between them add the gradient to its `.grad`."""
    hooks = leaf.hooks
    if hooks is None:
        leaf.accumulate(waiting, create_graph)  # type: ignore[attr-defined]
        return
    grads: Gradients = [waiting.pop()]
    run_tensor_hooks(leaf, grads)
    run_before_hooks(leaf, grads)
    taken = list(grads) if hooks.after else []
    leaf.accumulate(grads, create_graph)  # type: ignore[attr-defined]
    if hooks.after:
        run_after_hooks(leaf, [], taken)


class GraphRoot(Node):
    """A node above several roots, so that a pass starts at one node."""

    __slots__ = ("grads",)

    title = "torch::autograd::GraphRoot"

    def __init__(self, roots: Sequence[Root]) -> None:
        state = threads.state
        self.edges = tuple((node, number) for node, number, _ in roots)
        self.grads = [grad for _, _, grad in roots]
        self.inputs = []
        self.hooks = None
        self.sequence = state.sequence
        state.sequence += 1

    def apply(self, grads: Gradients) -> Gradients:
        seeds, self.grads = self.grads, []
        return seeds


def queue_callback(callback: Callable[[], None]) -> None:
    """Call `callback` at the end of the backward pass under way on this thread; RuntimeError outside of one."""
    if not running.tasks:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    running.tasks[-1].callbacks.append(callback)


# How deep passes may be nested on one thread. A pass takes a dozen Python frames, and the interpreter's limit is per thread.
_NESTED = 40


def run_task(task: GraphTask, *args: Any) -> None:
    """Run a pass, on a thread of its own where many are under way: a Function's backward may start a pass, and so on."""
    tasks = running.tasks
    if len(tasks) % _NESTED != _NESTED - 1:
        task.run(*args)
        return
    state, failures = threads.state, []

    def run() -> None:
        # The calling thread waits meanwhile, so its state can be used.
        own, threads.state, running.tasks, running.node = threads.state, state, tasks, None
        try:
            task.run(*args)
        except BaseException as error:
            failures.append(error)
        finally:
            threads.state = own

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
