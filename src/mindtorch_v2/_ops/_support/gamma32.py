"""The logarithm of the gamma function and its derivative for float32 arrays, computed in float64 by short formulas.

log Γ(x) = log Γ(x + 7) - log(x (x + 1) ... (x + 6)), and from 7 on Stirling's formula with a polynomial of 1 / x² for the rest
of its series. The seven factors are a polynomial of q = x (x + 6): q (q + 5) (q + 8) (x + 3). In float32 the differences would
cancel where log Γ is small, around 1 and 2; in float64 enough digits are left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from .blockwise import BLOCK, in_blocks

# (log Γ(x) - Stirling's formula) x, and (log x - 1 / 2x - ψ(x)) x², as polynomials of 1 / x² from x = 7 on; highest first.
_LOG_GAMMA_REST = (
    -0.0015835328712650927,
    0.0008344823436141981,
    -0.0005951630727807441,
    0.0007936504394214758,
    -0.002777777777161987,
    0.08333333333333316,
)
_DIGAMMA_REST = (
    -0.016849904520648665,
    0.007484156660054674,
    -0.00416572470808661,
    0.003968249529210887,
    -0.008333333325623658,
    0.08333333333333115,
)
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_PART = 1 << 14  # float64 numbers of one array, of which six or so are to stay in the cache


def lgamma32(x: np.ndarray) -> np.ndarray:
    """log |Γ(x)| of a float32 array, as a new array."""
    return _by_parts(_lgamma, x)


def digamma32(x: np.ndarray) -> np.ndarray:
    """The derivative of log Γ at a float32 array, as a new array."""
    return _by_parts(_digamma, x)


def _by_parts(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    result, flat = np.empty(x.shape, np.float32), x.reshape(-1)
    target = result.reshape(-1)

    def fill(out: np.ndarray, block: np.ndarray) -> None:
        for start in range(0, block.size, _PART):
            part = slice(start, start + _PART)
            np.copyto(out[part], function(block[part].astype(np.float64)), casting="unsafe")

    if x.size > BLOCK:
        in_blocks(fill, target, flat)
    else:
        fill(target, flat)
    return result


def _polynomial(coefficients: Sequence[float], t: np.ndarray) -> np.ndarray:
    total = np.multiply(t, coefficients[0])
    for c in coefficients[1:-1]:
        total += c
        total *= t
    total += coefficients[-1]
    return total


def _sizes_and_negative(x: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """x where it is not negative and 1 - x elsewhere, and where that is, None for nowhere. 0 counts as positive."""
    if np.minimum.reduce(x) >= 0:  # no nan, either
        return x, None
    places = np.flatnonzero(x < 0)
    sizes = x.copy()
    sizes[places] = 1 - x[places]
    return sizes, places


def _lgamma(x: np.ndarray) -> np.ndarray:
    sizes, places = _sizes_and_negative(x)
    result = _lgamma_positive(sizes)
    if places is not None:
        # Γ(x) Γ(1 - x) = π / sin(πx), with the sine of the distance to the nearest integer, which is exact, from the tangent
        # of its half: NumPy's sine of float64 takes eight times as long.
        low = x[places]
        tangent = np.tan((low - np.rint(low)) * (math.pi / 2))
        sine = 2 * np.abs(tangent) / (1 + tangent * tangent)
        result[places] = np.log(math.pi / sine) - result[places]
    for root in (1.0, 2.0):  # where the difference is not quite 0
        at_root = x == root
        if at_root.any():
            result[at_root] = 0.0
    if np.isinf(x.sum()) or np.isnan(result.sum()):
        result[np.isinf(x)] = np.inf
    return result


def _lgamma_positive(x: np.ndarray) -> np.ndarray:
    factors = x + 6.0
    factors *= x
    term = factors + 5.0
    np.add(factors, 8.0, out=(last := np.empty_like(x)))
    factors *= term
    factors *= last
    np.add(x, 3.0, last)
    factors *= last
    np.log(factors, factors)
    z = np.add(x, 7.0, last)
    inverse = np.divide(1.0, z, term)
    rest = _polynomial(_LOG_GAMMA_REST, inverse * inverse)
    rest *= inverse
    rest -= factors
    logarithm = np.log(z, factors)
    rest += _HALF_LOG_TWO_PI
    rest -= z
    z -= 0.5
    z *= logarithm
    rest += z
    return rest


def _digamma(x: np.ndarray) -> np.ndarray:
    sizes, places = _sizes_and_negative(x)
    result = _digamma_positive(sizes)
    if places is not None:
        # ψ(x) = ψ(1 - x) - π / tan(πx); poles have no value.
        low = x[places]
        distance = low - np.rint(low)
        result[places] -= np.where(distance == 0, np.nan, math.pi / np.tan(math.pi * distance))
    if not np.isfinite(result.sum()):
        zero = x == 0
        result[zero] = np.copysign(np.inf, -x[zero])
        result[np.isposinf(x)] = np.inf
    return result


def _digamma_positive(x: np.ndarray) -> np.ndarray:
    # The logarithmic derivative of the seven factors: 2 (x + 3) (3 q² + 26 q + 40) / (q (q + 5) (q + 8)) + 1 / (x + 3).
    q = x + 6.0
    q *= x
    below = q + 5.0
    above = q * 3.0
    above += 26.0
    above *= q
    above += 40.0
    below *= q
    q += 8.0
    below *= q
    above /= below
    middle = np.add(x, 3.0, q)
    above *= middle
    above *= 2.0
    above += np.divide(1.0, middle, middle)
    z = np.add(x, 7.0, middle)
    inverse = np.divide(1.0, z, below)
    np.log(z, z)
    z -= above
    square = inverse * inverse
    inverse *= 0.5
    z -= inverse
    rest = _polynomial(_DIGAMMA_REST, square)
    rest *= square
    z -= rest
    return z
