"""torch's MemoryBlocks: the category of every block of memory in a recording, and what happened to it when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core.device import device as Device
from ..._dispatch import observer
from . import tree
from .derived import OPTIMIZER_STEP
from .store import EventStore, StorageNotes

_ACCUMULATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
BEFORE = -1  # the start of a block that was allocated before the recording


class Category(Enum):
    """What a tensor's memory was used for."""

    INPUT = auto()
    TEMPORARY = auto()
    ACTIVATION = auto()
    GRADIENT = auto()
    AUTOGRAD_DETAIL = auto()
    PARAMETER = auto()
    OPTIMIZER_STATE = auto()


class Action(Enum):
    """What happened to a tensor's memory."""

    PREEXISTING = auto()
    CREATE = auto()
    INCREMENT_VERSION = auto()
    DESTROY = auto()


class BlockKey(NamedTuple):
    """A block of memory from its allocation to its free."""

    id: int
    address: int
    device: str


@dataclass
class _Block:
    """A block of memory, and the times at which ops read or wrote it."""

    key: BlockKey
    size: int
    start: int
    end: int | None = None
    touched: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)

    def outlives(self, time: int | None) -> bool:
        """Whether it is freed after that time or never; False if there is no time."""
        return time is not None and (self.end is None or self.end > time)


class _Categories:
    """The category of a block, which is the same for all its versions."""

    def __init__(self, of_key: dict[BlockKey, Category]) -> None:
        self._of_key = of_key

    def get(self, key: BlockKey, version: int) -> Category | None:
        """The category, None if it is not known."""
        return self._of_key.get(key)


class MemoryBlocks:
    """The memory of a recording made with record_shapes, profile_memory and with_stack."""

    def __init__(self, store: EventStore, notes: StorageNotes) -> None:
        self._store = store
        self._blocks = list(_blocks(store, notes.touched))
        self._categories = _Categories({block.key: c for block, c in self._categorized(notes.parameters)})

    @property
    def timeline(self) -> tuple[tuple[int, Action, tuple[BlockKey, int], int], ...]:
        """(time, action, (key, version), bytes) in order of time; times are nanoseconds since the epoch."""
        wall = self._store.wall_start_ns - self._store.clock_start_ns
        entries: list[tuple[int, Action, tuple[BlockKey, int], int]] = []
        for block in self._blocks:
            if block.start == BEFORE:
                entries.append((BEFORE, Action.PREEXISTING, (block.key, 0), block.size))
            else:
                entries.append((block.start + wall, Action.CREATE, (block.key, 0), block.size))
            for version, time in enumerate(block.written):
                entries.append((time + wall, Action.INCREMENT_VERSION, (block.key, version), block.size))
            if block.end is not None:
                entries.append((block.end + wall, Action.DESTROY, (block.key, len(block.written)), block.size))
        return tuple(sorted(entries, key=lambda entry: entry[0]))

    def on_device(self, device: str) -> list[tuple[int, Action, int, Category | None]]:
        """(time, action, bytes, category) of one device's memory; RuntimeError for a text that names no device."""
        name = str(Device(device))
        return [
            (time, action, size, self._categories.get(key, version))
            for time, action, (key, version), size in self.timeline
            if key.device == name
        ]

    def _categorized(self, parameters: frozenset[int]) -> Iterator[tuple[_Block, Category]]:
        store = self._store
        backward = _Ranges(store, store.kind == observer.ENGINE)
        accumulating = _Ranges(store, _named(store, lambda name: name == _ACCUMULATE))
        stepping = _Ranges(store, _named(store, lambda name: name.startswith(OPTIMIZER_STEP)))
        nodes = _Ranges(store, _outermost_ops(store))
        known: dict[BlockKey, Category] = {}
        for block in self._blocks:
            before, in_step = block.start == BEFORE, stepping.end_of(block.start)
            if block.key.address in parameters:
                known[block.key] = Category.PARAMETER
            elif in_step is not None:
                known[block.key] = Category.OPTIMIZER_STATE if block.outlives(in_step) else Category.TEMPORARY
            elif any(block.outlives(accumulating.end_of(t)) for t in (block.start, *block.touched)):
                known[block.key] = Category.GRADIENT
            elif before and block.touched and all(stepping.end_of(t) is not None for t in block.touched):
                known[block.key] = Category.OPTIMIZER_STATE
            elif before and any(stepping.end_of(t) is not None for t in block.written):
                known[block.key] = Category.PARAMETER
            elif not before and block.end is not None and nodes.at(block.start) == nodes.at(block.end) is not None:
                known[block.key] = Category.TEMPORARY
            elif not before and backward.end_of(block.start) is not None:
                known[block.key] = Category.AUTOGRAD_DETAIL
        known.update(self._forward(known, nodes, bool(len(backward.start))))
        for block in self._blocks:
            if block.key in known:
                yield block, known[block.key]

    def _forward(self, known: dict[BlockKey, Category], nodes: _Ranges, trained: bool) -> dict[BlockKey, Category]:
        """Categories of blocks that have none yet.

        Outputs of ops that depend on the parameters are activations; the other inputs of such ops are inputs.
        """
        model = {key for key, category in known.items() if category is Category.PARAMETER}
        if trained and not model:
            # The parameters are not known: every block from before the training may be one.
            model = {block.key for block in self._blocks if block.start == BEFORE and block.touched}
        blocks_of: dict[int, list[_Block]] = {}
        created_in: dict[BlockKey, int | None] = {}
        for block in self._blocks:
            created_in[block.key] = None if block.start == BEFORE else nodes.at(block.start)
            for node in {nodes.at(t) for t in (block.start, *block.touched) if t != BEFORE}:
                if node is not None:
                    blocks_of.setdefault(node, []).append(block)
        forward: dict[BlockKey, Category] = {}
        dependent = set(model)
        for node in sorted(blocks_of):
            blocks = blocks_of[node]
            if any(block.key in dependent for block in blocks):
                created = [block for block in blocks if created_in[block.key] == node]
                dependent.update(
                    block.key for block in created if block.key not in known or known[block.key] is Category.TEMPORARY
                )
                forward.update({block.key: Category.ACTIVATION for block in created if block.key not in known})
        for blocks in blocks_of.values():
            if any(block.key in dependent for block in blocks):
                for block in blocks:
                    if block.key not in known:
                        forward.setdefault(block.key, Category.INPUT)
        return forward


