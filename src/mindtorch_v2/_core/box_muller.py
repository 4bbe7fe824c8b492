"""Normal numbers from uniform ones by the Box-Muller method, in float32, with the rounding of torch's vector code.

log, sin and cos are the Cephes approximations; where torch's CPU code has a fused multiply-add, the result is rounded once
here as well, so the numbers agree to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import parallel

# Values per pass: the arrays of one pass stay in the processor's cache.
_CHUNK = 1 << 14


def _narrow(c: float) -> np.ndarray:
    """A float32 constant, as the 0-d array that costs NumPy the least to combine with another array."""
    return np.array(c, np.float32)


def _wide(*coefficients: float) -> list[np.ndarray]:
    """float32 coefficients as the float64 numbers that they are exactly."""
    return [_narrow(c).astype(np.float64) for c in coefficients]


def _whole(n: int) -> np.ndarray:
    return np.array(n, np.int32)


_LOG_FIRST, *_LOG = _wide(
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_LN2_LOW, _LN2_HIGH = _narrow(-2.12194440e-4), _wide(0.693359375)[0]
_SQRT_HALF = _narrow(0.707106781186547524)
_FOUR_OVER_PI = _narrow(1.27323954473516)
# pi / 4 in three parts, so that subtracting a multiple of it loses no bits.
_QUARTER_PI = _wide(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
_COS_FIRST, *_COS = _wide(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_SIN_FIRST, *_SIN = _wide(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_ONE, _HALF, _MINUS_HALF, _MINUS_TWO = (_narrow(c) for c in (1, 0.5, -0.5, -2))
_TWO_PI = _narrow(2 * np.pi)
_MANTISSA, _HALF_BITS, _EXPONENT_AT, _BIAS = (_whole(n) for n in (0x007FFFFF, 0x3F000000, 23, 126))
_1, _2, _4, _29, _30, _31, _EVEN = (_whole(n) for n in (1, 2, 4, 29, 30, 31, ~1))


def fused(a: np.ndarray, b: Any, c: Any) -> np.ndarray:
    """a * b + c of float32 numbers, rounded once: the product of two float32 is exact in float64."""
    product = np.multiply(a, b, dtype=np.float64)
    product += c
    return product.astype(np.float32)


def _add_product(y: np.ndarray, x: np.ndarray, c: np.ndarray, narrow: np.ndarray) -> None:
    """y = y * x + c, rounded to float32: `y` and `x` are float64 arrays of float32 values, `narrow` is float32."""
    np.multiply(y, x, y)
    np.add(y, c, y)
    narrow[...] = y
    y[...] = narrow


def _polynomial(first: np.ndarray, coefficients: list[np.ndarray], x: np.ndarray, narrow: np.ndarray) -> None:
    """The polynomial of x by Horner's rule, each step rounded once, into `narrow`."""
    y = x * first
    np.add(y, coefficients[0], y)
    narrow[...] = y
    y[...] = narrow
    for c in coefficients[1:]:
        _add_product(y, x, c, narrow)


def _log(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of float32 x in (0, 1]."""
    bits = x.view(np.int32)
    exponent = (bits >> _EXPONENT_AT) - _BIAS
    mantissa = bits & _MANTISSA
    mantissa |= _HALF_BITS
    value = mantissa.view(np.float32)
    # All bits set where the mantissa is small; selecting by bits is much faster than by a mask of booleans.
    small = (value - _SQRT_HALF).view(np.int32) >> _31
    exponent += small
    power = exponent.astype(np.float32)
    x = value - _ONE
    mantissa &= small
    x += value
    narrow = np.empty_like(x)
    _polynomial(_LOG_FIRST, _LOG, x.astype(np.float64), narrow)
    narrow *= x
    square = x * x
    y = narrow.astype(np.float64)
    _add_product(y, square.astype(np.float64), (power * _LN2_LOW).astype(np.float64), narrow)
    square *= _HALF
    narrow -= square
    x += narrow
    y = exponent.astype(np.float64)
    y *= _LN2_HIGH
    y += x
    return y.astype(np.float32)


def _sin_cos(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of float32 x >= 0."""
    octant = (x * _FOUR_OVER_PI).astype(np.int32)
    octant += _1
    octant &= _EVEN
    turns = octant.astype(np.float64)
    narrow = np.empty_like(x)
    rest = x.astype(np.float64)
    for part in _QUARTER_PI:
        rest += turns * part
        narrow[...] = rest
        rest[...] = narrow
    x = narrow.copy()
    square = x * x
    wide = square.astype(np.float64)
    cosine = np.empty_like(x)
    _polynomial(_COS_FIRST, _COS, wide, cosine)
    cosine *= square
    y = cosine.astype(np.float64)
    _add_product(y, wide, (square * _MINUS_HALF).astype(np.float64), cosine)
    cosine += _ONE
    sine = narrow
    _polynomial(_SIN_FIRST, _SIN, wide, sine)
    sine *= square
    y = sine.astype(np.float64)
    _add_product(y, rest, rest, sine)
    # In every other quarter turn the two change places; then each gets its sign.
    first, second = sine.view(np.int32), cosine.view(np.int32)
    change = first ^ second
    change &= (octant << _30) >> _31
    first ^= change
    second ^= change
    first ^= (octant & _4) << _29
    octant -= _2
    second ^= (~octant & _4) << _29
    return sine, cosine


def normals(uniforms: np.ndarray) -> np.ndarray:
    """Normals of groups of 16 float32 uniforms: the first eight of a group give the radii, the others the angles."""
    values = np.empty_like(uniforms)

    def work(part: slice) -> None:
        groups = uniforms[part].reshape(-1, 2, 8)
        radius = _log((_ONE - groups[:, 0]).reshape(-1))
        radius *= _MINUS_TWO
        np.sqrt(radius, radius)
        sine, cosine = _sin_cos((groups[:, 1] * _TWO_PI).reshape(-1))
        cosine *= radius
        sine *= radius
        result = values[part].reshape(-1, 2, 8)
        result[:, 0] = cosine.reshape(-1, 8)
        result[:, 1] = sine.reshape(-1, 8)

    if len(uniforms) <= _CHUNK:
        work(slice(None))
    else:
        parallel.blocks(len(uniforms), _CHUNK, work)
    return values
