"""What memory was used for: every allocation of a recording with its category, and how much of each over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core.device import device as Device
from ..._dispatch import observer
from . import tree
from .store import EventStore, StorageNotes

_ACCUMULATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
_OPTIMIZER_STEP = "Optimizer.step#"
BEFORE = -1  # the time of what was there before the recording


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
    """What happened to it."""

    PREEXISTING = auto()
    CREATE = auto()
    INCREMENT_VERSION = auto()
    DESTROY = auto()


class TensorKey(NamedTuple):
    """One piece of memory from its allocation to its end."""

    id: int
    address: int
    device: str


@dataclass
class _Life:
    """A piece of memory, and what ops did to it."""

    key: TensorKey
    size: int
    start: int
    end: int | None = None
    touched: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)

    def outlives(self, moment: int | None) -> bool:
        """Whether it is still there after a moment, if there is one."""
        return moment is not None and (self.end is None or self.end > moment)


class _Categories:
    """The category of a piece of memory; versions of one piece do not differ."""

    def __init__(self, of_key: dict[TensorKey, Category]) -> None:
        self._of_key = of_key

    def get(self, key: TensorKey, version: int) -> Category | None:
        """The category, None for what is unknown."""
        return self._of_key.get(key)


class MemoryProfile:
    """The memory of a recording made with record_shapes, profile_memory and with_stack."""

    def __init__(self, store: EventStore, notes: StorageNotes) -> None:
        self._store = store
        self._lives = list(_lives(store, notes.touched))
        self._categories = _Categories({life.key: c for life, c in self._categorised(notes.parameters)})

    @property
    def timeline(self) -> tuple[tuple[int, Action, tuple[TensorKey, int], int], ...]:
        """(time, action, (key, version), bytes) in order of time; times are nanoseconds since the epoch."""
        wall = self._store.wall_start_ns - self._store.clock_start_ns
        found: list[tuple[int, Action, tuple[TensorKey, int], int]] = []
        for life in self._lives:
            if life.start == BEFORE:
                found.append((BEFORE, Action.PREEXISTING, (life.key, 0), life.size))
            else:
                found.append((life.start + wall, Action.CREATE, (life.key, 0), life.size))
            for version, moment in enumerate(life.written):
                found.append((moment + wall, Action.INCREMENT_VERSION, (life.key, version), life.size))
            if life.end is not None:
                found.append((life.end + wall, Action.DESTROY, (life.key, len(life.written)), life.size))
        return tuple(sorted(found, key=lambda entry: entry[0]))

    def on_device(self, device: str) -> list[tuple[int, Action, int, Category | None]]:
        """(time, action, bytes, category) of one device's memory; RuntimeError for a device that cannot be."""
        name = str(Device(device))
        return [
            (time, action, size, self._categories.get(key, version))
            for time, action, (key, version), size in self.timeline
            if key.device == name
        ]

    def _categorised(self, parameters: frozenset[int]) -> Iterator[tuple[_Life, Category]]:
        store = self._store
        backward = _Ranges(store, store.kind == observer.ENGINE)
        accumulating = _Ranges(store, _named(store, lambda name: name == _ACCUMULATE))
        stepping = _Ranges(store, _named(store, lambda name: name.startswith(_OPTIMIZER_STEP)))
        nodes = _Ranges(store, _outermost_ops(store))
        known: dict[TensorKey, Category] = {}
        for life in self._lives:
            before, in_step = life.start == BEFORE, stepping.end_of(life.start)
            if life.key.address in parameters:
                known[life.key] = Category.PARAMETER
            elif in_step is not None:
                known[life.key] = Category.OPTIMIZER_STATE if life.outlives(in_step) else Category.TEMPORARY
            elif any(life.outlives(accumulating.end_of(t)) for t in (life.start, *life.touched)):
                known[life.key] = Category.GRADIENT
            elif before and life.touched and all(stepping.end_of(t) is not None for t in life.touched):
                known[life.key] = Category.OPTIMIZER_STATE
            elif before and any(stepping.end_of(t) is not None for t in life.written):
                known[life.key] = Category.PARAMETER
            elif not before and life.end is not None and nodes.at(life.start) == nodes.at(life.end) is not None:
                known[life.key] = Category.TEMPORARY
            elif not before and backward.end_of(life.start) is not None:
                known[life.key] = Category.AUTOGRAD_DETAIL
        known.update(self._forward(known, nodes, bool(len(backward.start))))
        for life in self._lives:
            if life.key in known:
                yield life, known[life.key]

    def _forward(self, known: dict[TensorKey, Category], nodes: _Ranges, trained: bool) -> dict[TensorKey, Category]:
        """Of what is still unknown: activations follow from parameters, inputs meet them. The rest stays unknown."""
        model = {key for key, category in known.items() if category is Category.PARAMETER}
        if trained and not model:
            # Nobody said what the parameters are: all that was there before the training began may be one.
            model = {life.key for life in self._lives if life.start == BEFORE and life.touched}
        of_node: dict[int, list[_Life]] = {}
        made_in: dict[TensorKey, int | None] = {}
        for life in self._lives:
            made_in[life.key] = None if life.start == BEFORE else nodes.at(life.start)
            for node in {nodes.at(t) for t in (life.start, *life.touched) if t != BEFORE}:
                if node is not None:
                    of_node.setdefault(node, []).append(life)
        found: dict[TensorKey, Category] = {}
        follows = set(model)
        for node in sorted(of_node):
            lives = of_node[node]
            if any(life.key in follows for life in lives):
                made = [life for life in lives if made_in[life.key] == node]
                follows.update(life.key for life in made if life.key not in known or known[life.key] is Category.TEMPORARY)
                found.update({life.key: Category.ACTIVATION for life in made if life.key not in known})
        for lives in of_node.values():
            if any(life.key in follows for life in lives):
                for life in lives:
                    if life.key not in known:
                        found.setdefault(life.key, Category.INPUT)
        return found


