"""The call tree: calls with the same path of names added up, as `mtprof tree` prints it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..store import tree
from ..store.store import EventStore


@dataclass
class CallNode:
    """All calls of one name under one parent node."""

    name: str
    count: int = 0
    total_ns: int = 0
    self_ns: int = 0
    bytes: int = 0
    flops: int = 0
    children: list[CallNode] = field(default_factory=list)


class CallTree:
    """The nodes of a recording's host calls as columns, each after its parent; `keep` selects rows."""

    def __init__(self, store: EventStore, keep: NDArray[np.bool_] | None = None) -> None:
        rows = np.flatnonzero((store.device_type == 0) if keep is None else keep & (store.device_type == 0))
        self.label: NDArray[np.int64]
        self.parent: NDArray[np.int64]
        self.labels = store.labels
        above = tree.nearest_kept(store.parent, rows)[store.parent[rows]]
        node, self.parent, self.label = _paths(above, store.label[rows].astype(np.int64), len(store.labels))
        count = len(self.parent)
        duration = store.duration[rows]
        self.count = np.bincount(node, minlength=count)
        self.total_ns = tree.sums(node, duration, count)
        alone = np.maximum(duration - tree.children_sums(above, duration), 0)
        self.self_ns = tree.sums(node, alone, count)
        self.bytes = tree.sums(node, store.self_bytes[rows], count)
        self.flops = tree.sums(node, store.flops[rows], count)

    def root(self) -> CallNode:
        """The tree as objects, the children of each node in order of falling total time."""
        root_node = CallNode("")
        nodes: list[CallNode] = []
        columns = (self.label, self.parent, self.count, self.total_ns, self.self_ns, self.bytes, self.flops)
        for label, parent, count, total, alone, size, flops in zip(*(c.tolist() for c in columns), strict=True):
            node = CallNode(self.labels[label], count, total, alone, size, flops)
            nodes.append(node)
            (nodes[parent] if parent >= 0 else root_node).children.append(node)
        for node in [root_node, *nodes]:
            node.children.sort(key=lambda child: -child.total_ns)
        root_node.total_ns = sum(child.total_ns for child in root_node.children)
        root_node.count = sum(child.count for child in root_node.children)
        return root_node


def _paths(
    above: NDArray[np.int32], label: NDArray[np.int64], labels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The node of every row, and parent and label of every node; found level by level."""
    node = np.full(len(above), -1, np.int64)
    parents, names = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    count = 0
    level = np.flatnonzero(above < 0)
    pending = np.flatnonzero(above >= 0)
    while len(level):
        upper = np.where(above[level] >= 0, node[above[level]], -1)
        distinct, which = np.unique((upper + 1) * labels + label[level], return_inverse=True)
        node[level] = count + which
        parents.append(distinct // labels - 1)
        names.append(distinct % labels)
        count += len(distinct)
        ready = node[above[pending]] >= 0
        level, pending = pending[ready], pending[~ready]
    return node, np.concatenate(parents), np.concatenate(names)
