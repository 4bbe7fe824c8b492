"""Element-wise functions of two large float32 arrays that NumPy computes one element at a time, by passes over blocks.

Each function fills a block of the result, which may be that of the first operand. A few elements that the passes do not get
right, among them all that are infinite or nan, are computed by NumPy's function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.parallel import splits
from .._support.blockwise import in_blocks
from .._support.elementwise import log1p_exp_minus_abs

_F32, _I32 = np.dtype(np.float32), np.dtype(np.int32)
# Up to here NumPy's functions, in one call, are as fast.
SOME = 1 << 12
_PART = 1 << 15  # elements of one array, of which six or so are to stay in the cache
_SIGN, _REST, _LAST = (np.array(bits, np.uint32).view(_I32) for bits in (0x80000000, 0x7FFFFFFF, 31))

Fill = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


def large_pair(fill: Fill, first: Any, second: Any, out: np.ndarray | None) -> np.ndarray | None:
    """A result in `out` or a new array, by `fill(block of the result, block, block)`; None for operands it is not made for.

    These are a row-major float32 array and another of its shape, or a number.
    """
    if first.dtype is not _F32 or not splits(first, out):
        return None
    is_array = second.__class__ is np.ndarray and second.ndim > 0
    if is_array and not splits(first, second):
        return None
    if not is_array and second.__class__ is not np.ndarray and second.__class__ not in (int, float):
        return None
    single = None if is_array else np.array(second, _F32)

    def by_parts(target: np.ndarray, block: np.ndarray, other: np.ndarray | None = None) -> None:
        for start in range(0, block.size, _PART):
            part = slice(start, start + _PART)
            values = block[part]
            divisor = np.broadcast_to(single, values.shape) if other is None else other[part]
            fill(target[part], values, divisor)

    result = np.empty(first.shape, _F32) if out is None else out
    return in_blocks(by_parts, result, first, *([second] if is_array else []))


def _repaired(function: Callable[..., np.ndarray], wrong: np.ndarray, *operands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where `wrong` is true, and what NumPy's function gives there."""
    places = np.flatnonzero(wrong)
    return places, function(*[operand[places] for operand in operands])


# ---------------------------------------------------------------- quotients and remainders

# The quotient of two float32 numbers is whole, or differs from a whole number by more than float64 rounds off up to 2**28, and
# such a whole number times a float32 is exact in float64: so is the remainder.
_LARGEST_QUOTIENT = 2.0**28
# torch rounds in float32 what it divides once more to get the whole quotient, and so has another one beyond.
_LARGEST_WHOLE = 2.0**20


def _divided(whole: Callable[..., Any], first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both operands in float64, and the quotient as a whole number."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    quotient = np.divide(a, b)
    return a, b, whole(quotient, quotient)


def _is_small(quotient: np.ndarray, limit: float) -> bool:
    return bool(np.maximum.reduce(quotient) < limit and np.minimum.reduce(quotient) > -limit)  # nan is not, either


def _rest(whole: Callable[..., Any], function: Callable[..., Any], out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    wide, divisor, quotient = _divided(whole, a, b)
    small = _is_small(quotient, _LARGEST_QUOTIENT)
    np.multiply(quotient, divisor, divisor)
    np.subtract(wide, divisor, wide)
    places = values = None
    if not small or not np.isfinite(np.add.reduce(wide)):
        wrong = ~(np.abs(quotient) < _LARGEST_QUOTIENT) | ~np.isfinite(wide)
        places, values = _repaired(function, wrong, a, b)
    np.copyto(out, wide, casting="unsafe")
    if places is not None:
        out[places] = values


def fill_fmod(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """fmod: the sign is that of the dividend, also of 0."""
    signs = np.bitwise_and(a.view(_I32), _SIGN)
    _rest(np.trunc, np.fmod, out, a, b)
    np.bitwise_or(out.view(_I32), signs, out.view(_I32))


def fill_remainder(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """The remainder that has the divisor's sign, but for 0, which has that of the dividend."""
    signs = np.bitwise_and(a.view(_I32), _SIGN)
    _rest(np.floor, np.remainder, out, a, b)
    if np.count_nonzero(out) != out.size:
        zero = np.flatnonzero(out == 0)
        out.view(_I32)[zero] = signs[zero]


def fill_floor_divide(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """The quotient, rounded down."""
    quotient = _divided(np.floor, a, b)[2]
    places = values = None
    if not _is_small(quotient, _LARGEST_WHOLE) or not _is_small(b, np.inf):
        wrong = ~(np.abs(quotient) < _LARGEST_WHOLE) | ~np.isfinite(b)
        places, values = _repaired(np.floor_divide, wrong, a, b)
    np.copyto(out, quotient, casting="unsafe")
    if places is not None:
        out[places] = values


# ---------------------------------------------------------------- lengths and logarithms

_SQUARES = np.array([1e-30, 1e38], _F32)  # between these no square that counts has overflowed, or lost digits


def fill_hypot(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """The length of the hypotenuse."""
    squares = np.multiply(a, a)
    squares += np.multiply(b, b)
    places = values = None
    if not (np.minimum.reduce(squares) > _SQUARES[0] and np.maximum.reduce(squares) < _SQUARES[1]):
        places, values = _repaired(np.hypot, ~((squares > _SQUARES[0]) & (squares < _SQUARES[1])), a, b)
    np.sqrt(squares, out)
    if places is not None:
        out[places] = values


def fill_logaddexp(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """log(exp(a) + exp(b))."""
    larger = np.maximum(a, b)
    more = log1p_exp_minus_abs(np.subtract(a, b))
    more += larger
    if np.isnan(np.add.reduce(more)):
        places, values = _repaired(np.logaddexp, np.isnan(more), a, b)
        more[places] = values
    np.copyto(out, more)


# ---------------------------------------------------------------- neighbors and signs


def fill_nextafter(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """The next number from a towards b: one more or one less, as the bits count."""
    places = values = None
    if np.count_nonzero(a) != a.size or np.isnan(np.maximum.reduce(a)) or np.isnan(np.maximum.reduce(b)):
        places, values = _repaired(np.nextafter, (a == 0) | np.isnan(a) | np.isnan(b), a, b)
    step = (np.greater(b, a).view(np.int8) - np.less(b, a).view(np.int8)).astype(_I32)
    bits = a.view(_I32)
    negative = np.right_shift(bits, _LAST)
    step ^= negative  # the other way for negative numbers: -step is ~step + 1
    step -= negative
    np.add(bits, step, out.view(_I32))
    if places is not None:
        out[places] = values


def fill_copysign(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """The size of a with the sign of b."""
    signs = np.bitwise_and(b.view(_I32), _SIGN)
    np.bitwise_and(a.view(_I32), _REST, out.view(_I32))
    np.bitwise_or(out.view(_I32), signs, out.view(_I32))
