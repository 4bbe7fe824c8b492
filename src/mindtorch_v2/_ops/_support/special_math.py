"""Special functions of float64 arrays that NumPy lacks: the families of erf, of the gamma function, and of Bessel's I.

Each is a Chebyshev series on an interval, fitted to 50 digits and cut at 1e-18, or a classical expansion with
a recurrence that leads to where it converges. All are accurate to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from .special_coefficients import ERF, ERFCX, I0_LARGE, I0_SMALL, I1_LARGE, I1_SMALL, LGAMMA, TEMME

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
# Bernoulli numbers B2, B4, ... B20: the coefficients of the expansions at infinity.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_ASYMPTOTIC_FROM = 10  # where those expansions reach full precision
MOST_ITERATIONS = 500  # of one call of `converge`; the callers choose their regions so that a third of it is enough


def chebyshev(coefficients: Sequence[float], t: np.ndarray) -> np.ndarray:
    """The sum of c[k] T_k(t), by Clenshaw's recurrence."""
    twice = t + t
    later = np.zeros_like(t)
    now = np.full_like(t, coefficients[-1])
    for c in coefficients[-2:0:-1]:
        now, later = twice * now - later + c, now
    return t * now - later + coefficients[0]


def converge(step: Callable[..., tuple[np.ndarray, ...]], *state: np.ndarray) -> np.ndarray:
    """Repeat a step on vectors until each element is settled, and return the first vector of the state.

    `step(n, *state)` returns which elements are settled, and the next state. Settled elements leave the state, so that an
    element that converges slowly does not keep the others at work. After `MOST_ITERATIONS` an element is taken as it is.
    """
    result = np.empty_like(state[0])
    index = np.arange(result.size)
    for n in range(1, MOST_ITERATIONS + 1):
        settled, *state = step(n, *state)
        if settled.any():
            result[index[settled]] = state[0][settled]
            unsettled = ~settled
            index = index[unsettled]
            if not index.size:
                return result
            state = [vector[unsettled] for vector in state]
    result[index] = state[0]
    return result


# ---------------------------------------------------------------- the error function


def _exp_of_minus_square(x: np.ndarray) -> np.ndarray:
    """exp(-x²), whose relative error would be that of x² times x² if x were squared in one piece."""
    high = (x * 16).round() / 16
    return np.exp(-high * high) * np.exp(-(x - high) * (x + high))


def erfcx(x: np.ndarray) -> np.ndarray:
    """exp(x²) erfc(x)."""
    size = np.abs(x)
    result = chebyshev(ERFCX, (size - 3.75) / (np.minimum(size, 1e300) + 3.75)) / (1 + 2 * size)
    result = np.where(np.isinf(size), 0.0, result)
    negative = x < 0
    if negative.any():
        result = np.where(negative, 2 * np.exp(x * x) - result, result)
    return result


def erf(x: np.ndarray) -> np.ndarray:
    near = np.clip(x, -1, 1)
    result = near * chebyshev(ERF, 2 * near * near - 1)
    far = np.abs(x) > 1
    if far.any():
        result = np.where(far, np.copysign(1 - _erfc_positive(np.abs(x)), x), result)
    return np.where(np.isnan(x), x, result)


def _erfc_positive(x: np.ndarray) -> np.ndarray:
    bounded = np.minimum(x, 28.0)  # beyond, it is 0 in float64
    return np.where(x > 27.5, 0.0, _exp_of_minus_square(bounded) * erfcx(bounded))


def erfc(x: np.ndarray) -> np.ndarray:
    far = _erfc_positive(np.abs(x))
    result = np.where(x < -0.5, 2 - far, np.where(x > 0.5, far, 1 - erf(x)))
    return np.where(np.isnan(x), x, result)


def _winitzki(log_product: np.ndarray) -> np.ndarray:
    """|erfinv(y)| from log(1 - y²), to three digits."""
    a = 0.147
    half = 2 / (math.pi * a) + log_product / 2
    return np.sqrt(np.maximum(np.sqrt(half * half - log_product / a) - half, 0))


