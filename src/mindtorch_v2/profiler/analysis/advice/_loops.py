"""Loops in which a line of the user's calls the same op on the same shapes again and again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store import tree
from ...store.store import EventStore
from ..source.line_times import line_times
from ..source.places import is_users, parsed
from ._evidence import Rows, call_cost_ns, in_own_spans, passes, share, typical_pieces_ns

_FEWEST = 8  # calls in a pass
_SAME = 0.2  # by how much numbers of calls may differ in one loop
_LEAST = 0.05  # of the recorded time, for what calls cost beside their work
_LEAST_GAIN, _LEAST_OF_ALL = 0.02, 0.1  # or so much, if the loop takes that part and its calls are small:
_SMALL = 50  # times the least cost of an op
_FAR = 10  # times the usual time between two calls
PICKS = frozenset({"aten::select", "aten::slice", "aten::narrow", "aten::index", "aten::index_select"})
READS = frozenset({"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal"})


class Loop(NamedTuple):
    """A loop of a function.

    line: its slowest line. lines: all lines that call an op. rows: those ops. calls: of an op in a pass. gain_ns: what the
    calls cost beside their work; total_ns: what the lines cost in all.
    """

    line: str
    lines: tuple[str, ...]
    rows: Rows
    calls: float
    picks: bool  # takes a part of a tensor in each round
    reads: bool  # takes a value out of a tensor in each round
    gain_ns: int
    total_ns: int

    def names(self, store: EventStore) -> list[tuple[str, int, str]]:
        """(op, calls, shapes) of the ops, most time first."""
        shapes = _shapes_only(store)[store.shapes[self.rows]]
        keys = store.name[self.rows].astype(np.int64) * (len(store.input_infos) + 1) + shapes + 1
        _, first, which, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        times = np.bincount(which, weights=store.duration[self.rows])
        found = []
        for at in np.argsort(-times)[:3].tolist():
            row = self.rows[first[at]]
            info = store.input_infos[store.shapes[row]] if store.shapes[row] >= 0 else None
            dims = [] if info is None else [str(list(each)) for each in info.dims if isinstance(each, tuple) and each]
            found.append((store.names[store.name[row]], int(counts[at]), ", ".join(dims)))
        return found


class _Lines(NamedTuple):
    """The kinds of calls, by number, that the same lines make, and how often a line calls in a pass."""

    keys: list[int]
    calls: float


_known: WeakKeyDictionary[EventStore, list[Loop]] = WeakKeyDictionary()


def loops(store: EventStore) -> list[Loop]:
    """The loops whose calls cost a part of the time that is worth a change, beside the work they do; needs stacks."""
    known = _known.get(store)
    if known is None:
        known = _known[store] = list(_found(store))
    return known


def in_loops(store: EventStore, chosen: Iterable[Loop] | None = None) -> NDArray[np.bool_]:
    """Whether each row is an op of a loop, is inside one, or computes the gradient of one."""
    stacks = np.zeros(len(store.stacks) + 1, np.bool_)
    for loop in loops(store) if chosen is None else chosen:
        stacks[store.call_stack[loop.rows]] = True
    stacks[-1] = False
    return stacks[store.call_stack]


def _found(store: EventStore) -> Iterable[Loop]:
    calls = _called_ops(store)
    if not len(calls):
        return
    found = passes(store)
    keys = np.stack([store.name[calls], _shapes_only(store)[store.shapes[calls]], store.stack[calls], store.module[calls]])
    distinct, which = np.unique(keys, axis=1, return_inverse=True)
    which = which.reshape(-1)
    at = found.of_row[calls]
    inside = at >= 0
    counted = np.zeros((distinct.shape[1], found.count), np.int64)
    np.add.at(counted, (which[inside], at[inside]), 1)
    typical = np.array([found.typical(row) for row in counted])
    grouped: dict[tuple[str, str, tuple[str, ...]], list[int]] = {}
    for key in np.flatnonzero(typical >= _FEWEST).tolist():
        stack = store.stacks[distinct[2, key]]
        frame = parsed(stack[0])
        assert frame is not None
        grouped.setdefault((frame.file, frame.function, stack[1:]), []).append(key)
    merged: dict[tuple[str, ...], _Lines] = {}  # by the lines: a loop may call a function in several places
    for keys_of_function in grouped.values():
        of_function = keys_of_function
        while of_function:
            # Those of a line belong together, and lines of one loop are called equally often.
            often = max(float(typical[key]) for key in of_function)
            lines = {int(distinct[2, key]) for key in of_function if typical[key] >= (1 - _SAME) * often}
            fewest = min(float(typical[key]) for key in of_function if int(distinct[2, key]) in lines)
            lines |= {int(distinct[2, key]) for key in of_function if abs(typical[key] - fewest) <= _SAME * fewest}
            same = [key for key in of_function if int(distinct[2, key]) in lines]
            of_function = [key for key in of_function if key not in same]
            places = tuple(sorted({store.stacks[distinct[2, key]][0] for key in same}))
            before = merged.get(places, _Lines([], 0.0))
            merged[places] = _Lines(before.keys + same, before.calls + fewest)
    for same_lines in merged.values():
        loop = _loop(store, calls[np.isin(which, same_lines.keys) & inside], same_lines.calls)
        gain, whole = share(loop.gain_ns, store) or 0.0, share(loop.total_ns, store) or 0.0
        if gain >= _LEAST or (gain >= _LEAST_GAIN and whole >= _LEAST_OF_ALL and _is_small(store, loop)):
            yield loop


def _shapes_only(store: EventStore) -> NDArray[np.int64]:
    """A number for each entry of the table of inputs: equal if shapes and types are, whatever the values of numbers are."""
    known: dict[object, int] = {}
    numbers = [known.setdefault((info.dims, info.types), len(known)) for info in store.input_infos]
    return np.array([*numbers, -1], np.int64)


def _is_small(store: EventStore, loop: Loop) -> bool:
    """Whether a call of the loop does so little that its own cost is a part of it."""
    return float(np.median(store.duration[loop.rows])) <= _SMALL * call_cost_ns(store)


def _called_ops(store: EventStore) -> Rows:
    """Ops that a line of the user's calls, not those of a backward pass, an optimizer or a data loader."""
    of_stack = np.zeros(len(store.stacks) + 1, np.bool_)
    for number, stack in enumerate(store.stacks):
        frame = parsed(stack[0]) if stack else None
        of_stack[number] = frame is not None and is_users(frame.file)
    ops = np.flatnonzero((store.kind == observer.OP) & (store.device_type == 0) & of_stack[store.stack])
    runtime = np.isin(store.kind, (observer.OP, observer.BACKWARD, observer.ENGINE))
    inner = tree.nearest_ancestor(store.parent, runtime)[ops] >= 0
    return ops[~inner & ~in_own_spans(store)[ops]]


