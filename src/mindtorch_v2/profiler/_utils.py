"""torch.profiler._utils: walks over the trees of kineto_results.experimental_event_tree()."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

_Node = TypeVar("_Node")
_IN_A_FILE = re.compile(r"\.py\(.*\)")


def _children(event: Any) -> Iterable[Any]:
    children: Iterable[Any] = event.children
    return children


def traverse_dfs(tree: Iterable[_Node], children_fn: Callable[[_Node], Iterable[_Node]] = _children) -> Iterator[_Node]:
    """Every event before what it called, in order of start."""
    waiting = list(tree)[::-1]
    while waiting:
        event = waiting.pop()
        yield event
        waiting.extend(list(children_fn(event))[::-1])


def traverse_bfs(
    tree: Iterable[_Node], children_fn: Callable[[_Node], Iterable[_Node]] = _children, reverse: bool = False
) -> Iterator[_Node]:
    """The outermost events, then all that these called, and so on; with `reverse` the last of each list first."""
    order = reversed if reverse else iter
    waiting = deque(order(list(tree)))
    while waiting:
        event = waiting.popleft()
        yield event
        waiting.extend(order(list(children_fn(event))))


def source_code_location(event: Any) -> str:
    """The name of the innermost Python function around an event; a sentence if none was recorded."""
    while event is not None:
        if _IN_A_FILE.search(event.name):
            return str(event.name)
        event = event.parent
    return "No source code location found"


def index_of_first_match(
    seq: Sequence[_Node], predicate: Callable[[_Node], Any], start: int = 0, end: int | None = None
) -> int | None:
    """Where, from start to before end, something matches first; None if nothing does."""
    stop = len(seq) if end is None else min(end, len(seq))
    return next((at for at in range(start, stop) if predicate(seq[at])), None)


def argmax(
    seq: Sequence[_Node], key: Callable[[_Node], Any] = lambda one: one, start: int = 0, end: int | None = None
) -> int | None:
    """Where, from start to before end, the first of the largest is; None if there is nothing."""
    stop = len(seq) if end is None else min(end, len(seq))
    return max(range(start, stop), key=lambda at: key(seq[at]), default=None)