def erfinv(y: np.ndarray) -> np.ndarray:
    size = np.abs(y)
    inside = size < 1
    s = np.where(inside, size, 0.5)
    x = _winitzki(np.log1p(-s * s))
    for _ in range(3):  # Halley's method; near 1 on erfc, which is exact where erf is not
        error = np.where(s < 0.5, erf(x) - s, (1 - s) - erfc(x)) / (_TWO_OVER_ROOT_PI * np.exp(-x * x))
        x = x - error / (1 + x * error)
    return np.copysign(np.where(inside, x, np.where(size == 1, np.inf, np.nan)), y)


def erfcinv(q: np.ndarray) -> np.ndarray:
    """The inverse of erfc for 0 < q <= 1."""
    x = _winitzki(np.log(q * (2 - q)))
    for _ in range(4):
        error = (q - erfc(x)) / (_TWO_OVER_ROOT_PI * np.exp(-x * x))
        x = x - error / (1 + x * error)
    return x


def ndtri(p: np.ndarray) -> np.ndarray:
    """The quantile of the normal distribution."""
    inside = (p > 0) & (p < 1)
    tail = np.where(inside, np.minimum(p, 1 - p), 0.25)
    central = tail > 0.25
    tails = -math.sqrt(2) * erfcinv(2 * tail)
    middle = -math.sqrt(2) * erfinv(1 - 2 * np.where(central, tail, 0.25))
    quantile = np.where(central, middle, tails)
    quantile = np.where(p < 0.5, quantile, -quantile)  # at the middle 0, not -0
    return np.where(inside, quantile, np.where(p == 0, -np.inf, np.where(p == 1, np.inf, np.nan)))


def log_ndtr(x: np.ndarray) -> np.ndarray:
    """The logarithm of the normal distribution function."""
    z = x / math.sqrt(2)
    low = np.minimum(z, 0)
    below = np.log(erfcx(-low) / 2) - low * low
    above = np.log1p(-erfc(np.maximum(z, -1)) / 2)
    return np.where(x < -1, below, above)


# ---------------------------------------------------------------- the gamma function


def lgamma(x: np.ndarray) -> np.ndarray:
    """log |Γ(x)|."""
    positive = np.where(x < 0.5, 1 - x, x)
    result = _lgamma_positive(positive)
    low = x < 0.5
    if low.any():
        # Γ(x) Γ(1 - x) = π / sin(πx); the sine is taken of the distance to the nearest integer, which is exact.
        distance = np.where(low, x - np.round(x), 0.25)
        direct = (x > 0) & low
        safe = np.where(direct, x, 1.0)
        small = np.where(direct, _lgamma_positive(safe + 1) - np.log(safe), result)
        reflected = np.log(math.pi / np.abs(np.sin(math.pi * distance))) - result
        result = np.where(direct, small, np.where(low, reflected, result))
        result = np.where((x <= 0) & (x == np.floor(x)), np.inf, result)
    return np.where(np.isnan(x), x, np.where(np.isinf(x), np.inf, result))


def stirling_correction(x: np.ndarray) -> np.ndarray:
    """What Stirling's formula for log Γ(x) lacks, for x from 10 on."""
    inverse = 1 / x
    square = inverse * inverse
    series = np.zeros_like(x)
    for k in range(len(_BERNOULLI), 0, -1):
        series = series * square + _BERNOULLI[k - 1] / (2 * k * (2 * k - 1))
    return series * inverse


def chebyshev_lgamma1p(x: np.ndarray) -> np.ndarray:
    """log Γ(1 + x) for 0 <= x <= 1, with full relative precision near its zeros at both ends."""
    return x * (x - 1) * chebyshev(LGAMMA, 2 * x - 1)


def _lgamma_positive(x: np.ndarray) -> np.ndarray:
    large = np.maximum(x, _ASYMPTOTIC_FROM)
    stirling = (large - 0.5) * np.log(large) - large + 0.5 * math.log(2 * math.pi) + stirling_correction(large)
    small = x < _ASYMPTOTIC_FROM
    if not small.any():
        return stirling
    # Down to [1, 2] by Γ(x) = (x - 1) Γ(x - 1), up to there by Γ(x) = Γ(x + 1) / x.
    reduced = np.where(small, x, 1.5)
    product = np.ones_like(x)
    for _ in range(_ASYMPTOTIC_FROM - 2):
        above = reduced > 2
        reduced = np.where(above, reduced - 1, reduced)
        product = np.where(above, product * reduced, product)
    below = reduced < 1
    logs = np.where(below, -np.log(reduced), np.log(product))
    # log Γ(x + 1) from x itself: adding 1 first would round away the digits that decide near the zeros at 1 and 2.
    near = chebyshev_lgamma1p(np.where(below, reduced, reduced - 1))
    return np.where(small, near + logs, stirling)


