"""Normals from uniforms by the Box-Muller method, in float32, with the rounding of torch's vector code.

log, sin and cos are the Cephes approximations; what torch's CPU code computes with fused multiply-add is rounded once
here as well, so the numbers agree to the last bit.
"""

from __future__ import annotations

import numpy as np

_f = np.float32
# Values per pass: the intermediate arrays of one pass stay in the processor's cache.
_CHUNK = 1 << 14

_LOG = [_f(c) for c in (-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
                        2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)]
_LOG_FIRST = _f(7.0376836292e-2)
_LN2_LOW, _LN2_HIGH = _f(-2.12194440e-4), _f(0.693359375)
_SQRT_HALF = _f(0.707106781186547524)
_FOUR_OVER_PI = _f(1.27323954473516)
# pi / 4 in three parts, so that subtracting a multiple of it loses no bits.
_QUARTER_PI = [_f(c) for c in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)]
_COS = [_f(c) for c in (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)]
_SIN = [_f(c) for c in (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)]
_TWO_PI = _f(2 * np.pi)


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray | np.floating) -> np.ndarray:
    """a * b + c rounded once: the product of two float32 is exact in float64. `b` is float64 already."""
    product = np.multiply(a, b, dtype=np.float64)
    product += c
    return product.astype(np.float32)


def _log(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of x in (0, 1]."""
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(np.float32)
    mantissa = ((bits & 0x007FFFFF) | 0x3F000000).view(np.float32)
    small = mantissa < _SQRT_HALF
    exponent -= small
    x = mantissa - _f(1)
    x += np.where(small, mantissa, _f(0))
    square = x * x
    wide = x.astype(np.float64)
    y = fused(np.full_like(x, _LOG_FIRST), wide, _LOG[0])
    for coefficient in _LOG[1:]:
        y = fused(y, wide, coefficient)
    y *= x
    y = fused(y, square.astype(np.float64), exponent * _LN2_LOW)
    y -= square * _f(0.5)
    x += y
    return fused(exponent, np.float64(_LN2_HIGH), x)


def _sin_cos(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of x >= 0."""
    octant = (x * _FOUR_OVER_PI).astype(np.int32)
    octant = (octant + 1) & ~1
    turns = octant.astype(np.float32)
    for part in _QUARTER_PI:
        x = fused(turns, np.float64(part), x)
    square = x * x
    wide = square.astype(np.float64)
    cosine = fused(fused(np.full_like(x, _COS[0]), wide, _COS[1]), wide, _COS[2])
    cosine *= square
    cosine = fused(cosine, wide, square * _f(-0.5))
    cosine += _f(1)
    sine = fused(fused(np.full_like(x, _SIN[0]), wide, _SIN[1]), wide, _SIN[2])
    sine *= square
    sine = fused(sine, x.astype(np.float64), x)
    swapped = (octant & 2) != 0
    first, second = np.where(swapped, cosine, sine), np.where(swapped, sine, cosine)
    np.negative(first, out=first, where=(octant & 4) != 0)
    np.negative(second, out=second, where=((octant - 2) & 4) == 0)
    return first, second


def normals(uniforms: np.ndarray) -> np.ndarray:
    """Normals of groups of 16 float32 uniforms: the first eight of a group give the radii, the others the angles."""
    made = np.empty_like(uniforms)
    for start in range(0, len(uniforms), _CHUNK):
        groups = uniforms[start : start + _CHUNK].reshape(-1, 2, 8)
        radius = np.sqrt(_f(-2) * _log(_f(1) - groups[:, 0]))
        sine, cosine = _sin_cos(groups[:, 1] * _TWO_PI)
        result = made[start : start + _CHUNK].reshape(-1, 2, 8)
        np.multiply(radius, cosine, out=result[:, 0])
        np.multiply(radius, sine, out=result[:, 1])
    return made
