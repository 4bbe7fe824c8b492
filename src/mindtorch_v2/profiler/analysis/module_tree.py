"""Time, memory and FLOPs by nn.Module path, forward and backward apart."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store import tree
from ..store.store import EventStore


@dataclass
class ModuleNode:
    """A module. Fields with self_ count only what ran in itself; the others include the modules below it."""

    path: str
    ops: int = 0
    forward_ns: int = 0
    backward_ns: int = 0
    self_forward_ns: int = 0
    self_backward_ns: int = 0
    bytes: int = 0
    flops: int = 0
    children: list[ModuleNode] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]


def module_tree(store: EventStore) -> list[ModuleNode]:
    """The outermost modules of a recording made with with_modules=True; empty when there are none.

    Rows without a module, such as the optimizer's, are in none of them.
    """
    inside = np.flatnonzero((store.module >= 0) & (store.device_type == 0) & ~store.is_python)
    if not len(inside):
        return []
    count = len(store.modules)
    where = store.module[inside]
    is_backward = in_backward(store)[inside]
    alone = store.self_ns[inside]
    forward = tree.sums(where[~is_backward], alone[~is_backward], count)
    backward = tree.sums(where[is_backward], alone[is_backward], count)
    allocated, flops = tree.sums(where, store.self_bytes[inside], count), tree.sums(where, store.flops[inside], count)
    ops = np.bincount(where, minlength=count)
    nodes: dict[str, ModuleNode] = {}
    roots: list[ModuleNode] = []
    for number, path in enumerate(store.modules):
        node = _node(path, nodes, roots)
        node.ops, node.bytes, node.flops = int(ops[number]), int(allocated[number]), int(flops[number])
        node.self_forward_ns, node.self_backward_ns = int(forward[number]), int(backward[number])
    for root in roots:
        _add_up(root)
    return roots


def _node(path: str, nodes: dict[str, ModuleNode], roots: list[ModuleNode]) -> ModuleNode:
    """The node of a path; it and the nodes above it are added if they are new."""
    known = nodes.get(path)
    if known is None:
        known = nodes[path] = ModuleNode(path)
        outer = path.rpartition(".")[0]
        (_node(outer, nodes, roots).children if outer else roots).append(known)
    return known


def _add_up(root: ModuleNode) -> None:
    order = [root]
    for node in order:
        order.extend(node.children)
        node.forward_ns, node.backward_ns = node.self_forward_ns, node.self_backward_ns
    for node in reversed(order):
        for child in node.children:
            node.ops += child.ops
            node.forward_ns += child.forward_ns
            node.backward_ns += child.backward_ns
            node.bytes += child.bytes
            node.flops += child.flops


def in_backward(store: EventStore) -> NDArray[np.bool_]:
    """Whether a row is part of a backward pass."""
    engine = (store.kind == observer.BACKWARD) | (store.kind == observer.ENGINE)
    inside: NDArray[np.bool_] = engine | (tree.nearest_ancestor(store.parent, engine) >= 0)
    return inside
