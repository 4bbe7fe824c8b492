"""The data flow graph: for each outermost op, backward node, allocation and free, what it read, wrote, made and freed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ....config import RecordScope
from ....views.event_tree import _EventType, _TensorMetadata
from ....views.traversal import traverse_dfs
from .schema_matching import SchemaMatcher
from .tensor_keys import TensorKey


class OpTree:
    """The events of a recording."""

    def __init__(self, result: Any) -> None:
        self._root_nodes = result.experimental_event_tree()

    def dfs(self, **more: Any) -> Iterator[Any]:
        """All events, parents before children."""
        yield from traverse_dfs(self._root_nodes, **more)

    @cached_property
    def sorted_nodes(self) -> tuple[Any, ...]:
        """All events in order of start."""
        return tuple(sorted(self.dfs(), key=lambda event: event.start_time_ns))


class SizeMap:
    """Bytes of memory by TensorKey: of its allocation if that was recorded, else what the largest tensor in it needs."""

    def __init__(self, op_tree: OpTree) -> None:
        self._values: dict[TensorKey, int] = {}
        allocated: dict[TensorKey, int] = {}
        for node in op_tree.dfs():
            tag, fields = node.typed
            if tag is _EventType.Allocation:
                key = TensorKey.from_allocation(fields)
                if key is not None:
                    allocated.setdefault(key, abs(fields.alloc_size))
            else:
                for tensor in _tensors_of(tag, fields):
                    self._see(tensor)
        self._values.update(allocated)

    def _see(self, tensor: _TensorMetadata) -> None:
        key = TensorKey.from_tensor(tensor)
        if key is not None:
            known = self._values.get(key, 0)
            item = tensor.dtype.itemsize if tensor.dtype is not None else 1
            reach = max((size * stride for size, stride in zip(tensor.sizes, tensor.strides, strict=False)), default=1)
            self._values[key] = max(known, reach * item)

    def __getitem__(self, key: TensorKey) -> int:
        return self._values[key]


def _tensors_of(tag: _EventType, fields: Any) -> Iterator[_TensorMetadata]:
    """The tensors that an event shows."""
    if tag is _EventType.TorchOp:
        for value in fields.inputs:
            yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, _TensorMetadata))
    elif tag is _EventType.PyCall:
        if fields.module is not None:
            for _, parameter, gradient in fields.module.parameters:
                yield from (each for each in (parameter, gradient) if each is not None)
        if fields.optimizer is not None:
            for parameter, gradient, state in fields.optimizer.parameters:
                yield from (each for each in (parameter, gradient, *(value for _, value in state)) if each is not None)


@dataclass
class DataFlowEdge:
    """What a node does with a piece of memory: the version that it finds, None if it allocates it, and whether it writes.

    `mutated` is None if the node frees it.
    """

    input_version: int | None = None
    mutated: bool | None = False

    @property
    def is_allocation(self) -> bool:
        """Whether the node allocates the memory."""
        return self.input_version is None

    @property
    def is_deletion(self) -> bool:
        """Whether the node frees the memory."""
        return self.mutated is None


class DataFlowNode:
    """An outermost op, a backward node, or an allocation or free outside of these."""

    def __init__(self, event: Any, graph: DataFlowGraph) -> None:
        self._event = event
        self._graph = graph
        self._edges = self._find_edges()
        for key, edge in self._edges.items():
            if edge.mutated and not edge.is_allocation:
                graph.bump(key)

    def _find_edges(self) -> dict[TensorKey, DataFlowEdge]:
        edges: dict[TensorKey, DataFlowEdge] = {}
        events = list(traverse_dfs([self._event]))
        for key, writes in _writes(events).items():
            # A schema that writes, or no schema at all: then anything may have been written.
            edges[key] = DataFlowEdge(self._graph.lookup(key), True in writes or writes == {None})
        memory = [event.extra_fields for event in events if event.tag is _EventType.Allocation]
        changed = [(TensorKey.from_allocation(fields), fields.alloc_size) for fields in memory]
        for known, size in changed:
            if known is not None and size < 0:
                edges[known] = DataFlowEdge(self._graph.lookup(known), None)
        for known, size in changed:
            if known is not None and size > 0:
                edges.setdefault(known, DataFlowEdge()).input_version = None
        return dict(sorted(edges.items(), key=lambda pair: pair[0]._order))

    @property
    def inputs(self) -> dict[TensorKey, tuple[bool, int]]:
        """Memory that was there before: whether the node changed it, and the version that it found."""
        return {
            key: (bool(edge.mutated), edge.input_version) for key, edge in self._edges.items() if edge.input_version is not None
        }

    @property
    def outputs(self) -> dict[TensorKey, int]:
        """Memory that the node wrote or made and left, and the version that it has since."""
        return {
            key: 0 if edge.input_version is None else edge.input_version + 1
            for key, edge in self._edges.items()
            if (edge.is_allocation and not edge.is_deletion) or edge.mutated
        }

    @property
    def intermediates(self) -> tuple[TensorKey, ...]:
        """Memory that the node made and freed."""
        return tuple(key for key, edge in self._edges.items() if edge.is_allocation and edge.is_deletion)

    @property
    def start_time(self) -> int:
        """When it began, in nanoseconds since the epoch."""
        start: int = self._event.start_time_ns
        return start


def _writes(events: list[Any]) -> dict[TensorKey, set[bool | None]]:
    """By memory that ops among the events were given: what their schemas say of writing to it."""
    writes: dict[TensorKey, set[bool | None]] = {}
    for event in events:
        tag, fields = event.typed
        if tag is _EventType.TorchOp:
            for value, written in zip(fields.inputs, SchemaMatcher.inputs_are_mutable(fields), strict=True):
                for item in value if isinstance(value, list) else [value]:
                    key = TensorKey.from_tensor(item) if isinstance(item, _TensorMetadata) else None
                    if key is not None:
                        writes.setdefault(key, set()).add(written)
    return writes


class DataFlowGraph:
    """All nodes in order of start; `_active_version` has the version of each piece of memory at the end."""

    def __init__(self, op_tree: OpTree) -> None:
        self._op_tree = op_tree
        self._leaf_events = self._extract_leaf_events(op_tree)
        self._active_version: dict[TensorKey, int] = {}
        self._flow_nodes = [DataFlowNode(event, self) for event in self._leaf_events]
        self._flow_nodes.sort(key=lambda node: node.start_time)

    @property
    def flow_nodes(self) -> tuple[DataFlowNode, ...]:
        """The nodes in order of start."""
        return tuple(self._flow_nodes)

    @property
    def leaf_events(self) -> tuple[Any, ...]:
        """The event of each node."""
        return self._leaf_events

    @staticmethod
    def _extract_leaf_events(op_tree: OpTree) -> tuple[Any, ...]:
        """The outermost events that have a schema or are backward nodes, and memory outside of them; labels are passed."""
        leaves: list[Any] = []

        def below(event: Any) -> list[Any]:
            if event.tag is _EventType.Allocation or _is_node(event):
                leaves.append(event)
                return []
            children: list[Any] = event.children
            return children

        walk: Callable[..., Iterator[Any]] = op_tree.dfs
        for _ in walk(children_fn=below):
            pass
        return tuple(sorted(leaves, key=lambda event: event.start_time_ns))

    def lookup(self, key: TensorKey) -> int:
        """The version of a piece of memory now."""
        return self._active_version.setdefault(key, 0)

    def bump(self, key: TensorKey) -> None:
        """Note that it was written."""
        self._active_version[key] = self.lookup(key) + 1


def _is_node(event: Any) -> bool:
    tag, fields = event.typed
    if tag is not _EventType.TorchOp:
        return False
    return fields.scope == RecordScope.BACKWARD_FUNCTION or bool(SchemaMatcher.match_schemas(fields))
