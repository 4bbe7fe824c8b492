"""Converts times of a trace, microseconds with decimals, to exact nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A double below 2**43 is nearer to the thousandth it was written as than to any other: the nanosecond is exact.
# Kineto's times stay below that since it counts from baseTimeNanoseconds.
_EXACT = float(1 << 43)
LATEST_NS = 1 << 62
_NUMBERS = {int, float}
Number = int | float | Decimal


class Inexact(Exception):
    """A double is too large to be exact to the nanosecond: the text has to be parsed again."""


def nanoseconds(values: Sequence[Number]) -> NDArray[np.int64]:
    """Microseconds (int, float or Decimal, all below `LATEST_NS`) as nanoseconds."""
    if set(map(type, values)) <= _NUMBERS:
        micro = np.array(values, np.float64)
        if not len(micro) or float(np.abs(micro).max()) < _EXACT:
            whole = np.floor(micro)
            # Whole microseconds apart from the fraction: the product of all digits would be rounded.
            return whole.astype(np.int64) * 1000 + np.rint((micro - whole) * 1000).astype(np.int64)
    return np.array([nanosecond(value) for value in values], np.int64)


def nanosecond(value: Number) -> int:
    """One time in microseconds as nanoseconds."""
    if isinstance(value, float):
        if abs(value) >= _EXACT:
            raise Inexact
        return round(Decimal(value) * 1000)
    if type(value) not in (int, Decimal):
        raise TypeError(f"{value!r} is not a time")
    exact: int = round(value * 1000)
    return exact


def is_time(value: Any) -> bool:
    """Whether a value is a number of microseconds that fits into 62 bits as nanoseconds."""
    return type(value) in (int, float, Decimal) and -LATEST_NS < value * 1000 < LATEST_NS
