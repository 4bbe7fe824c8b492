"""Rows of a thread whose clock was set back: each stays inside or outside of the others, and none seems another's child."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mindtorch_v2.profiler.assembly.clock_order import ClockOrder


def ordered(rows, since=0, nests=True):
    table = np.array([(0, *row) for row in rows], np.int64).reshape(-1, 3)
    order = ClockOrder(since)
    fixed = order.fixed(table, np.broadcast_to(np.asarray(nests, np.bool_), len(rows)))
    return [tuple(row) for row in fixed[:, 1:].tolist()], order.steps_back


CASES = {
    "in order": ([(1, 2), (3, 4), (0, 5)], [(1, 2), (3, 4), (0, 5)], 0),
    "behind for two rows": ([(10, 20), (5, 7), (8, 9), (30, 40)], [(10, 20), (21, 21), (22, 22), (30, 40)], 1),
    "while a row lasts": ([(10, 20), (25, 22)], [(10, 20), (25, 25)], 1),
    "in the middle of the row before": ([(10, 20), (15, 30)], [(10, 20), (20, 30)], 1),
    "around rows before and after": ([(10, 20), (5, 7), (2, 30)], [(10, 20), (21, 21), (2, 30)], 1),
    "twice": ([(10, 20), (12, 14), (13, 13), (40, 50)], [(10, 20), (21, 21), (22, 22), (40, 50)], 2),
}


@pytest.mark.parametrize("rows, fixed, back", CASES.values(), ids=CASES)
def test_times_go_forward(rows, fixed, back):
    assert ordered(rows) == (fixed, back)


def test_scopes_that_overlap_tell_nothing_of_the_clock():
    rows = [(10, 20), (15, 30)]
    assert ordered(rows, nests=[True, False]) == (rows, 0)


def test_rows_are_compared_with_those_of_the_table_before():
    order = ClockOrder(0)
    tables = [np.array([(0, *row)], np.int64) for row in ((10, 20), (15, 30))]
    fixed = [order.fixed(table, np.ones(1, np.bool_))[0, 1:].tolist() for table in tables]
    assert (fixed, order.steps_back) == ([[10, 20], [20, 30]], 1)


@pytest.mark.parametrize("seed", range(200))
def test_rows_nest_whatever_the_clock_does(seed):
    chance, now, rows = random.Random(seed), 1_000, []

    def clock():
        nonlocal now
        now += chance.randrange(1, 20)
        if chance.random() < 0.05:
            now -= chance.randrange(1, 300)
        return now

    def op(depth):
        start = clock()
        for _ in range(chance.randrange(3) if depth else 0):
            op(depth - 1)
        rows.append((start, clock()))

    for _ in range(30):
        op(2)
    fixed, back = ordered(rows, since=1_000)
    assert back or fixed == rows
    assert all(start <= end for start, end in fixed)
    for at, (start, end) in enumerate(fixed):
        for earlier, over in fixed[:at]:
            assert over <= start or (earlier >= start and over <= end), (fixed[at], (earlier, over))
        if start == end:  # what has no length is around nothing
            assert (start, end) not in fixed[:at]
