"""Special functions at random arguments, computed by mpmath with 60 digits.

The values are kept in special_values.json: for each function a list of rows, the arguments and the value as a float64. Run this
file with a Python that has mpmath to compute them again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

VALUES = Path(__file__).with_name("special_values.json")
ROWS = 40  # for each function


def everywhere(random: Random) -> float:
    """Any size and sign, most often moderate."""
    how = random.random()
    size = random.uniform(0, 30) if how < 0.7 else 10 ** random.uniform(-300, 3)
    return size * random.choice([1, 1, -1])


def moderate(random: Random) -> float:
    return random.uniform(-30, 30)


def positive(random: Random) -> float:
    return abs(everywhere(random)) or 1.0


def probability(random: Random) -> float:
    how = random.random()
    return random.random() if how < 0.5 else 10 ** random.uniform(-300, 0) if how < 0.8 else 1 - 10 ** random.uniform(-15, 0)


def inside(random: Random) -> float:
    return random.choice([1, -1]) * (1 - 10 ** random.uniform(-15, 0)) if random.random() < 0.5 else random.uniform(-1, 1)


def order(random: Random) -> float:
    return float(random.randrange(1, 12))


def wide(random: Random) -> float:
    return 10 ** random.uniform(-6, 6)


def functions(mp: Any) -> dict[str, tuple[Callable[..., Any], list[Callable[[Random], float]]]]:
    """By the name in torch.special: the function of mpmath's numbers, and where its arguments come from."""
    half, root2 = mp.mpf(1) / 2, mp.sqrt(2)
    return {
        "erf": (mp.erf, [everywhere]),
        "erfc": (mp.erfc, [moderate]),
        "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [lambda random: random.uniform(-20, 200)]),
        "erfinv": (mp.erfinv, [inside]),
        "ndtr": (lambda x: mp.erfc(-x / root2) / 2, [lambda random: random.uniform(-5, 30)]),
        "log_ndtr": (lambda x: mp.log1p(-mp.erfc(x / root2) / 2), [moderate]),
        "ndtri": (lambda p: root2 * mp.erfinv(2 * p - 1), [probability]),
        "gammaln": (lambda x: mp.re(mp.loggamma(x)), [everywhere]),
        "digamma": (mp.digamma, [everywhere]),
        "polygamma": (lambda n, x: mp.polygamma(int(n), x), [order, positive]),
        "zeta": (mp.zeta, [lambda random: 1 + 10 ** random.uniform(-3, 1.5), positive]),
        "gammainc": (lambda a, x: mp.gammainc(a, 0, x, regularized=True), [wide, wide]),
        "gammaincc": (lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), [wide, wide]),
        "multigammaln": (
            lambda a, p: p * (p - 1) / 4 * mp.log(mp.pi) + sum(mp.loggamma(a - mp.mpf(j) / 2) for j in range(int(p))),
            [lambda random: 6 + 10 ** random.uniform(-3, 5), order],
        ),
        "i0": (lambda x: mp.besseli(0, x), [moderate]),
        "i0e": (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), [moderate]),
        "i1": (lambda x: mp.besseli(1, x), [moderate]),
        "i1e": (lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), [moderate]),
        "modified_bessel_k0": (lambda x: mp.besselk(0, x), [lambda random: 10 ** random.uniform(-6, 2)]),
        "modified_bessel_k1": (lambda x: mp.besselk(1, x), [lambda random: 10 ** random.uniform(-6, 2)]),
        "scaled_modified_bessel_k0": (lambda x: mp.exp(x) * mp.besselk(0, x), [wide]),
        "scaled_modified_bessel_k1": (lambda x: mp.exp(x) * mp.besselk(1, x), [wide]),
        "bessel_j0": (lambda x: mp.besselj(0, x), [moderate]),
        "bessel_j1": (lambda x: mp.besselj(1, x), [moderate]),
        "bessel_y0": (lambda x: mp.bessely(0, x), [lambda random: 10 ** random.uniform(-6, 1.5)]),
        "bessel_y1": (lambda x: mp.bessely(1, x), [lambda random: 10 ** random.uniform(-6, 1.5)]),
        "spherical_bessel_j0": (lambda x: mp.sinc(x), [moderate]),
        "airy_ai": (mp.airyai, [lambda random: random.uniform(-10, 30)]),
        "entr": (lambda x: -x * mp.log(x), [positive]),
        "expit": (lambda x: 1 / (1 + mp.exp(-x)), [everywhere]),
        "logit": (lambda p: mp.log(p / (1 - p)), [probability]),
        "sinc": (mp.sincpi, [moderate]),
        "xlogy": (lambda x, y: x * mp.log(y), [everywhere, positive]),
        "xlog1py": (lambda x, y: x * mp.log1p(y), [everywhere, positive]),
        "chebyshev_polynomial_t": (lambda x, n: mp.chebyt(int(n), x), [inside, order]),
        "chebyshev_polynomial_u": (lambda x, n: mp.chebyu(int(n), x), [inside, order]),
        "hermite_polynomial_h": (lambda x, n: mp.hermite(int(n), x), [moderate, order]),
        "hermite_polynomial_he": (lambda x, n: half ** (n * half) * mp.hermite(int(n), x / root2), [moderate, order]),
        "laguerre_polynomial_l": (lambda x, n: mp.laguerre(int(n), 0, x), [moderate, order]),
        "legendre_polynomial_p": (lambda x, n: mp.legendre(int(n), x), [inside, order]),
    }


def rows() -> dict[str, list[list[float]]]:
    """The values that are kept."""
    return json.loads(VALUES.read_text())


def record() -> None:
    import mpmath as mp

    mp.mp.dps = 60
    lines = []
    for name, (function, sources) in functions(mp).items():
        random = Random(name)
        found: list[list[float]] = []
        while len(found) < ROWS:
            arguments = [source(random) for source in sources]
            value = float(mp.re(function(*[mp.mpf(a) for a in arguments])))
            if math.isfinite(value) and (value == 0 or abs(value) > 1e-300):
                found.append([*arguments, value])
        lines.append(f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, found)) + "\n]")
        print(name)
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
