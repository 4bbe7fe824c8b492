"""Walks over event trees, or over anything whose nodes have children."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

_Node = TypeVar("_Node")


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
