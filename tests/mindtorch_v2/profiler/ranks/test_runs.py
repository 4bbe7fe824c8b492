"""Columns are ordered by two numbers in one sort where these fit into one, and by an order of two where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from mindtorch_v2.profiler.ranks.runs import run_starts, sorted_within


@pytest.mark.parametrize(
    "low, high",
    [(0, 10), (-10, -3), (-(10**12), 10**12), (-(2**62), 2**62), (-(2**63), 2**63 - 1), (2**62, 2**63 - 1)],
)
def test_values_are_in_order_within_equal_numbers(low: int, high: int) -> None:
    random = np.random.default_rng(0)
    numbers = random.integers(0, 50, 1000)
    values = random.integers(low, high, 1000)
    kept = numbers.copy(), values.copy()
    own, ordered = sorted_within(numbers, values)
    assert list(zip(own.tolist(), ordered.tolist(), strict=True)) == sorted(zip(*map(np.ndarray.tolist, kept), strict=True))
    assert (numbers == kept[0]).all() and (values == kept[1]).all()


def test_nothing_is_in_order() -> None:
    none = np.empty(0, np.int64)
    assert [len(column) for column in sorted_within(none, none)] == [0, 0]


@pytest.mark.parametrize("numbers, starts", [([], []), ([7], [0]), ([1, 1, 2, 2, 2, 1], [0, 2, 5])])
def test_runs_begin_where_numbers_change(numbers: list[int], starts: list[int]) -> None:
    assert run_starts(np.array(numbers, np.int64)).tolist() == starts
