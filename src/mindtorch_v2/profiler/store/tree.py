"""The call tree: pure functions on event columns whose rows are sorted by (start, -end)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .distinct import distinct_values

_BLOCK = 1 << 16
Rows = NDArray[np.intp]
Times = NDArray[np.int64] | NDArray[np.float64]


def row_order(start: Times, end: Times) -> Rows:
    """The order that sorts rows by (start, -end); of equal intervals the one recorded later comes first.

    A child is recorded before its parent, so in this order every parent precedes its children.
    """
    # Rows come nearly sorted, which makes the stable sort fast.
    order = np.argsort(start, kind="stable")
    ordered = start[order]
    tied = np.zeros(len(order) + 1, np.bool_)
    np.equal(ordered[1:], ordered[:-1], out=tied[1:-1])
    if tied.any():
        # Clocks rarely tie, so only the tied rows get the slower sort; each run of ties keeps its place.
        place = np.flatnonzero(tied[1:] | tied[:-1])
        rows = order[place]
        order[place] = rows[np.lexsort((-rows, -end[rows], start[rows]))]
    return order


def parents(tid: NDArray[np.int32], start: Times, end: Times) -> NDArray[np.int32]:
    """The innermost row of the same thread that encloses each row, -1 at a root.

    A row is enclosed when it starts before the other one ends and ends no later. Where rows of a thread overlap
    partially, the one that started later is on top and the earlier one can enclose nothing any more.
    """
    n = len(start)
    if n and (tid[0] == tid).all():
        return _parents_of_one_thread(start, end)
    parent = np.full(n, -1, np.int32)
    for thread in distinct_values(tid):
        rows = np.flatnonzero(tid == thread).astype(np.int32)
        local = _parents_of_one_thread(start[rows], end[rows])
        inner = local >= 0
        parent[rows[inner]] = rows[local[inner]]
    return parent


def _parents_of_one_thread(start: Times, end: Times) -> NDArray[np.int32]:
    n = len(start)
    parent = np.full(n, -1, np.int32)
    if n < 2:
        return parent
    # Depth = rows opened before minus rows closed before. A row without duration encloses nothing: it is left out
    # of both, and of the candidates below.
    lasting = end > start
    everything = bool(lasting.all())
    depth = np.searchsorted(np.sort(end if everything else end[lasting], kind="stable"), start, side="right")
    np.subtract(np.arange(n) if everything else np.cumsum(lasting) - lasting, depth, out=depth)
    deepest = int(depth.max())
    if deepest > np.iinfo(np.int16).max:
        return _parents_by_stack(start, end)
    # A parent is the last candidate one level up that comes before the row.
    small = depth.astype(np.int16)
    by_depth = np.argsort(small, kind="stable")
    bounds = np.searchsorted(small[by_depth], np.arange(deepest + 2))
    for level in range(1, deepest + 1):
        above = by_depth[bounds[level - 1] : bounds[level]]
        if not everything:
            above = above[lasting[above]]
        rows = by_depth[bounds[level] : bounds[level + 1]]
        candidates = above[np.searchsorted(above, rows) - 1]
        # Depth counts every open row as an ancestor. If all parents enclose their children, all ancestors do, so no
        # two rows overlap partially and the result holds.
        if (end[rows] > end[candidates]).any():
            return _parents_by_stack(start, end)
        parent[rows] = candidates
    return parent


def _parents_by_stack(start: Times, end: Times) -> NDArray[np.int32]:
    """The rule of `parents` row by row, for ranges that overlap partially."""
    parent = np.empty(len(start), np.int32)
    open_rows: list[int] = []
    open_ends: list[int] = []
    # Block by block: as Python numbers, all rows at a time would take ten times the memory of the columns.
    for first in range(0, len(start), _BLOCK):
        block = slice(first, first + _BLOCK)
        block_parents: list[int] = []
        for row, (begin, finish) in enumerate(zip(start[block].tolist(), end[block].tolist(), strict=True), first):
            while open_rows and (begin >= open_ends[-1] or finish > open_ends[-1]):
                open_rows.pop()
                open_ends.pop()
            block_parents.append(open_rows[-1] if open_rows else -1)
            open_rows.append(row)
            open_ends.append(finish)
        parent[block] = block_parents
    return parent


def beside_steps(start: Times, end: Times, is_step: NDArray[np.bool_]) -> Times | None:
    """Ends of one thread's rows such that none overlaps a step partially; None if none does.

    step() is called by functions that have yet to return. One that contains no whole step (an optimizer's step() that steps
    the profiler) belongs to the step that it began in and ends with it. Another one (a loop over many steps) contains
    the steps after it, and the step that it began in ends for the tree where it began. A row that ends inside a step that
    began in it ends where that step began.
    """
    steps = np.flatnonzero(is_step)
    rows = np.flatnonzero(~is_step)
    nested = end.copy()
    at = np.searchsorted(start[steps], start[rows], side="left") - 1
    step = steps[at]
    crossing = (start[step] < start[rows]) & (start[rows] < end[step]) & (end[rows] > end[step])
    if crossing.any():
        row, step = rows[crossing], step[crossing]
        following = np.append(end[steps[1:]], np.iinfo(np.int64).max)[at[crossing]]  # the end of the step after it
        inside = end[row] < following
        nested[row[inside]] = end[step[inside]]
        np.minimum.at(nested, step[~inside], start[row[~inside]])
    step = steps[np.searchsorted(start[steps], nested[rows], side="left") - 1]
    ending = (start[rows] < start[step]) & (start[step] < nested[rows]) & (nested[rows] < end[step])
    nested[rows[ending]] = start[step[ending]]
    return nested if crossing.any() or ending.any() else None


def depths(parent: NDArray[np.int32]) -> NDArray[np.int32]:
    """How many ancestors each row has."""
    depth = np.zeros(len(parent), np.int32)
    rows = np.flatnonzero(parent >= 0)
    above = parent[rows]
    while len(rows):
        depth[rows] += 1
        above = parent[above]
        still = above >= 0
        rows, above = rows[still], above[still]
    return depth


def sums(rows: NDArray[Any], values: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """For each of n rows the sum of the values whose `rows` entry names it; entries below 0 count nowhere."""
    counted = rows >= 0
    if not counted.all():
        rows, values = rows[counted], values[counted]
    # float64 holds every sum below 2**53 exactly: 104 days of nanoseconds, 9 petabytes.
    return np.bincount(rows, weights=values, minlength=n).astype(np.int64)


def children_sums(parent: NDArray[np.int32], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row the sum of its direct children's values."""
    return sums(parent, values, len(parent))


