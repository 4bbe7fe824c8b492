"""Queries that rules share: rows by name, rows below others, the passes of the main loop, shares of the time, costs."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store import tree
from ...store.store import EventStore
from ..source.line_times import line_times
from ..source.places import is_framework, is_users, parsed
from ..steps import Steps, main_thread, step_of, steps, steps_by_optimizer

Rows = NDArray[np.intp]
Times = NDArray[np.int64]

_FAR = 10  # times the median of an op: a call that took longer was interrupted, if
_FEW = 0.05  # of the op's calls, or fewer, did
_FEWEST_PASSES = 3
_MOST_OF = 0.6  # of the ops from the first to the last: what comes up over so many of them is part of the main loop
_TRIMMED = 0.1  # of the passes at either end are left out of an average: first calls, and what the machine did meanwhile


def rows_named(store: EventStore, matches: Callable[[str], bool]) -> Rows:
    """Host rows, except Python calls, whose name satisfies a condition."""
    names = [number for number, name in enumerate(store.names) if matches(name)]
    return np.flatnonzero(np.isin(store.name, names) & (store.device_type == 0) & ~store.is_python)


def under(store: EventStore, tops: Rows) -> NDArray[np.bool_]:
    """Whether each row has an ancestor among `tops`."""
    is_top = np.zeros(len(store) + 1, np.bool_)
    is_top[tops] = True
    below = np.zeros(len(store) + 1, np.bool_)
    above = store.parent.astype(np.int64)
    pending = np.arange(len(store))[above >= 0]
    above = above[above >= 0]
    while len(pending):
        hit = is_top[above]
        below[pending[hit]] = True
        pending, above = pending[~hit], store.parent[above[~hit]].astype(np.int64)
        pending, above = pending[above >= 0], above[above >= 0]
    return below[:-1]


def outermost(store: EventStore, rows: Rows) -> Rows:
    """Those of `rows` without an ancestor among them, so that their durations can be added up."""
    return rows[~under(store, rows)[rows]]


def in_own_spans(store: EventStore) -> NDArray[np.bool_]:
    """Whether each row is inside an optimizer's own work or a data loader, which rules of their own look at."""
    loading = under(store, rows_named(store, lambda name: name.startswith("enumerate(DataLoader)")))
    optimizing = under(store, rows_named(store, lambda name: name.startswith("Optimizer.")))
    return loading | (optimizing & ~in_closures(store))


def in_closures(store: EventStore) -> NDArray[np.bool_]:
    """Whether each row is of a closure of `step(closure)`, as Lightning calls it: forward and backward pass, not the update.

    The update begins when the last backward pass inside the step has ended. One of another thread counts if that thread has no
    optimizer of its own: the passes of devices have their threads.
    """
    tops = outermost(store, rows_named(store, lambda name: name.startswith("Optimizer.step#")))
    if not len(tops):
        return np.zeros(len(store), np.bool_)
    is_top = np.zeros(len(store), np.bool_)
    is_top[tops] = True
    step = tree.nearest_ancestor(store.parent, is_top)
    passes_back = np.flatnonzero(np.isin(store.kind, (observer.ENGINE, observer.BACKWARD)) & (store.device_type == 0))
    tops = tops[np.argsort(store.start[tops], kind="stable")]
    last = tops[np.maximum(np.searchsorted(store.start[tops], store.start[passes_back], side="right") - 1, 0)]
    meanwhile = (store.start[last] <= store.start[passes_back]) & (store.end[passes_back] <= store.end[last])
    meanwhile &= ~np.isin(store.tid[passes_back], store.tid[tops])
    of = np.where(meanwhile, last, step[passes_back])
    update = np.full(len(store) + 1, -1, np.int64)  # when it begins; the last is for rows outside of all steps
    np.maximum.at(update, of[of >= 0], store.end[passes_back][of >= 0])
    return store.start < update[step]


# ------------------------------------------------------------------------------ the passes of the main loop