def _outermost_ops(store: EventStore) -> NDArray[np.bool_]:
    """Ops and backward nodes that no other op or node has called."""
    ops: NDArray[np.bool_] = np.isin(store.kind, (observer.OP, observer.BACKWARD))
    return ops & (tree.nearest_ancestor(store.parent, ops) < 0)


def _named(store: EventStore, wanted: Any) -> NDArray[np.bool_]:
    chosen = np.array([bool(wanted(name)) for name in store.names] or [False])
    return chosen[store.name] if len(store) else np.empty(0, np.bool_)


class _Ranges:
    """The times during which some rows ran."""

    def __init__(self, store: EventStore, chosen: NDArray[np.bool_]) -> None:
        self.start, self.end = store.start[chosen], np.maximum.accumulate(store.end[chosen])

    def at(self, moment: int) -> int | None:
        """The number of the range that contains a moment, None if none does."""
        at = int(np.searchsorted(self.start, moment, side="right")) - 1
        return at if at >= 0 and moment <= self.end[at] else None

    def end_of(self, moment: int) -> int | None:
        """When the range that contains a moment ends, None if none does."""
        at = self.at(moment)
        return None if at is None else int(self.end[at])


_DEVICES = {1: "cuda", 20: "npu"}


def _device_name(kind: int, index: int) -> str:
    return "cpu" if kind == 0 else f"{_DEVICES.get(kind, 'privateuseone')}:{max(index, 0)}"


def _lives(store: EventStore, touched: NDArray[np.int64]) -> Iterator[_Life]:
    """Every piece of memory that was there, in order of appearance; what existed before comes first."""
    columns = (store.mem_time, store.mem_addr, store.mem_bytes, store.mem_device_type, store.mem_device_index)
    events: list[tuple[int, bool, int, int, bool, str]] = [
        (moment, False, address, size, False, _device_name(kind, index))
        for moment, address, size, kind, index in zip(*(column.tolist() for column in columns), strict=True)
    ]
    events += [(moment, True, address, size, bool(written), "cpu") for moment, address, size, written in touched.tolist()]
    events.sort(key=lambda event: event[0])
    alive: dict[int, _Life] = {}
    earlier: list[_Life] = []
    made: list[_Life] = []

    def begin(address: int, size: int, start: int, device: str) -> _Life:
        life = alive[address] = _Life(TensorKey(len(earlier) + len(made), address, device), size, start)
        (earlier if start == BEFORE else made).append(life)
        return life

    for moment, is_touch, address, size, written, device in events:
        if not is_touch and size >= 0:
            begin(address, size, moment, device)
            continue
        life = alive.get(address) or begin(address, abs(size), BEFORE, device)
        if is_touch:
            life.touched.append(moment)
            if written:
                life.written.append(moment)
        else:
            life.end = moment
            del alive[address]
    yield from earlier
    yield from made
