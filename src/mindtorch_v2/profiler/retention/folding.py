"""Folding: rows of one thread go in as they end, and come out with their self time once their parent is known.

A parent ends after its children, so the newest _MOST_PENDING rows are held back: their parent may be still to come. A row
that is counted before its parent leaves a remainder behind (start, end, and the time to subtract from the parent's self
time). Remainders between the starts of two open ranges have the same parent and are merged. So self times are exact for
ranges of any length and for ops with up to _MOST_PENDING rows inside them, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store import tree
from ..store.distinct import distinct_values

Numbers = NDArray[np.int64]
Rows = dict[str, Numbers]  # COLUMNS, in the order in which the rows ended

COLUMNS = ("start", "end", "kind", "label", "shape", "module", "module_from", "step", "flops")
# Remainders of counted rows: `subtract` is the time to subtract from the parent's self time, `count` the number of rows.
_REMAINDER = ("start", "end", "subtract", "count")
# In the column `module_from`: the row has the module of a forward op, as its backward node or as the engine's row around it.
BACKWARD, ENGINE = 1, 2
_MOST_PENDING = 1 << 14
_MOST_REMAINDERS = 1 << 12


class Counted(NamedTuple):
    """Rows whose parent is known, or will not matter, and the self time of each."""

    rows: Rows
    self_ns: Numbers


def empty(columns: tuple[str, ...]) -> Rows:
    """Columns of no rows."""
    return {name: np.empty(0, np.int64) for name in columns}


class Folding:
    """The pending rows and the remainders of one thread."""

    def __init__(self) -> None:
        self._pending = empty(COLUMNS)
        self._remainders = empty(_REMAINDER)

    def fold(self, new: Rows, open_ranges: Numbers, *, everything: bool = False, keep: bool = True) -> Counted:
        """Add new rows, and return those that can be counted now: with `everything` all of them, since no more will come.

        open_ranges: start times of the ranges that are still open. keep=False leaves the state as it was before the call.
        """
        rows = {name: np.concatenate([self._pending[name], new[name]]) for name in COLUMNS}
        count, before = len(rows["start"]), len(self._remainders["start"])
        start = np.concatenate([self._remainders["start"], rows["start"]])
        end = np.concatenate([self._remainders["end"], rows["end"]])
        parent = _parents(start, end)  # as indices into remainders and rows together
        duration = rows["end"] - rows["start"]
        self_ns, subtract, hidden = _self_times(rows, self._remainders, parent, duration)
        done = count if everything else max(0, count - _MOST_PENDING)
        module = _inherited(rows, parent[before:] - before)
        finished = {name: values[:done] for name, values in rows.items()}
        finished["module"] = module[:done]
        visible = ~hidden[:done]
        counted = Counted({name: values[visible] for name, values in finished.items()}, self_ns[:done][visible])
        if keep:
            remains = (parent < 0) | (parent >= before + done)  # the parent is not counted yet
            remains[before + done :] = False
            amounts = np.concatenate([self._remainders["subtract"], subtract])
            numbers = np.concatenate([self._remainders["count"], np.ones(count, np.int64)])
            self._pending = {name: values[done:].copy() for name, values in rows.items()}
            remainders = {"start": start[remains], "end": end[remains], "subtract": amounts[remains], "count": numbers[remains]}
            bounds = np.concatenate([open_ranges, self._pending["start"]])
            self._remainders = (
                remainders if len(remainders["start"]) <= _MOST_REMAINDERS else _merged(remainders, distinct_values(bounds))
            )
        return counted


def _parents(start: Numbers, end: Numbers) -> Numbers:
    """The index of the parent of each row, -1 for none; the rows may be in any order."""
    order = tree.row_order(start, end)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    above = np.append(order, -1)[tree.parents(np.zeros(len(order), np.int32), start[order], end[order])]
    parents: Numbers = above[place]
    return parents


def _self_times(
    rows: Rows, remainders: Mapping[str, Numbers], parent: Numbers, duration: Numbers
) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
    """Self time of each row, the time to subtract from its parent's, and whether the row is hidden.

    As in the views of a recording, an only child that has its parent's name is hidden; its time counts as its parent's.
    """
    count, before = len(duration), len(remainders["start"])
    children = tree.sums(parent, np.concatenate([remainders["subtract"], duration]), before + count)[before:]
    self_ns = np.maximum(duration - children, 0)
    siblings = tree.sums(parent, np.concatenate([remainders["count"], np.ones(count, np.int64)]), before + count)[before:]
    above = parent[before:] - before
    inner = np.flatnonzero(above >= 0)
    hidden = np.zeros(count, np.bool_)
    hidden[inner] = (siblings[above[inner]] == 1) & (rows["label"][inner] == rows["label"][above[inner]])
    if not hidden.any():
        return self_ns, duration, hidden
    near = tree.nearest_kept(above.clip(-1).astype(np.int32), np.flatnonzero(~hidden))[:-1]
    visible_ns = np.zeros(count, np.int64)
    np.add.at(visible_ns, np.flatnonzero(~hidden)[near], self_ns)
    # The children of a hidden row are subtracted from its parent directly.
    below = self_ns.copy()
    below[~hidden] = 0
    subtract = duration.copy()
    for row in np.flatnonzero(hidden).tolist():  # children come before their parents
        subtract[row] -= below[row]
        if hidden[above[row]]:
            below[above[row]] += below[row]
    return visible_ns, subtract, hidden


def _inherited(rows: Rows, above: Numbers) -> Numbers:
    """The module of each row: a backward row has its forward op's, and so have the rows around and inside it."""
    backward = np.flatnonzero(rows["module_from"] == BACKWARD)
    if not (rows["module_from"] > 0).any():
        return rows["module"]
    parent = above.clip(-1).astype(np.int32)
    engine = parent[backward]
    outer = (engine >= 0) & (rows["kind"][engine] == observer.ENGINE)
    # Stored in the rows, since the backward row may be counted before the engine's row around it.
    rows["module"][engine[outer]] = rows["module"][backward[outer]]
    rows["module_from"][engine[outer]] = ENGINE
    module, known = rows["module"].copy(), rows["module_from"] > 0
    nearest = tree.nearest_ancestor(parent, known)
    inner = np.flatnonzero((nearest >= 0) & ~known)
    module[inner] = module[nearest[inner]]
    return module


def _merged(remainders: Rows, bounds: Numbers) -> Rows:
    """Remainders summed up between `bounds`, the start times of rows that may still turn out to be their parent."""
    bucket = np.searchsorted(bounds, remainders["start"], side="right")
    order = np.lexsort((remainders["start"], bucket))
    first = np.flatnonzero(np.append(True, np.diff(bucket[order]) > 0))
    return {
        "start": np.minimum.reduceat(remainders["start"][order], first),
        "end": np.maximum.reduceat(remainders["end"][order], first),
        "subtract": np.add.reduceat(remainders["subtract"][order], first),
        "count": np.add.reduceat(remainders["count"][order], first),
    }