def _loop(store: EventStore, rows: Rows, calls: float) -> Loop:
    pieces = line_times(store)
    lines = pieces.line[np.isin(pieces.row, rows)]
    lines = np.unique(lines[lines >= 0])
    at_lines = np.flatnonzero(np.isin(pieces.line, lines))
    times = [typical_pieces_ns(store, at_lines[pieces.line[at_lines] == line]) for line in lines.tolist()]
    between = at_lines[pieces.is_python[at_lines]]
    usual = float(np.median(pieces.ns[between])) if len(between) else 0.0
    python_ns = typical_pieces_ns(store, between, _FAR * usual)  # what interrupted one round is not part of the loop
    names = {store.names[name] for name in np.unique(store.name[rows]).tolist()}
    return Loop(
        pieces.lines[int(lines[int(np.argmax(times))])],
        tuple(pieces.lines[line] for line in lines.tolist()),
        rows,
        calls,
        bool(names & PICKS),
        bool(names & READS),
        round((python_ns + _called_in(store, rows) * call_cost_ns(store)) * (1 - 1 / calls)),
        sum(times),
    )


def _called_in(store: EventStore, rows: Rows) -> int:
    """How many ops rows are, together with those that they call: a matmul of three dimensions is five."""
    is_op = ((store.kind == observer.OP) & (store.device_type == 0)).astype(np.int64)
    return int(tree.subtree_sums(store.parent, is_op)[rows].sum())
