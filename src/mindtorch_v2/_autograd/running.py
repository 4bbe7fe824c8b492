"""The backward passes under way on a thread, and what programs may ask about them from hooks and custom Functions."""

from __future__ import annotations

import threading
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine import GraphTask
    from .nodes.node import Node


class _Running(threading.local):
    """The backward passes under way on this thread, innermost last: a hook or a Function may start another."""

    def __init__(self) -> None:
        self.tasks: list[GraphTask] = []
        # The node that calls code of the program's: a hook, a custom Function's backward.
        self.node: Node | None = None


running = _Running()

# The open level of forward-mode AD, of which there can be one: see `forward_ad`.
forward_levels: list[Any] = []


class _Multithreading:
    """The setting of `set_multithreading_enabled`. Each backward pass runs on the thread that calls it either way."""

    enabled = True


multithreading = _Multithreading()


def current_task_id() -> int:
    """The number of the backward pass under way on this thread, -1 outside of one."""
    return running.tasks[-1].id if running.tasks else -1


def current_node() -> Node | None:
    """The node that called the program's code that asks: a hook, a Function's backward; None outside of a backward pass."""
    return running.node if running.tasks else None


def will_execute(node: Any) -> bool:
    """Whether the backward pass under way runs a node; RuntimeError outside of a pass, or for a leaf of `autograd.grad()`."""
    if not hasattr(node, "next_functions"):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    task = _innermost("_get_should_execute_nodes")
    if task.capture and node.is_accumulator and any(node is target for target, _ in task.targets or ()):
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
            "currently not supported."
        )
    if task.needed is not None:
        return node in task.needed
    todo, seen = [task.root], {task.root}
    while todo:
        below = todo.pop()
        assert below is not None
        new = {edge[0] for edge in below.edges if edge is not None} - seen
        seen |= new
        todo += new
    return node in seen


def execution_order() -> list[Node]:
    """The nodes that the pass under way has yet to run, the current one first."""
    task = _innermost("_current_graph_task_execution_order")
    if multithreading.enabled:
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed with multithreading "
            "disabled, e.g. by running:\n\n>>> with torch.autograd.set_multithreading_enabled(False):\n"
            "...     torch.autograd.grad(...)\n"
        )
    node = running.node
    counts = {each: waiting[0] for each, waiting in task.pending.items()}
    ready = list(task.ready)
    order: list[Node] = []
    position = len(counts)
    while node is not None:
        order.append(node)
        for edge in node.edges:
            if edge is None:
                continue
            target = edge[0]
            counts[target] -= 1
            if counts[target] or (task.needed is not None and target not in task.needed):
                continue
            if target.is_accumulator:
                order.append(target)
            else:
                position += 1
                heappush(ready, (-target.sequence, position, target))
        node = heappop(ready)[2] if ready else None
    return order


def _innermost(name: str) -> GraphTask:
    if not running.tasks:
        raise RuntimeError(f"{name} should only be called during the backward pass")
    return running.tasks[-1]
