"""erfc and the inverse of erf of float32 arrays, good to a few units in the last place: minimax fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from . import special_math
from .blockwise import BLOCK, in_blocks

_F32, _I32 = np.dtype(np.float32), np.dtype(np.int32)


def _singles(*values: float) -> list[np.ndarray]:
    return [np.array(value, _F32) for value in values]


# exp(x²) erfc(x) (1 + 2 x) as a polynomial of (x - 2) / (x + 2) for x from 0 to 9; highest power first, as below.
_ERFC = _singles(
    -0.000413650916,
    -0.001252651744,
    0.001314863777,
    0.008649310189,
    -0.008056378648,
    -0.05420866265,
    0.1640544277,
    -0.1660310658,
    -0.09276393509,
    1.276978389,
)
# erfinv(x) / x as a polynomial of w - 2.5 up to w = 5, and of sqrt(w) - 3 beyond, where w is -log(1 - x²).
_NEAR = _singles(
    3.355460461e-10,
    -8.772804716e-09,
    1.803712832e-08,
    4.658918504e-07,
    -3.434611438e-06,
    -4.961910789e-06,
    0.000218282631,
    -0.001252744662,
    -0.004177339405,
    0.2466402876,
    1.501409354,
)
_FAR = _singles(
    0.0001289648472,
    -0.0003187243671,
    -7.662013847e-05,
    0.001495858067,
    -0.003586987439,
    0.005683171874,
    -0.007639410062,
    0.00944568424,
    1.001675087,
    2.832976796,
)
_ONE, _TWO = _singles(1.0, 2.0)
_MIDDLE, _FAR_FROM, _FAR_MIDDLE = _singles(2.5, 5.0, 3.0)
_TO_9 = _singles(0.0, 9.0)
_LEAD, _ROUNDING = np.array(-4096, _I32), np.array(2048, _I32)  # half of the fraction's bits, whose square is exact
_SIGN, _TWO_BITS, _ALL_SIGN = np.array(-(1 << 31), _I32), _TWO.view(_I32), np.array(31, _I32)
# Up to here Python's erfc, one number at a time, beats forty calls of NumPy.
_TINY = 32
_PART = 1 << 15  # elements of one array, of which five are to stay in the cache


def _polynomial(coefficients: Sequence[np.ndarray], t: np.ndarray, out: np.ndarray) -> None:
    np.multiply(t, coefficients[0], out)
    for c in coefficients[1:-1]:
        np.add(out, c, out)
        np.multiply(out, t, out)
    np.add(out, coefficients[-1], out)


def _filled(fill: Callable[..., None], x: np.ndarray) -> np.ndarray:
    """What `fill` gives for an array of any shape, block by block where it is large."""
    result, flat = np.empty(x.shape, _F32), x.reshape(-1)
    target = result.reshape(-1)

    def by_parts(out: np.ndarray, block: np.ndarray) -> None:
        for start in range(0, block.size, _PART):
            fill(out[start : start + _PART], block[start : start + _PART])

    if x.size > BLOCK:
        in_blocks(by_parts, target, flat)
    else:
        by_parts(target, flat)
    return result


def erfc32(x: np.ndarray) -> np.ndarray:
    """erfc of a float32 array, as a new array."""
    if x.size <= _TINY:
        return np.array([math.erfc(v) for v in x.ravel().tolist()], np.float32).reshape(x.shape)
    return _filled(_fill_erfc, x)


def _fill_erfc(out: np.ndarray, x: np.ndarray) -> None:
    size = np.clip(np.abs(x), *_TO_9)
    t, below = size - _TWO, size + _TWO
    np.divide(t, below, t)
    _polynomial(_ERFC, t, out)
    np.multiply(size, _TWO, t)
    np.add(t, _ONE, t)
    np.divide(out, t, out)
    # exp(-x²): its relative error is that of x², times x². What rounding the square has lost is known by
    # the square of its leading digits, which is exact.
    lead = t
    np.add(size.view(_I32), _ROUNDING, lead.view(_I32))
    np.bitwise_and(lead.view(_I32), _LEAD, lead.view(_I32))
    rest = np.add(size, lead, below)
    square = size * size
    np.subtract(size, lead, size)
    np.multiply(rest, size, rest)
    np.multiply(lead, lead, lead)
    np.subtract(lead, square, lead)
    np.add(rest, lead, rest)
    np.subtract(_ONE, rest, rest)
    np.multiply(out, rest, out)
    np.negative(square, square)
    np.exp(square, square)
    np.multiply(out, square, out)
    # erfc(-x) = 2 - erfc(x), by the sign bit.
    bits, signs = out.view(_I32), below.view(_I32)
    np.bitwise_and(x.view(_I32), _SIGN, signs)
    np.bitwise_or(bits, signs, bits)
    np.right_shift(signs, _ALL_SIGN, signs)
    np.bitwise_and(signs, _TWO_BITS, signs)
    np.add(out, below, out)
    if not np.maximum.reduce(x) <= _TO_9[1]:  # nan is not, either
        places = np.flatnonzero(x > _TO_9[1])
        out[places] = special_math.erfc(x[places].astype(np.float64))


def erfinv32(x: np.ndarray) -> np.ndarray:
    """The inverse of erf of a float32 array, as a new array."""
    return _filled(_fill_erfinv, x)


def _fill_erfinv(out: np.ndarray, x: np.ndarray) -> None:
    w = np.subtract(_ONE, x)
    np.add(_ONE, x, out)
    np.multiply(w, out, w)
    np.log(w, w)
    np.negative(w, w)
    far = not np.maximum.reduce(w) <= _FAR_FROM
    places = np.flatnonzero(w > _FAR_FROM) if far else None
    root = np.sqrt(w[places]) if far else None
    np.subtract(w, _MIDDLE, w)
    _polynomial(_NEAR, w, out)
    np.multiply(out, x, out)
    if places is None or root is None:
        return
    values, slope = x[places], np.empty_like(root)
    np.subtract(root, _FAR_MIDDLE, root)
    _polynomial(_FAR, root, slope)
    out[places] = np.where(np.isinf(root), np.copysign(np.array(np.inf, _F32), values), slope * values)
