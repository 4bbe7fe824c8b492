"""Runs of equal numbers in long columns: where they begin, and the values of each in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

_MOST_KEY = 1 << 62


def run_starts(numbers: NDArray[Any]) -> Numbers:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])) if len(numbers) else np.empty(0, np.int64)


def sorted_within(numbers: Numbers, values: Numbers) -> tuple[Numbers, Numbers]:
    """Both columns in order of the numbers, which are not negative, and of the values where those are equal.

    As one key where that fits into 62 bits: a third of the time of an order by two.
    """
    if not len(numbers):
        return numbers, values
    low = int(values.min())
    span = int(values.max()) - low + 1
    if (int(numbers.max()) + 1) * span >= _MOST_KEY:
        order = np.lexsort((values, numbers))
        return numbers[order], values[order]
    key = numbers * span
    key += values
    key -= low
    key.sort()
    numbers = key // span
    key -= numbers * span
    key += low
    return numbers, key