def subtree_sums(parent: NDArray[np.int32], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row the sum of its own value and those of all its descendants."""
    total = values.copy()
    rows = np.flatnonzero(values)
    amounts, above = values[rows], parent[rows]
    while len(above):
        inner = above >= 0
        amounts, above = amounts[inner], above[inner]
        np.add.at(total, above, amounts)
        above = parent[above]
    return total


def enclosing(
    tid: NDArray[np.int32],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    parent: NDArray[np.int32],
    at_tid: NDArray[np.int32],
    at: NDArray[np.int64],
) -> NDArray[np.int32]:
    """The innermost row that was running on thread at_tid[k] at time at[k], -1 when there was none."""
    innermost = np.full(len(at), -1, np.int32)
    if not len(start):
        return innermost
    for thread in distinct_values(at_tid):
        moments = np.flatnonzero(at_tid == thread)
        rows = np.flatnonzero(tid == thread)
        latest = np.searchsorted(start[rows], at[moments], side="right") - 1
        some = latest >= 0
        moments = moments[some]
        innermost[moments] = rows[latest[some]]
    waiting = np.flatnonzero(innermost >= 0)
    while len(waiting):
        over = waiting[end[innermost[waiting]] < at[waiting]]
        innermost[over] = parent[innermost[over]]
        waiting = over[innermost[over] >= 0]
    return innermost


def without_only_namesakes(parent: NDArray[np.int32], key: NDArray[Any]) -> Rows:
    """All rows except only children that have their parent's key."""
    inner = np.flatnonzero(parent >= 0)
    above = parent[inner]
    same = np.flatnonzero(key[inner] == key[above])
    keep = np.ones(len(parent), np.bool_)
    if len(same):
        only = np.bincount(above, minlength=len(parent))[above[same]] == 1
        keep[inner[same[only]]] = False
    return np.flatnonzero(keep)


def nearest_kept(parent: NDArray[np.int32], kept: Rows) -> NDArray[np.int32]:
    """For every row, the new number of its nearest kept row at or above it; one more entry so that [-1] is -1."""
    n = len(parent)
    number = np.full(n + 1, -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    above = np.append(parent, np.int32(-1))
    dropped = np.ones(n + 1, np.bool_)
    dropped[kept] = False
    dropped[-1] = False
    rows = np.flatnonzero(dropped)
    target = above[rows]
    while True:
        lost = np.flatnonzero(dropped[target])
        if not len(lost):
            break
        target[lost] = above[target[lost]]
    number[rows] = number[target]
    return number


def forward_backward(
    kind: NDArray[np.int8],
    tid: NDArray[np.int32],
    seq: NDArray[np.int64],
    fwd_tid: NDArray[np.int32],
    forward_kind: int,
    backward_kind: int,
) -> tuple[Rows, Rows]:
    """Pairs (forward row, backward row) that share a sequence number and the forward thread.

    Several ops may carry one number; the one that started last is the one that created the backward node. A forward
    row is paired once, with its first backward row.
    """
    forward = np.flatnonzero((kind == forward_kind) & (seq >= 0))
    backward = np.flatnonzero((kind == backward_kind) & (seq >= 0) & (fwd_tid >= 0))
    if not len(forward) or not len(backward):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    width = int(seq.max()) + 1
    forward_key = tid[forward].astype(np.int64) * width + seq[forward]
    backward_key = fwd_tid[backward].astype(np.int64) * width + seq[backward]
    order = np.argsort(forward_key, kind="stable")
    forward_key = forward_key[order]
    last = np.searchsorted(forward_key, backward_key, side="right") - 1
    known = (last >= 0) & (forward_key[last] == backward_key)
    pairs = forward[order[last[known]]]
    backward = backward[known]
    _, first = np.unique(pairs, return_index=True)
    first.sort()
    return pairs[first], backward[first]


def nearest_ancestor(parent: NDArray[np.int32], wanted: NDArray[np.bool_]) -> NDArray[np.int32]:
    """For each row the nearest ancestor (not itself) that is wanted, -1 if there is none."""
    above = parent.copy()
    rows = np.flatnonzero(above >= 0)
    while len(rows):
        rows = rows[~wanted[above[rows]]]
        above[rows] = parent[above[rows]]
        rows = rows[above[rows] >= 0]
    return above


def matching_ends(begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each beginning in a sequence of beginnings and ends, the number of its end; -1 if it has none, and for ends.

    At every depth beginnings and ends alternate, so the end is the next entry of the same depth.
    """
    depth = np.cumsum(np.where(begins, 1, -1))
    level = depth + ~begins
    by_level = np.argsort(level, kind="stable")
    ends = np.full(len(begins), -1, np.int64)
    if len(begins) > 1:
        here, following = by_level[:-1], by_level[1:]
        paired = begins[here] & ~begins[following] & (level[here] == level[following])
        ends[here[paired]] = following[paired]
    return ends
