"""erf and the normal distribution function of float32 arrays, good to a few units in the last place.

NumPy has no erf, but a fast tanh: erf(x) = tanh(x P(x²)). P is a minimax fit of atanh(erf(x)) / x on |x| < 4, where erf(x)
becomes 1 in float32. Its leading coefficient is positive, so that it grows beyond that, and tanh of it is 1 there.
"""

from __future__ import annotations

import math

import numpy as np

from ..._core.parallel import splits
from .blockwise import BLOCK, in_blocks

# Highest power first.
_P = (
    1.4185274487507097e-07,
    -5.6684855268213164e-06,
    8.763739384835549e-05,
    -0.0006197848533387288,
    -0.00019183055355655588,
    0.10276905567132999,
    1.128379274321011,
)
# Up to here Python's erf, one number at a time, beats a dozen calls of NumPy.
_TINY = 32
_ONE = np.array(1, np.float32)


def _odd_polynomial(x: np.ndarray, coefficients: list[np.ndarray], out: np.ndarray) -> None:
    """Fill `out` with x times a polynomial of x²; the coefficient of the highest power comes first."""
    square = np.multiply(x, x)
    np.multiply(square, coefficients[0], out)
    for c in coefficients[1:-1]:
        np.add(out, c, out)
        np.multiply(out, square, out)
    np.add(out, coefficients[-1], out)
    np.multiply(out, x, out)


def _scaled(factor: float, scale: float) -> list[np.ndarray]:
    """The coefficients of factor * scale * x P((scale * x)²)."""
    degree = len(_P) - 1
    return [np.array(factor * c * scale ** (2 * (degree - i) + 1), np.float32) for i, c in enumerate(_P)]


_ERF = _scaled(1.0, 1.0)
_SQRT_HALF = math.sqrt(0.5)
_ODDS = _scaled(-2.0, _SQRT_HALF)


def _fill_erf(out: np.ndarray, x: np.ndarray) -> None:
    _odd_polynomial(x, _ERF, out)
    np.tanh(out, out)


def erf32(x: np.ndarray) -> np.ndarray:
    """erf of a float32 array, as a new array."""
    if x.size <= _TINY:
        return np.array([math.erf(v) for v in x.ravel().tolist()], np.float32).reshape(x.shape)
    result = np.empty(x.shape, np.float32)
    if x.size > BLOCK and splits(x):
        return in_blocks(_fill_erf, result, x)
    _fill_erf(result, x)
    return result


def reciprocal_normal_cdf32(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """1 / the probability that a normal variable is below x, in `out` or a new array.

    (1 + tanh(y)) / 2 is 1 / (1 + exp(-2 y)): an exponential costs half as much as a tanh.
    """
    result = np.empty(x.shape, np.float32) if out is None else out
    if x.size <= _TINY:
        result[...] = np.array([math.erfc(-_SQRT_HALF * v) / 2 for v in x.ravel().tolist()], np.float32).reshape(x.shape)
        return np.reciprocal(result, result)
    _odd_polynomial(x, _ODDS, result)
    np.exp(result, result)
    return np.add(result, _ONE, result)
