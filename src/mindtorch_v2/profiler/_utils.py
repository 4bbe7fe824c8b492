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
    """Every event, parents before their children, in order of start."""
    pending = list(tree)[::-1]
    while pending:
        event = pending.pop()
        yield event
        pending.extend(list(children_fn(event))[::-1])


def traverse_bfs(
    tree: Iterable[_Node], children_fn: Callable[[_Node], Iterable[_Node]] = _children, reverse: bool = False
) -> Iterator[_Node]:
    """Every event, level by level; with `reverse` the last of each list of children first."""
    order = reversed if reverse else iter
    pending = deque(order(list(tree)))
    while pending:
        event = pending.popleft()
        yield event
        pending.extend(order(list(children_fn(event))))


def source_code_location(event: Any) -> str:
    """The name of the innermost Python function around an event, or torch's text that says there is none."""
    while event is not None:
        if _IN_A_FILE.search(event.name):
            return str(event.name)
        event = event.parent
    return "No source code location found"


def index_of_first_match(
    seq: Sequence[_Node], predicate: Callable[[_Node], Any], start: int = 0, end: int | None = None
) -> int | None:
    """The index of the first match in seq[start:end], None if there is none."""
    stop = len(seq) if end is None else min(end, len(seq))
    return next((at for at in range(start, stop) if predicate(seq[at])), None)


def argmax(
    seq: Sequence[_Node], key: Callable[[_Node], Any] = lambda item: item, start: int = 0, end: int | None = None
) -> int | None:
    """The index of the first largest item in seq[start:end], None if that is empty."""
    stop = len(seq) if end is None else min(end, len(seq))
    return max(range(start, stop), key=lambda at: key(seq[at]), default=None)
