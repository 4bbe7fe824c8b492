"""The steps of a recording: start and end of each, and sums over rows by step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store import tree
from ..store.derived import OPTIMIZER_STEP, STEP_PREFIX
from ..store.store import EventStore

_FEWEST_BY_OPTIMIZER = 3


class Steps(NamedTuple):
    """Steps in order of time. A recording without steps is one step."""

    number: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    by_optimizer: bool = False  # whether each is the time from one step of an optimizer to the next

    @property
    def duration(self) -> NDArray[np.int64]:
        """Nanoseconds of each step."""
        return self.end - self.start


def steps(store: EventStore) -> Steps:
    """The steps of a recording: its ProfilerStep rows, else those of the step column, else all of it as one."""
    if not len(store):
        nothing = np.empty(0, np.int64)
        return Steps(nothing, nothing, nothing)
    marked = marked_steps(store)
    if marked is not None:
        return marked
    host = _host(store)
    number = np.unique(store.step[host])
    if len(number) < 2:
        return Steps(number.astype(np.int64)[:1], store.start[host].min(keepdims=True), store.end[host].max(keepdims=True))
    at = np.searchsorted(number, store.step[host])
    start = np.full(len(number), np.iinfo(np.int64).max)
    np.minimum.at(start, at, store.start[host])
    # A step lasts until the next one begins, including the time between ops.
    end = np.append(start[1:], store.end[host].max())
    return Steps(number.astype(np.int64), start, end)


def marked_steps(store: EventStore) -> Steps | None:
    """The steps that ProfilerStep rows mark; None without them."""
    named = [i for i, name in enumerate(store.names) if name.startswith(STEP_PREFIX)]
    rows = np.flatnonzero(np.isin(store.name, named) & _host(store)) if named else np.empty(0, np.intp)
    if not len(rows):
        return None
    number = np.array([_number(store.names[n]) for n in store.name[rows].tolist()], np.int64)
    order = np.argsort(store.start[rows], kind="stable")
    return Steps(number[order], store.start[rows][order], store.end[rows][order])


def _host(store: EventStore) -> NDArray[np.bool_]:
    """Which rows are the host's; all in a recording of devices alone."""
    host: NDArray[np.bool_] = store.device_type == 0
    return host if host.any() else ~host


def training_steps(store: EventStore) -> Steps:
    """The steps of a recording; where nothing marks them, from the end of one step of an optimizer to that of the next."""
    marked = steps(store)
    return marked if len(marked.start) > 1 else steps_by_optimizer(store) or marked


def steps_by_optimizer(store: EventStore) -> Steps | None:
    """From the end of one step of the first optimizer to that of the next, as traces are read; None if there are few."""
    named = [i for i, name in enumerate(store.names) if name.startswith(OPTIMIZER_STEP)]
    update = np.isin(store.name, named) & (store.device_type == 0) & ~store.is_python
    update &= tree.nearest_ancestor(store.parent, update) < 0  # an optimizer may call another one's step
    rows = np.flatnonzero(update)
    if len(rows):
        rows = rows[store.name[rows] == store.name[rows[np.argmin(store.start[rows])]]]
    if len(rows) <= _FEWEST_BY_OPTIMIZER:
        return None
    ends = np.sort(store.end[rows])
    return Steps(np.arange(len(ends) - 1), ends[:-1], ends[1:], by_optimizer=True)


def step_of(store: EventStore, which: Steps) -> NDArray[np.intp]:
    """Position of the step in which each row started; -1 outside of all."""
    at = np.searchsorted(which.start, store.start, side="right") - 1
    inside = (at >= 0) & (store.start < which.end[at]) if len(which.start) else np.zeros(len(store), np.bool_)
    return np.where(inside, at, -1)


def per_step(
    store: EventStore, which: Steps, group: NDArray[np.integer], groups: int, values: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sums of `values`, one line per group and one column per step; rows of group -1 or outside the steps do not count."""
    at = step_of(store, which)
    rows = np.flatnonzero((at >= 0) & (group >= 0))
    flat = group[rows].astype(np.int64) * len(which.start) + at[rows]
    return tree.sums(flat, values[rows], groups * len(which.start)).reshape(groups, len(which.start))


def time_between_events(store: EventStore, which: Steps) -> NDArray[np.int64]:
    """Nanoseconds of each step in which the main loop's thread was in no op and no range: in Python, or waiting."""
    host = (store.device_type == 0) & (store.kind != observer.MEMORY) & ~store.is_python
    inside = host & ~is_step(store) & (store.tid == main_thread(store))
    taken = per_step(store, which, np.where(inside, 0, -1), 1, store.work_ns)[0]
    rest: NDArray[np.int64] = np.maximum(which.duration - taken, 0)
    return rest


def is_step(store: EventStore) -> NDArray[np.bool_]:
    """Whether a row is the span of a step."""
    named = [i for i, name in enumerate(store.names) if name.startswith(STEP_PREFIX)]
    rows: NDArray[np.bool_] = (store.kind == observer.STEP) | np.isin(store.name, named)
    return rows


def main_thread(store: EventStore) -> int:
    """The thread of the program's main loop: that of its steps, else the one whose own ops and ranges took longest.

    Python calls do not tell: a thread that waits in one looks as busy as the one that works. Nor do backward passes, which
    may have a thread of their own.
    """
    host = (store.device_type == 0) & (store.kind != observer.MEMORY)
    marked = np.flatnonzero(is_step(store) & host)
    if len(marked):
        return int(np.argmax(np.bincount(store.tid[marked])))
    backward = np.isin(store.kind, (observer.ENGINE, observer.BACKWARD))
    own = host & (store.kind != observer.PYTHON) & ~backward & (tree.nearest_ancestor(store.parent, backward) < 0)
    rows = np.flatnonzero(own if own.any() else host)
    return int(np.argmax(np.bincount(store.tid[rows], weights=store.self_ns[rows]))) if len(rows) else 0


def _number(name: str) -> int:
    digits = name[len(STEP_PREFIX) :]
    return int(digits) if digits.isdecimal() else -1