class Passes:
    """The passes of a program's main loop: its steps, or what repeats over most of the recording; else all of it as one."""

    def __init__(self, store: EventStore) -> None:
        found = steps(store)
        if len(found.start) < 2:
            found = steps_by_optimizer(store) or _by_line(store) or found
        self.steps = found
        self.of_row = step_of(store, found)
        self.count = len(found.start)

    def at(self, moments: Times) -> NDArray[np.intp]:
        """The number of the pass at each moment, -1 outside of all."""
        at = np.searchsorted(self.steps.start, moments, side="right") - 1
        inside = (at >= 0) & (moments < self.steps.end[at]) if self.count else np.zeros(len(moments), np.bool_)
        return np.where(inside, at, -1)

    def is_inner(self, at: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether numbers are of passes other than the first and the last, which also have what comes before and after."""
        if self.count < _FEWEST_PASSES:
            return at >= 0
        return (at > 0) & (at < self.count - 1)

    def sums(self, moments: Times, ns: Times) -> Times:
        """What times sum up to in each pass, by the moments when they began; those outside of all passes do not count."""
        at = self.at(moments)
        inside = at >= 0
        return np.bincount(at[inside], weights=ns[inside], minlength=self.count).astype(np.int64)

    def typical(self, per_pass: Times) -> float:
        """The average of a pass, without those that were far off because of first calls or of other work of the machine."""
        if len(per_pass) < _FEWEST_PASSES:
            return float(per_pass.mean()) if len(per_pass) else 0.0
        cut = max(1, int(_TRIMMED * len(per_pass)))
        return float(np.sort(per_pass)[cut : len(per_pass) - cut].mean())


_passes: WeakKeyDictionary[EventStore, Passes] = WeakKeyDictionary()


def passes(store: EventStore) -> Passes:
    """The passes of a recording, found once."""
    known = _passes.get(store)
    if known is None:
        known = _passes[store] = Passes(store)
    return known


def _by_line(store: EventStore) -> Steps | None:
    """By the op that is called least often of those that come up, at one line, over most of the recording.

    Ops of one call of the user's count as one: the equal layers of a model are no passes, nor is making them.
    """
    ops = np.flatnonzero((store.kind == observer.OP) & (store.device_type == 0) & (store.stack >= 0))
    ops = ops[(store.parent[ops] < 0) | (store.kind[store.parent[ops]] != observer.OP)]
    ops = ops[~np.array([_builds_a_module(stack) for stack in store.stacks], np.bool_)[store.stack[ops]]]
    if len(ops) < _FEWEST_PASSES:
        return None
    _, which = np.unique(store.stack[ops].astype(np.int64) * len(store.names) + store.name[ops], return_inverse=True)
    distinct, begins = np.unique(np.stack([which.reshape(-1), _calls_of_user(store, ops)]), axis=1, return_index=True)
    counts = np.bincount(distinct[0])
    # By the number of ops, not by time: what is called for the first time takes long.
    place = np.arange(len(ops))
    first, last = np.full(len(counts), len(ops)), np.zeros(len(counts), np.int64)
    np.minimum.at(first, which.reshape(-1), place)
    np.maximum.at(last, which.reshape(-1), place)
    wide = np.flatnonzero((counts >= _FEWEST_PASSES + 1) & (last - first >= _MOST_OF * len(ops)))
    if not len(wide):
        return None
    chosen = wide[np.argmin(counts[wide])]
    return _between(np.sort(store.start[ops[begins[distinct[0] == chosen]]]))


def _builds_a_module(stack: tuple[str, ...]) -> bool:
    """Whether a stack goes through the constructor of a module of the framework."""
    constructors = (text for text in stack if text.endswith(": __init__") and "/nn/modules/" in text.replace("\\", "/"))
    return any(frame is not None and is_framework(frame.file) for frame in map(parsed, constructors))


def _calls_of_user(store: EventStore, rows: Rows) -> Rows:
    """For each row the call around it, or the row itself, that a function, range or step of the user's made."""
    of_name = np.zeros(len(store.names), np.bool_)
    for number, name in enumerate(store.names):
        frame = parsed(name)
        of_name[number] = frame is not None and is_users(frame.file)
    is_users_own = np.isin(store.kind, (observer.SCOPE, observer.STEP))
    is_users_own |= (store.kind == observer.PYTHON) & of_name[store.name]
    calls = rows.copy()
    inner = np.arange(len(rows))
    while len(inner):
        above = store.parent[calls[inner]]
        inner = inner[(above >= 0) & ~is_users_own[above]]
        calls[inner] = store.parent[calls[inner]]
    return calls


def _between(marks: Times) -> Steps | None:
    if len(marks) < _FEWEST_PASSES + 1:
        return None
    return Steps(np.arange(len(marks) - 1), marks[:-1], marks[1:])


# ------------------------------------------------------------------------------ times


def recorded_ns(store: EventStore) -> int:
    """How long all passes took, without what held up few of them or single calls: as long as what rules count adds up to."""
    found = passes(store)
    lengths = found.steps.duration
    if len(lengths) < _FEWEST_PASSES:
        return min(int(lengths.sum()), _undisturbed_ns(store))
    whole = round(found.typical(lengths) * len(lengths))
    main = main_thread(store)
    around = np.isin(store.kind, (observer.PYTHON, observer.STEP)) & (store.tid == main)
    if not around.any():  # what is between rows is in none
        return whole
    pieces = line_times(store)
    own = np.flatnonzero(store.tid[pieces.row] == main)
    return min(whole, typical_pieces_ns(store, own))


def _undisturbed_ns(store: EventStore) -> int:
    """Self times and the time between rows of the main thread; what is far above the median of its kind counts as that.

    On a busy machine most of a short recording may be time in which another program ran.
    """
    host = np.flatnonzero((store.device_type == 0) & (store.kind != observer.MEMORY))
    if not len(host):
        return 0
    rows = host[store.tid[host] == main_thread(store)]
    roots = rows[store.parent[rows] < 0]
    gaps = np.maximum(store.start[roots][1:] - store.nested_end[roots][:-1], 0)
    return int(undisturbed_self_ns(store, rows).sum()) + int(_clipped(gaps, store.label[roots][1:]).sum())


def share(ns: float, store: EventStore) -> float | None:
    """A time as a part of that of all passes, at most 1; None if that is 0."""
    whole = recorded_ns(store)
    return min(1.0, ns / whole) if whole else None


_usual: WeakKeyDictionary[EventStore, tuple[Times, Times]] = WeakKeyDictionary()


def usual_ns(store: EventStore) -> tuple[Times, Times]:
    """Self times and durations of all rows without what held up single calls, as `LineTimes.usual_ns` has it."""
    known = _usual.get(store)
    if known is None:
        pieces = line_times(store)
        own = tree.sums(pieces.row, pieces.usual_ns, len(store))
        known = _usual[store] = own, tree.subtree_sums(store.parent, own)
    return known


def typical_ns(store: EventStore, rows: Rows, ns: Times | None = None) -> int:
    """The time of rows in all passes together, as an average pass has it: first calls and interruptions count little."""
    found = passes(store)
    ns = usual_ns(store)[1][rows] if ns is None else ns
    return round(found.typical(found.sums(store.start[rows], ns)) * found.count)


def typical_pieces_ns(store: EventStore, chosen: Rows, most: float | None = None) -> int:
    """The same of pieces of self time, which are chosen by number; none counts more than `most`."""
    pieces, found = line_times(store), passes(store)
    ns = pieces.usual_ns[chosen] if most is None else np.minimum(pieces.usual_ns[chosen], round(most))
    return round(found.typical(found.sums(pieces.start[chosen], ns)) * found.count)


def call_cost_ns(store: EventStore) -> int:
    """The least cost of an op in this recording, of any size: the tenth percentile of self times."""
    ops = np.flatnonzero((store.kind == observer.OP) & (store.device_type == 0))
    return int(np.quantile(store.self_ns[ops], 0.1)) if len(ops) else 0


def undisturbed_self_ns(store: EventStore, rows: Rows) -> Times:
    """Self times of the rows; one that is far above the median of its op, as few of that op are, counts as the median."""
    return _clipped(store.self_ns[rows].astype(np.int64), store.label[rows])


def _clipped(values: Times, labels: NDArray[np.int32]) -> Times:
    """The values, but those that are far above the median of their label, as few of that label are, as the median."""
    clipped = values.copy()
    order = np.lexsort((values, labels))
    _, first, counts = np.unique(labels[order], return_index=True, return_counts=True)
    in_order = values[order]
    for at, count in zip(first.tolist(), counts.tolist(), strict=True):
        of_label = in_order[at : at + count]
        median = int(of_label[count // 2])
        above = int(np.searchsorted(of_label, _FAR * median, side="right"))
        if count - above <= _FEW * count:
            clipped[order[at + above : at + count]] = median
    return clipped


# ------------------------------------------------------------------------------ lines and names


def slow_lines(store: EventStore, rows: NDArray[np.bool_], limit: int = 3) -> list[tuple[str, int]]:
    """(line, nanoseconds) of the user's lines on which the marked rows spent most time themselves, first calls left out."""
    pieces = line_times(store)
    chosen = np.flatnonzero(rows[pieces.row] & (pieces.line >= 0))
    lines = []
    for line in np.unique(pieces.line[chosen]).tolist():
        of = chosen[pieces.line[chosen] == line]
        lines.append((pieces.lines[line], typical_pieces_ns(store, of)))
    lines = [each for each in lines if each[1] > 0]
    return sorted(lines, key=lambda each: -each[1])[:limit]


def top_names(store: EventStore, rows: Rows, limit: int = 5, own: Times | None = None) -> list[tuple[str, int, int]]:
    """(name, calls, self nanoseconds) of the rows, most time first; `own` are their self times if not as recorded."""
    labels, which = np.unique(store.label[rows], return_inverse=True)
    counts = np.bincount(which)
    times = np.bincount(which, weights=store.self_ns[rows] if own is None else own).astype(np.int64)
    order = np.argsort(-times)[:limit].tolist()
    return [(store.labels[int(labels[at])], int(counts[at]), int(times[at])) for at in order]