def _outermost_ops(store: EventStore) -> NDArray[np.bool_]:
    """Ops and backward nodes that no other op or node called."""
    ops: NDArray[np.bool_] = np.isin(store.kind, (observer.OP, observer.BACKWARD))
    return ops & (tree.nearest_ancestor(store.parent, ops) < 0)


def _named(store: EventStore, wanted: Callable[[str], bool]) -> NDArray[np.bool_]:
    chosen = np.array([wanted(name) for name in store.names] or [False])
    return chosen[store.name] if len(store) else np.empty(0, np.bool_)


class _Ranges:
    """The time spans of some rows."""

    def __init__(self, store: EventStore, chosen: NDArray[np.bool_]) -> None:
        self.start, self.end = store.start[chosen], np.maximum.accumulate(store.end[chosen])

    def at(self, time: int) -> int | None:
        """The number of the span that contains a time, None if none does."""
        at = int(np.searchsorted(self.start, time, side="right")) - 1
        return at if at >= 0 and time <= self.end[at] else None

    def end_of(self, time: int) -> int | None:
        """The end of the span that contains a time, None if none does."""
        at = self.at(time)
        return None if at is None else int(self.end[at])


_DEVICES = {1: "cuda", 20: "npu"}


def _device_name(kind: int, index: int) -> str:
    return "cpu" if kind == 0 else f"{_DEVICES.get(kind, 'privateuseone')}:{max(index, 0)}"


def _blocks(store: EventStore, touched: NDArray[np.int64]) -> Iterator[_Block]:
    """All blocks in order of appearance; those from before the recording come first."""
    columns = (store.mem_time, store.mem_addr, store.mem_bytes, store.mem_device_type, store.mem_device_index)
    events: list[tuple[int, bool, int, int, bool, str]] = [
        (time, False, address, size, False, _device_name(kind, index))
        for time, address, size, kind, index in zip(*(column.tolist() for column in columns), strict=True)
    ]
    events += [(time, True, address, size, bool(written), "cpu") for time, address, size, written in touched.tolist()]
    events.sort(key=lambda event: event[0])
    alive: dict[int, _Block] = {}
    earlier: list[_Block] = []
    created: list[_Block] = []

    def begin(address: int, size: int, start: int, device: str) -> _Block:
        block = alive[address] = _Block(BlockKey(len(earlier) + len(created), address, device), size, start)
        (earlier if start == BEFORE else created).append(block)
        return block

    for time, is_touch, address, size, written, device in events:
        if not is_touch and size >= 0:
            begin(address, size, time, device)
            continue
        block = alive.get(address) or begin(address, abs(size), BEFORE, device)
        if is_touch:
            block.touched.append(time)
            if written:
                block.written.append(time)
        else:
            block.end = time
            del alive[address]
    yield from earlier
    yield from created