def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of log Γ."""
    pole = (x < 0) & (x == np.floor(x))
    negative = x < 0
    reflected = np.where(negative, 1 - x, x)
    at = np.where(x == 0, 1.0, reflected)
    shift = np.zeros_like(x)
    for _ in range(_ASYMPTOTIC_FROM):
        below = at < _ASYMPTOTIC_FROM
        shift = np.where(below, shift - 1 / at, shift)
        at = np.where(below, at + 1, at)
    square = 1 / (at * at)
    series = np.zeros_like(x)
    for k in range(len(_BERNOULLI), 0, -1):
        series = (series + _BERNOULLI[k - 1] / (2 * k)) * square
    result = shift + np.log(at) - 0.5 / at - series
    if negative.any():
        fraction = np.where(negative, x - np.trunc(x), 0.25)
        result = np.where(negative, result - math.pi / np.tan(math.pi * fraction), result)
    result = np.where(np.isneginf(x) | pole, np.nan, result)
    return np.where(x == 0, np.copysign(np.inf, -x), result)


def zeta(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Hurwitz's sum of 1 / (q + k)^s over all k >= 0; for q < 0 it is defined at whole s alone."""
    s, q = np.broadcast_arrays(s, q)
    convergent = s > 1
    power = np.where(convergent, s, 2.0)
    result = np.asarray(_zeta_positive(power, np.where(q > 0, q, 1.0)))
    negative = (q < 0) & (q != np.floor(q)) & (power == np.floor(power))
    if negative.any():
        result[negative] = _zeta_negative(power[negative], q[negative])
    result = np.where((q > 0) | negative, result, np.where(q == np.floor(q), np.inf, np.nan))
    return np.where(convergent, result, np.where(s == 1, np.inf, np.nan))


