"""Bessel's and Airy's functions, which have no derivative in torch; declared when `mindtorch_v2.special` is imported."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._dispatch.registry import op
from .._support.elementwise import need_single_or_double
from .._support.special_math import i0, i1
from . import _bessel_math as math


def _declare(name: str, function: Callable[[np.ndarray], np.ndarray], argument: str = "self") -> None:
    kernel_name = f"{name}_cpu"

    def kernel(x: np.ndarray) -> np.ndarray:
        need_single_or_double(kernel_name, x)
        return function(x.astype(np.float64, copy=False)).astype(x.dtype, copy=False)

    op(f"special_{name}(Tensor {argument}) -> Tensor", kernel, promote="float", nondiff=True)


def _nan_at_infinities(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.where(np.isinf(x), np.nan, function(x))


_declare("airy_ai", math.airy_ai, "x")
_declare("bessel_j0", math.j0)
_declare("bessel_j1", math.j1)
_declare("bessel_y0", math.y0)
_declare("bessel_y1", math.y1)
_declare("modified_bessel_i0", _nan_at_infinities(i0))
_declare("modified_bessel_i1", _nan_at_infinities(i1))
_declare("modified_bessel_k0", math.k0)
_declare("modified_bessel_k1", math.k1)
_declare("scaled_modified_bessel_k0", math.k0e, "x")
_declare("scaled_modified_bessel_k1", math.k1e, "x")
_declare("spherical_bessel_j0", math.spherical_j0, "x")
