"""Normals from uniforms by the Box-Muller method, in float32, with the rounding of torch's vector code.

log, sin and cos are the Cephes approximations; what torch's CPU code computes with fused multiply-add is rounded once
here as well, so the numbers agree to the last bit.
"""

from __future__ import annotations

import numpy as np

_f = np.float32
# Values per pass: the arrays of one pass stay in the processor's cache.
_CHUNK = 1 << 14


def _wide(*coefficients: float) -> list[float]:
    """float32 coefficients as the float64 numbers that they are exactly."""
    return [float(_f(c)) for c in coefficients]


_LOG_FIRST, *_LOG = _wide(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                          -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
_LN2_LOW, _LN2_HIGH = _f(-2.12194440e-4), _wide(0.693359375)[0]
_SQRT_HALF = _f(0.707106781186547524)
_FOUR_OVER_PI = _f(1.27323954473516)
# pi / 4 in three parts, so that subtracting a multiple of it loses no bits.
_QUARTER_PI = _wide(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
_COS_FIRST, *_COS = _wide(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_SIN_FIRST, *_SIN = _wide(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_ONE, _HALF, _MINUS_HALF, _MINUS_TWO, _TWO_PI = _f(1), _f(0.5), _f(-0.5), _f(-2), _f(2 * np.pi)


def fused(a: np.ndarray, b: np.ndarray | np.floating, c: np.ndarray | np.floating) -> np.ndarray:
    """a * b + c of float32 numbers, rounded once: the product of two float32 is exact in float64."""
    product = np.multiply(a, b, dtype=np.float64)
    product += c
    return product.astype(np.float32)


def _add_product(y: np.ndarray, x: np.ndarray, c: np.ndarray | float, narrow: np.ndarray) -> None:
    """y = y * x + c, rounded to float32: `y` and `x` are float64 arrays of float32 values, `narrow` is float32."""
    np.multiply(y, x, out=y)
    np.add(y, c, out=y)
    np.copyto(narrow, y, casting="same_kind")
    np.copyto(y, narrow)


def _polynomial(first: float, coefficients: list[float], x: np.ndarray, narrow: np.ndarray) -> np.ndarray:
    """The polynomial of x by Horner's rule, each step rounded once; returns the float64 array, `narrow` has it, too."""
    y = np.empty(x.shape)
    y.fill(first)
    for c in coefficients:
        _add_product(y, x, c, narrow)
    return y


def _log(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of float32 x in (0, 1]."""
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(np.float32)
    mantissa = bits & 0x007FFFFF
    mantissa |= 0x3F000000
    value = mantissa.view(np.float32)
    small = value < _SQRT_HALF
    exponent -= small
    x = value - _ONE
    np.add(x, value, out=x, where=small)
    narrow = np.empty_like(x)
    _polynomial(_LOG_FIRST, _LOG, x.astype(np.float64), narrow)
    narrow *= x
    square = x * x
    y = narrow.astype(np.float64)
    _add_product(y, square.astype(np.float64), exponent * _LN2_LOW, narrow)
    square *= _HALF
    narrow -= square
    x += narrow
    return fused(exponent, np.float64(_LN2_HIGH), x)


def _sin_cos(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of float32 x >= 0."""
    octant = (x * _FOUR_OVER_PI).astype(np.int32)
    octant += 1
    octant &= ~1
    turns = octant.astype(np.float64)
    narrow = np.empty_like(x)
    rest = x.astype(np.float64)
    for part in _QUARTER_PI:
        rest += turns * part
        np.copyto(narrow, rest, casting="same_kind")
        np.copyto(rest, narrow)
    x = narrow.copy()
    square = x * x
    wide = square.astype(np.float64)
    cosine = np.empty_like(x)
    _polynomial(_COS_FIRST, _COS, wide, cosine)
    cosine *= square
    y = cosine.astype(np.float64)
    _add_product(y, wide, square * _MINUS_HALF, cosine)
    cosine += _ONE
    sine = narrow
    _polynomial(_SIN_FIRST, _SIN, wide, sine)
    sine *= square
    y = sine.astype(np.float64)
    _add_product(y, rest, x, sine)
    swapped = (octant & 2) != 0
    first, second = np.where(swapped, cosine, sine), np.where(swapped, sine, cosine)
    np.negative(first, out=first, where=(octant & 4) != 0)
    octant -= 2
    np.negative(second, out=second, where=(octant & 4) == 0)
    return first, second


def normals(uniforms: np.ndarray) -> np.ndarray:
    """Normals of groups of 16 float32 uniforms: the first eight of a group give the radii, the others the angles."""
    made = np.empty_like(uniforms)
    for start in range(0, len(uniforms), _CHUNK):
        groups = uniforms[start : start + _CHUNK].reshape(-1, 2, 8)
        radius = _log(_ONE - groups[:, 0])
        radius *= _MINUS_TWO
        np.sqrt(radius, out=radius)
        sine, cosine = _sin_cos(groups[:, 1] * _TWO_PI)
        result = made[start : start + _CHUNK].reshape(-1, 2, 8)
        np.multiply(radius, cosine, out=result[:, 0])
        np.multiply(radius, sine, out=result[:, 1])
    return made