def _zeta_positive(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The sum for q > 0: ten terms, and the rest by Euler and Maclaurin."""
    total = np.zeros(s.shape)
    for k in range(_ASYMPTOTIC_FROM):
        total = total + (q + k) ** -s
    edge = q + _ASYMPTOTIC_FROM
    last = edge**-s
    total = total + edge ** (1 - s) / (s - 1) + last / 2
    factor = s * last / edge
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + factor * b / math.factorial(2 * k)
        factor = factor * (s + 2 * k - 1) * (s + 2 * k) / (edge * edge)
    return total


def _zeta_negative(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The sum for q < 0 and whole s: from q + count > 0 on, and the `count` terms before it.

    With j counted from the last of these, they are (-1)^s / (j + first)^s: the sum from `first` on less the sum from `-q + 1`
    on, so that the time does not grow with |q|. A few terms are added up, as the difference would cancel.
    """
    count = -np.floor(q)
    first = -q - (count - 1)
    sign = np.where(s % 2 == 1, -1.0, 1.0)
    few = np.zeros(s.shape)
    for j in range(_ASYMPTOTIC_FROM):
        few = few + np.where(j < count, (first + j) ** -s, 0.0)
    many = count > _ASYMPTOTIC_FROM
    before = np.where(many, _zeta_positive(s, first) - _zeta_positive(s, 1 - q), few)
    return sign * before + _zeta_positive(s, q + count)


_MOST_FACTORIAL = 170  # the largest number whose factorial a float64 holds


def polygamma(n: int, x: np.ndarray) -> np.ndarray:
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(x)
    factorial = float(math.factorial(n)) if n <= _MOST_FACTORIAL else math.inf
    return (1 if n % 2 else -1) * factorial * zeta(np.asarray(float(n + 1)), x)


# ---------------------------------------------------------------- the incomplete gamma functions

# P (lower) and Q = 1 - P (upper). Each element is computed by one of four methods, whichever is accurate and short at its place
# in the (a, x) plane: the method gives the smaller or better conditioned of the two, and the other is its complement. A series
# and a continued fraction would need about sqrt(a) terms where x is close to a; Temme's expansion, uniform in a, replaces both.

_EPSILON = 2.0**-53
_UNIFORM_FROM = 20.0  # least a of Temme's expansion, whose 26 terms give full precision from there on
_UNIFORM_WITHIN = 0.3  # and its range of |x - a| / a
_SMALL_X = 1.1  # up to here the power series of Q needs no more terms than the continued fraction
_VANISHED_X = 1e4  # for a < 10 the density is 0 in float64 long before; a larger x would overflow x^a
_ATANH_TERMS = 18  # of the series of atanh(t), which reach 2^-60 for |t| <= 1/3


def gammainc(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """P(a, x), the lower incomplete gamma function divided by Γ(a)."""
    return _lower_and_upper(a, x)[0]


def gammaincc(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Q(a, x), the upper incomplete gamma function divided by Γ(a)."""
    return _lower_and_upper(a, x)[1]


def _lower_and_upper(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, x = np.broadcast_arrays(a, x)
    # The ends: x = 0, a = 0 and infinities; nan for negative arguments and for (0, 0), (inf, inf).
    lower_is_zero = ((x == 0) & (a > 0)) | ((x >= 0) & np.isfinite(x) & np.isposinf(a))
    lower_is_one = ((a == 0) & (x > 0)) | (np.isposinf(x) & (a >= 0) & np.isfinite(a))
    lower = np.where(lower_is_zero, 0.0, np.where(lower_is_one, 1.0, np.nan))
    upper = np.asarray(1 - lower)
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    lower[inside], upper[inside] = _inside(a[inside], x[inside])
    return lower, upper


def _inside(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P and Q for vectors of positive, finite arguments."""
    uniform = (a >= _UNIFORM_FROM) & (np.abs(x - a) < _UNIFORM_WITHIN * a)
    # Where Q is small because a is, 1 - P would have no digits left.
    small = ~uniform & (x <= _SMALL_X) & (a <= np.where(x <= 0.5, -0.4 / np.log(np.minimum(x, 0.5)), _SMALL_X * x))
    fraction = ~uniform & (x > _SMALL_X) & (x >= a)
    series = ~(uniform | small | fraction)
    tail = np.empty_like(x)
    methods = ((uniform, _uniform_tail), (small, _upper_series), (fraction, _upper_fraction), (series, _lower_series))
    for region, method in methods:
        if region.any():
            tail[region] = method(a[region], x[region])
    is_upper = small | fraction | (uniform & (x >= a))
    return np.where(is_upper, 1 - tail, tail), np.where(is_upper, tail, 1 - tail)


def _deviation(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """λ - 1 - log λ for λ = x / a, without cancellation where λ is near 1."""
    ratio = x / a
    direct = ratio - 1 - np.log(ratio)
    mu = (x - a) / a
    near = (mu > -0.5) & (mu < 1.0)
    # log λ = 2 atanh(t), and μ - 2 t = μ² / (2 + μ) exactly.
    mu = np.where(near, mu, 0.0)
    t = mu / (2 + mu)
    square = t * t
    tail = np.zeros_like(t)
    for k in range(_ATANH_TERMS, 0, -1):
        tail = tail * square + 1 / (2 * k + 1)
    return np.where(near, t * (mu - 2 * square * tail), direct)


def _density(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x^a exp(-x) / Γ(a + 1)."""
    large = np.maximum(a, _ASYMPTOTIC_FROM)
    by_stirling = np.exp(-large * _deviation(large, x) - stirling_correction(large)) / np.sqrt(2 * math.pi * large)
    small, bounded = np.minimum(a, _ASYMPTOTIC_FROM), np.minimum(x, _VANISHED_X)
    half = np.exp(-bounded / 2)  # in two steps, since exp(-x) vanishes before the product does
    direct = half * bounded**small * half * np.exp(-lgamma(small + 1))
    return np.where(a < _ASYMPTOTIC_FROM, direct, by_stirling)


def _lower_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """P as the density times the sum of x^n / ((a + 1) ... (a + n)), all of whose terms are positive."""

    def step(n: int, total: np.ndarray, term: np.ndarray, a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, ...]:
        term = term * x / (a + n)
        total = total + term
        return term <= _EPSILON * total, total, term, a, x

    ones = np.ones_like(x)
    return _density(a, x) * converge(step, ones, ones, a, x)


def _upper_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Q for x up to 1.1: 1 - x^a / Γ(a + 1), and the alternating series of what is beyond it."""

    def step(n: int, total: np.ndarray, power: np.ndarray, a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, ...]:
        power = power * (-x / n)
        term = power / (a + n)
        total = total + term
        return np.abs(term) <= _EPSILON * np.abs(total), total, power, a, x

    series = converge(step, np.zeros_like(x), np.ones_like(x), a, x)
    log_first = a * np.log(x) - np.where(a <= 1, chebyshev_lgamma1p(np.minimum(a, 1)), lgamma(a + 1))
    return -np.expm1(log_first) - a * np.exp(log_first) * series


def _upper_fraction(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Q as the density times a / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)), evaluated by Lentz's method."""
    tiny = 1e-300

    def step(n: int, total: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
        numerator = -n * (n - a)
        b = b + 2
        d = numerator * d + b
        d = 1 / np.where(np.abs(d) < tiny, tiny, d)
        c = b + numerator / c
        c = np.where(np.abs(c) < tiny, tiny, c)
        change = c * d
        return np.abs(change - 1) < 4 * _EPSILON, total * change, b, c, d, a

    b = x + 1 - a
    first = 1 / np.where(b == 0, tiny, b)
    return _density(a, x) * a * converge(step, first, b, np.full_like(x, 1 / tiny), first, a)


def _uniform_tail(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Q where x >= a, else P, by Temme's expansion: half of erfc, and a correction of the order 1 / sqrt(a).

    Both carry the factor exp(-a η² / 2), which is taken out so that far tails keep their digits.
    """
    deviation = _deviation(a, x)
    exponent = a * deviation
    sign = np.where(x >= a, 1.0, -1.0)
    eta = sign * np.sqrt(2 * deviation)
    # Integration by parts leaves b_{m-1} = f_m + (m + 1) b_{m+1} / a as the factor of η^(m-1), from the last one down.
    later = np.full_like(a, TEMME[-1])
    now = np.full_like(a, TEMME[-2])
    series = later * eta + now
    for m in range(len(TEMME) - 3, 0, -1):
        now, later = TEMME[m] + (m + 1) * later / a, now
        series = series * eta + now
    normalization = 1 + later / a
    half = 0.5 * erfcx(np.sqrt(exponent))
    return np.exp(-exponent) * (half + sign * series / (normalization * np.sqrt(2 * math.pi * a)))


# ---------------------------------------------------------------- modified Bessel functions


def i0e(x: np.ndarray) -> np.ndarray:
    """exp(-|x|) I0(x)."""
    size = np.abs(x)
    small = np.minimum(size, 8.0)
    large = np.maximum(size, 8.0)
    return np.where(size <= 8, chebyshev(I0_SMALL, small / 4 - 1), chebyshev(I0_LARGE, 16 / large - 1) / np.sqrt(large))


def i1e(x: np.ndarray) -> np.ndarray:
    """exp(-|x|) I1(x)."""
    size = np.abs(x)
    small = np.minimum(size, 8.0)
    large = np.maximum(size, 8.0)
    near = chebyshev(I1_SMALL, small / 4 - 1) * small
    far = chebyshev(I1_LARGE, 16 / large - 1) / np.sqrt(large)
    return np.copysign(np.where(size <= 8, near, far), x)


def i0(x: np.ndarray) -> np.ndarray:
    return _unscaled(i0e(x), x)


def i1(x: np.ndarray) -> np.ndarray:
    return _unscaled(i1e(x), x)


def _unscaled(value: np.ndarray, x: np.ndarray) -> np.ndarray:
    half = np.exp(np.abs(x) / 2)  # in two steps, since exp(|x|) is infinite before the product is
    return np.where(np.isinf(x), np.where(value < 0, -np.inf, np.inf), half * value * half)
