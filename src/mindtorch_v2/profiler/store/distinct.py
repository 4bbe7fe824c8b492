"""The distinct values of a column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def distinct_values(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values, in order. np.unique imports numpy.ma at its first call, which takes longer than a first table."""
    ordered = np.sort(values, axis=None)
    is_new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]
