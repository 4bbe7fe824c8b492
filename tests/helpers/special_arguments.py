"""Arguments of every size for special functions, and the functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_EXTREMES = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.3e-308, 1.7e308, -1.7e308, 1.0, -1.0, 0.5, 2.0**53, -170.5]


def arguments(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors: of any size and sign, near whole numbers, near each other, and of what is at the ends of float64."""
    random = np.random.default_rng(seed)

    def one() -> np.ndarray:
        kind = random.integers(0, 5, count)
        return np.select(
            [kind == 0, kind == 1, kind == 2, kind == 3],
            [
                random.uniform(-40, 40, count),
                random.choice([-1.0, 1.0], count) * 10 ** random.uniform(-307, 307, count),
                random.integers(-200, 200, count) + random.choice([0, 1e-12, -1e-9], count),
                10 ** random.uniform(-20, 20, count),
            ],
            random.choice(_EXTREMES, count),
        )

    first, second = one(), one()
    near = random.integers(0, 4, count) == 0
    with np.errstate(all="ignore"):
        second[near] = first[near] * (1 + random.normal(size=near.sum()) * 1e-3)
    return first, second


_OF_ONE = [
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "ndtr",
    "log_ndtr",
    "ndtri",
    "gammaln",
    "digamma",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "spherical_bessel_j0",
    "airy_ai",
    "entr",
    "expit",
    "logit",
    "sinc",
    "exp2",
    "expm1",
    "log1p",
]
_OF_TWO = ["gammainc", "gammaincc", "zeta", "xlogy", "xlog1py"]
_POLYNOMIALS = [
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
]


def _call(name: str) -> Callable[..., Any]:
    if name in _OF_ONE:
        return lambda torch, x, _: getattr(torch.special, name)(x)
    if name in _OF_TWO:
        return lambda torch, x, y: getattr(torch.special, name)(x, y)
    return lambda torch, x, n: getattr(torch.special, name)(x, n.nan_to_num(0, 300, -300).clamp(-300, 300).trunc())


def _polygamma(order: int) -> Callable[..., Any]:
    return lambda torch, x, _: torch.special.polygamma(order, x)


# By name: a function of the package and the two vectors.
CALLS: dict[str, Callable[..., Any]] = {name: _call(name) for name in (*_OF_ONE, *_OF_TWO, *_POLYNOMIALS)}
CALLS |= {f"polygamma of order {n}": _polygamma(n) for n in (0, 1, 2, 30, 170, 171, 2**40)}
CALLS["multigammaln"] = lambda torch, x, _: torch.special.multigammaln(x, 3)
