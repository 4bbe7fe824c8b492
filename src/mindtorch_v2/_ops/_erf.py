"""erf for float32 arrays: a ratio of two polynomials, good to a few units in the last place.

NumPy has no erf. The coefficients are a minimax fit of erf(x) / x in x² on |x| < 3.92, beyond which
erf(x) is 1 in float32.
"""

from __future__ import annotations

import numpy as np

_LIMIT = np.float32(3.92)
_P = tuple(np.float32(c) for c in (2.050029934073365e-06, 0.00028487530097241574, 0.0037655255021824085,
                                   0.05274843889420903, 0.19040506427662657, 1.128379146200678))
_Q = tuple(np.float32(c) for c in (3.8090728291765534e-05, 0.0011625029889525905, 0.014969043647005058,
                                   0.11410844057462328, 0.5020748370527051, 1.0))
# Blocks stay in the cache while the polynomials are evaluated.
_BLOCK = 16384


def _block(x: np.ndarray, out: np.ndarray) -> None:
    x = np.minimum(np.maximum(x, -_LIMIT), _LIMIT)
    z = x * x
    p = z * _P[0]
    for c in _P[1:-1]:
        p += c
        p *= z
    p += _P[-1]
    q = z * _Q[0]
    for c in _Q[1:-1]:
        q += c
        q *= z
    q += _Q[-1]
    p *= x
    np.divide(p, q, out)


def erf32(x: np.ndarray) -> np.ndarray:
    """erf of a float32 array, as a new array."""
    if x.size <= _BLOCK:
        out = np.empty_like(x)
        _block(x, out)
        return out
    flat = np.ascontiguousarray(x).reshape(-1)
    made = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        _block(flat[start:start + _BLOCK], made[start:start + _BLOCK])
    return made.reshape(x.shape)
