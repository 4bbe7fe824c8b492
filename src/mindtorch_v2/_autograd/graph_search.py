"""Searches in a recorded graph: which nodes and leaves a tensor was computed from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .nodes.node import Node


def nodes_behind(outputs: Iterable[Tensor], ends: Iterable[Tensor] = ()) -> Iterator[Node]:
    """Every node that `outputs` were computed by, each once; the nodes of `ends` are yielded, those behind them are not."""
    stops = {id(t._node) for t in ends if t._keys & AUTOGRAD}
    todo = [t._node for t in outputs if t._keys & AUTOGRAD]
    seen = set(map(id, todo))
    while todo:
        node = todo.pop()
        yield node
        if id(node) in stops or node.is_accumulator:
            continue
        for edge in node.edges:
            if edge is not None and id(edge[0]) not in seen:
                seen.add(id(edge[0]))
                todo.append(edge[0])


def reaches_others(outputs: Iterable[Tensor], inputs: Iterable[Tensor]) -> bool:
    """Whether `outputs` were computed from a leaf that is not among `inputs`."""
    inputs = list(inputs)
    own = {id(t._node) for t in inputs if t._keys & AUTOGRAD}
    return any(node.is_accumulator and id(node) not in own for node in nodes_behind(outputs, inputs))
