"""erf and the normal distribution function of float32 arrays, good to a few units in the last place.

NumPy has no erf, but a fast tanh: erf(x) = tanh(x P(x²)). P is a minimax fit of atanh(erf(x)) / x on |x| < 4, where erf(x)
becomes 1 in float32. Its leading coefficient is positive, so that it grows beyond that, and tanh of it is 1 there.
"""

from __future__ import annotations

import math

import numpy as np

from .blockwise import BLOCK, in_blocks, splits

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


class _ScaledErf:
    """erf(scale * x) of float32 arrays."""

    def __init__(self, scale: float) -> None:
        self.scale = scale
        degree = len(_P) - 1
        self.p = [np.array(c * scale ** (2 * (degree - i) + 1), np.float32) for i, c in enumerate(_P)]

    def __call__(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The values, in `out` or a new array."""
        if x.size <= _TINY:
            scale = self.scale
            values = np.array([math.erf(scale * v) for v in x.ravel().tolist()], np.float32).reshape(x.shape)
            return values if out is None else np.positive(values, out)
        result = np.empty(x.shape, np.float32) if out is None else out
        if x.size > BLOCK and splits(x):
            return in_blocks(self._fill, result, x)
        self._fill(result, x)
        return result

    def _fill(self, p: np.ndarray, x: np.ndarray) -> None:
        square = np.multiply(x, x)
        np.multiply(square, self.p[0], p)
        for c in self.p[1:-1]:
            np.add(p, c, p)
            np.multiply(p, square, p)
        np.add(p, self.p[-1], p)
        np.multiply(p, x, p)
        np.tanh(p, p)


_erf = _ScaledErf(1.0)
_normal_erf = _ScaledErf(math.sqrt(0.5))
_HALF = np.array(0.5, np.float32)


def erf32(x: np.ndarray) -> np.ndarray:
    """erf of a float32 array, as a new array."""
    return _erf(x)


def normal_cdf32(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The probability that a normal variable is below x, in `out` or a new array."""
    cdf = _normal_erf(x, out)
    np.multiply(cdf, _HALF, cdf)
    return np.add(cdf, _HALF, cdf)
