"""Rows of one thread on their way into totals: each stays until its parent is known, then it is counted and gone.

A parent ends after its children, so the newest rows are held back until _HELD later ones have ended. Of rows that were
counted without a parent only start, end and duration are carried on, to be taken off the self time of a range that is
still open; between the beginnings of open ranges they are merged. So self times are exact for ranges of any length and
for ops with up to _HELD rows inside them, and what is kept is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store import tree

Numbers = NDArray[np.int64]
Rows = dict[str, Numbers]  # COLUMNS, in the order in which the rows ended

COLUMNS = ("start", "end", "kind", "label", "shape", "module", "given", "step", "flops")
_CARRIED = ("start", "end", "taken", "count")  # of counted rows: what to take off a parent's self time, and how many
# In the column `given`: the row was given the module of a forward op, as its backward node or as the engine's around it.
BACKWARD, ENGINE = 1, 2
_HELD = 1 << 14
_MOST_CARRIED = 1 << 12


class Counted(NamedTuple):
    """Rows that are done with."""

    rows: Rows
    self_ns: Numbers


def empty(columns: tuple[str, ...]) -> Rows:
    """No rows."""
    return {name: np.empty(0, np.int64) for name in columns}


class Folding:
    """What is held and carried of one thread."""

    def __init__(self) -> None:
        self._held = empty(COLUMNS)
        self._carried = empty(_CARRIED)

    def fold(self, new: Rows, open_ranges: Numbers, *, everything: bool = False, keep: bool = True) -> Counted:
        """Take new rows and give back those that can be counted: `everything` if no more will come.

        open_ranges: when the ranges that are still open began. keep=False leaves what is held as it was.
        """
        held = {name: np.concatenate([self._held[name], new[name]]) for name in COLUMNS}
        count, before = len(held["start"]), len(self._carried["start"])
        start = np.concatenate([self._carried["start"], held["start"]])
        end = np.concatenate([self._carried["end"], held["end"]])
        order = tree.row_order(start, end)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        above = np.append(order, -1)[tree.parents(np.zeros(len(order), np.int32), start[order], end[order])]
        parent = above[place]  # by number before sorting: carried ones first, then rows as they ended
        duration = held["end"] - held["start"]
        self_ns, taken, hidden = _self_times(held, self._carried, parent, duration)
        done = count if everything else max(0, count - _HELD)
        module = _inherited(held, parent[before:] - before)
        finished = {name: values[:done] for name, values in held.items()}
        finished["module"] = module[:done]
        shown = ~hidden[:done]
        counted = Counted({name: values[shown] for name, values in finished.items()}, self_ns[:done][shown])
        if keep:
            waits = (parent < 0) | (parent >= before + done)  # for a parent that is not counted yet
            waits[before + done :] = False
            amounts = np.concatenate([self._carried["taken"], taken])
            numbers = np.concatenate([self._carried["count"], np.ones(count, np.int64)])
            self._held = {name: values[done:].copy() for name, values in held.items()}
            carried = {"start": start[waits], "end": end[waits], "taken": amounts[waits], "count": numbers[waits]}
            bounds = np.concatenate([open_ranges, self._held["start"]])
            self._carried = carried if len(carried["start"]) <= _MOST_CARRIED else _merged(carried, np.unique(bounds))
        return counted


def _self_times(
    held: Rows, carried: Mapping[str, Numbers], parent: Numbers, duration: Numbers
) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
    """Self time of each held row, what it takes off its parent's, and whether it is not shown.

    As in the views of a recording, an only child that has its parent's name is not shown; its time is its parent's.
    """
    count, before = len(duration), len(carried["start"])
    children = tree.sums(parent, np.concatenate([carried["taken"], duration]), before + count)[before:]
    self_ns = np.maximum(duration - children, 0)
    siblings = tree.sums(parent, np.concatenate([carried["count"], np.ones(count, np.int64)]), before + count)[before:]
    above = parent[before:] - before
    inner = np.flatnonzero(above >= 0)
    hidden = np.zeros(count, np.bool_)
    hidden[inner] = (siblings[above[inner]] == 1) & (held["label"][inner] == held["label"][above[inner]])
    if not hidden.any():
        return self_ns, duration, hidden
    near = tree.nearest_kept(above.clip(-1).astype(np.int32), np.flatnonzero(~hidden))[:-1]
    shown_ns = np.zeros(count, np.int64)
    np.add.at(shown_ns, np.flatnonzero(~hidden)[near], self_ns)
    # The children of a row that is not shown are its parent's.
    below = self_ns.copy()
    below[~hidden] = 0
    taken = duration.copy()
    for row in np.flatnonzero(hidden).tolist():  # children come before their parents
        taken[row] -= below[row]
        if hidden[above[row]]:
            below[above[row]] += below[row]
    return shown_ns, taken, hidden


def _inherited(held: Rows, above: Numbers) -> Numbers:
    """Modules of rows: backward rows have been given their forward op's, and what runs around and inside them has that too."""
    backward = np.flatnonzero(held["given"] == BACKWARD)
    if not (held["given"] > 0).any():
        return held["module"]
    parent = above.clip(-1).astype(np.int32)
    engine = parent[backward]
    outer = (engine >= 0) & (held["kind"][engine] == observer.ENGINE)
    # The backward row may be counted before the engine's around it, which is why that is told now.
    held["module"][engine[outer]] = held["module"][backward[outer]]
    held["given"][engine[outer]] = ENGINE
    module, known = held["module"].copy(), held["given"] > 0
    nearest = tree.nearest_ancestor(parent, known)
    inner = np.flatnonzero((nearest >= 0) & ~known)
    module[inner] = module[nearest[inner]]
    return module


def _merged(carried: Rows, bounds: Numbers) -> Rows:
    """Carried rows summed up between the moments at which a range that may still take them began."""
    bucket = np.searchsorted(bounds, carried["start"], side="right")
    order = np.lexsort((carried["start"], bucket))
    first = np.flatnonzero(np.append(True, np.diff(bucket[order]) > 0))
    return {
        "start": np.minimum.reduceat(carried["start"][order], first),
        "end": np.maximum.reduceat(carried["end"][order], first),
        "taken": np.add.reduceat(carried["taken"][order], first),
        "count": np.add.reduceat(carried["count"][order], first),
    }
