"""Special functions of float64 arrays, which NumPy has not: the error function's, the gamma function's and Bessel's.

Each is a Chebyshev series on an interval, fitted to 50 digits and cut at 1e-18, or a classical expansion with
a recurrence that leads to where it converges. All are good to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

# erf(x) / x for |x| <= 1, in 2x² - 1
_ERF = (
    0.9754769393826541,
    -0.14226120510371365,
    0.010035582187599796,
    -0.0005768764699767485,
    2.741993125219606e-05,
    -1.1043175507344507e-06,
    3.8488755420345036e-08,
    -1.1808582533875466e-09,
    3.2334215826050907e-11,
    -7.991015947004549e-13,
    1.7990725113961456e-14,
    -3.718635487818693e-16,
    7.103599003714253e-18,
)
# erfcx(x) (1 + 2x) for x >= 0, in (x - 3.75) / (x + 3.75)
_ERFCX = (
    1.1775789345674017,
    -0.004590054580646478,
    -0.08424913336651792,
    0.05920993999819189,
    -0.026658668435305753,
    0.009074997670705265,
    -0.002413163540417608,
    0.0004907758365258086,
    -6.916973302501207e-05,
    4.13902798607301e-06,
    7.74038306619849e-07,
    -2.1886401049234397e-07,
    1.076499946567091e-08,
    4.521959811218287e-09,
    -7.754400208831351e-10,
    -6.318088340886684e-11,
    2.86879501093067e-11,
    1.9455868545777347e-13,
    -9.65469674843344e-13,
    3.25254814814874e-14,
    3.3478119482868056e-14,
    -1.864562880419313e-15,
    -1.2507950530688648e-15,
    7.418235256624044e-17,
    5.068148904796111e-17,
    -2.2370566594359995e-18,
    -2.187342944303018e-18,
)
# exp(-x) I0(x) for 0 <= x <= 8, in x / 4 - 1
_I0_SMALL = (
    0.33839763720473803,
    -0.3046826723431984,
    0.17162090152220877,
    -0.09490109704804764,
    0.04930528423967071,
    -0.02373741480589947,
    0.010546460394594998,
    -0.004324309995050576,
    0.0016394756169413357,
    -0.0005763755745385824,
    0.00018850288509584165,
    -5.754195010082104e-05,
    1.6448448070728896e-05,
    -4.4167383584587505e-06,
    1.1173875391201037e-06,
    -2.670793853940612e-07,
    6.046995022541919e-08,
    -1.300025009986248e-08,
    2.6598237246823866e-09,
    -5.189795601635263e-10,
    9.675809035373237e-11,
    -1.726826291441556e-11,
    2.95505266312964e-12,
    -4.856446783111929e-13,
    7.676185498604936e-14,
    -1.1685332877993451e-14,
    1.715391285555133e-15,
    -2.431279846547955e-16,
    3.3307945188222384e-17,
    -4.4153416464793395e-18,
    5.669178006921496e-19,
)
# sqrt(x) exp(-x) I0(x) for x >= 8, in 16 / x - 1
_I0_LARGE = (
    0.4022452055070544,
    0.0033691164782556943,
    6.889758346916825e-05,
    2.8913705208347567e-06,
    2.0489185894690638e-07,
    2.266668990498178e-08,
    3.3962320257083865e-09,
    4.94060238822497e-10,
    1.1889147107846439e-11,
    -3.1499165279632416e-11,
    -1.3215811840447713e-11,
    -1.7941785315068062e-12,
    7.180124451383666e-13,
    3.8527783827421426e-13,
    1.54008621752141e-14,
    -4.150569347287222e-14,
    -9.554846698828307e-15,
    3.8116806693526224e-15,
    1.7725601330565263e-15,
    -3.425485619677219e-16,
    -2.8276239805165836e-16,
    3.461222867697461e-17,
    4.46562142029676e-17,
    -4.830504485944182e-18,
    -7.233180487874754e-18,
    9.921475412173699e-19,
    1.193650890845982e-18,
)
# exp(-x) I1(x) / x for 0 <= x <= 8, in x / 4 - 1
_I1_SMALL = (
    0.12629359322181682,
    -0.17641651835783406,
    0.1026436586898471,
    -0.05294598120809499,
    0.024726449030626516,
    -0.010564084894626197,
    0.004156422944312888,
    -0.0015135724506312532,
    0.0005122859561685758,
    -0.00016176081582589674,
    4.781565107550054e-05,
    -1.3273163656039436e-05,
    3.4702513081376785e-06,
    -8.568720264695455e-07,
    2.0032947535521353e-07,
    -4.445059128796328e-08,
    9.381537386495773e-09,
    -1.8872497517228294e-09,
    3.625590281552117e-10,
    -6.663489723502027e-11,
    1.1736186298890901e-11,
    -1.9839743977649436e-12,
    3.223793365945575e-13,
    -5.042185504727912e-14,
    7.600684294735408e-15,
    -1.1055969477353862e-15,
    1.5536319577362005e-16,
    -2.111421214358166e-17,
    2.7779141127610464e-18,
    -3.541581772542136e-19,
)
# sqrt(x) exp(-x) I1(x) for x >= 8, in 16 / x - 1
_I1_LARGE = (
    0.38928811750914005,
    -0.009761097491361469,
    -0.00011058893876262371,
    -3.882564808877691e-06,
    -2.512236237870209e-07,
    -2.6314688468895196e-08,
    -3.835380385964237e-09,
    -5.589743462196584e-10,
    -1.8974958123505413e-11,
    3.2526035830154884e-11,
    1.4125807436613782e-11,
    2.0356285441470896e-12,
    -7.198551776245908e-13,
    -4.0835511110921974e-13,
    -2.1015418427726643e-14,
    4.272440016711951e-14,
    1.0420276984128802e-14,
    -3.8144030724370075e-15,
    -1.8803547755107825e-15,
    3.3082023109209285e-16,
    2.96262899764595e-16,
    -3.209525921993424e-17,
    -4.6503053684893586e-17,
    4.414348323071708e-18,
    7.517296310842105e-18,
    -9.314178867326884e-19,
    -1.242193275194891e-18,
)
# log Γ(x) / ((x - 1)(x - 2)) for 1 <= x <= 2, in 2x - 3
_LGAMMA = (
    0.49141539302938714,
    -0.07611416167043585,
    0.008432324965932778,
    -0.001079493726328608,
    0.00014900748003692963,
    -2.1512399888556784e-05,
    3.1979329860862186e-06,
    -4.851693012139927e-07,
    7.47148782116316e-08,
    -1.1638296700170518e-08,
    1.829400437118668e-09,
    -2.8969180607129607e-10,
    4.61570140620909e-11,
    -7.392810230497983e-12,
    1.1894280008333085e-12,
    -1.9212068676522805e-13,
    3.113975526387164e-14,
    -5.0628432984486114e-15,
    8.254150281631144e-16,
    -1.3490578987574844e-16,
    2.209876116782623e-17,
    -3.6274129549239766e-18,
    5.965430068821522e-19,
)

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
# Bernoulli numbers B2, B4, ... B20, which the expansions at infinity are made of.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_ASYMPTOTIC_FROM = 10  # where those expansions reach full precision


def chebyshev(coefficients: Sequence[float], t: np.ndarray) -> np.ndarray:
    """The sum of c[k] T_k(t), by Clenshaw's recurrence."""
    twice = t + t
    later = np.zeros_like(t)
    now = np.full_like(t, coefficients[-1])
    for c in coefficients[-2:0:-1]:
        now, later = twice * now - later + c, now
    return t * now - later + coefficients[0]


# ---------------------------------------------------------------- the error function


def _exp_of_minus_square(x: np.ndarray) -> np.ndarray:
    """exp(-x²), whose relative error would be that of x² times x² if x were squared in one piece."""
    high = (x * 16).round() / 16
    return np.exp(-high * high) * np.exp(-(x - high) * (x + high))


def erfcx(x: np.ndarray) -> np.ndarray:
    """exp(x²) erfc(x)."""
    positive = np.abs(x)
    made = chebyshev(_ERFCX, (positive - 3.75) / (np.minimum(positive, 1e300) + 3.75)) / (1 + 2 * positive)
    made = np.where(np.isinf(positive), 0.0, made)
    below = x < 0
    if below.any():
        made = np.where(below, 2 * np.exp(x * x) - made, made)
    return made


def erf(x: np.ndarray) -> np.ndarray:
    near = np.clip(x, -1, 1)
    made = near * chebyshev(_ERF, 2 * near * near - 1)
    far = np.abs(x) > 1
    if far.any():
        made = np.where(far, np.copysign(1 - _erfc_positive(np.abs(x)), x), made)
    return np.where(np.isnan(x), x, made)


def _erfc_positive(x: np.ndarray) -> np.ndarray:
    bounded = np.minimum(x, 28.0)  # beyond, it is 0 in float64
    return np.where(x > 27.5, 0.0, _exp_of_minus_square(bounded) * erfcx(bounded))


def erfc(x: np.ndarray) -> np.ndarray:
    far = _erfc_positive(np.abs(x))
    made = np.where(x < -0.5, 2 - far, np.where(x > 0.5, far, 1 - erf(x)))
    return np.where(np.isnan(x), x, made)


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
    made = np.where(inside, x, np.where(size == 1, np.inf, np.nan))
    return np.copysign(made, y)


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
    made = np.where(central, middle, tails)
    made = np.where(p < 0.5, made, -made)  # at the middle 0, not -0
    return np.where(inside, made, np.where(p == 0, -np.inf, np.where(p == 1, np.inf, np.nan)))


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
    made = _lgamma_positive(positive)
    low = x < 0.5
    if low.any():
        # Γ(x) Γ(1 - x) = π / sin(πx); the sine of what is left over beyond whole numbers is exact where it matters.
        rest = np.where(low, x - np.round(x), 0.25)
        direct = (x > 0) & low
        at = np.where(direct, x, 1.0)
        small = np.where(direct, _lgamma_positive(at + 1) - np.log(at), made)
        reflected = np.log(math.pi / np.abs(np.sin(math.pi * rest))) - made
        made = np.where(direct, small, np.where(low, reflected, made))
        made = np.where((x <= 0) & (x == np.floor(x)), np.inf, made)
    return np.where(np.isnan(x), x, np.where(np.isinf(x), np.inf, made))


def _lgamma_positive(x: np.ndarray) -> np.ndarray:
    big = np.maximum(x, _ASYMPTOTIC_FROM)
    inverse = 1 / big
    square = inverse * inverse
    tail = np.zeros_like(x)
    for k in range(len(_BERNOULLI), 0, -1):
        tail = tail * square + _BERNOULLI[k - 1] / (2 * k * (2 * k - 1))
    stirling = (big - 0.5) * np.log(big) - big + 0.5 * math.log(2 * math.pi) + tail * inverse
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
    # (x - 1)(x - 2) at x + 1 is x (x - 1): adding 1 first would round away what the zeros at 1 and 2 are made of.
    zeros = np.where(below, reduced * (reduced - 1), (reduced - 1) * (reduced - 2))
    near = zeros * chebyshev(_LGAMMA, np.where(below, 2 * reduced - 1, 2 * reduced - 3))
    return np.where(small, near + logs, stirling)


def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of log Γ."""
    whole = (x < 0) & (x == np.floor(x))
    low = x < 0
    reflected = np.where(low, 1 - x, x)
    at = np.where(x == 0, 1.0, reflected)
    shift = np.zeros_like(x)
    for _ in range(_ASYMPTOTIC_FROM):
        below = at < _ASYMPTOTIC_FROM
        shift = np.where(below, shift - 1 / at, shift)
        at = np.where(below, at + 1, at)
    square = 1 / (at * at)
    tail = np.zeros_like(x)
    for k in range(len(_BERNOULLI), 0, -1):
        tail = (tail + _BERNOULLI[k - 1] / (2 * k)) * square
    made = shift + np.log(at) - 0.5 / at - tail
    if low.any():
        rest = np.where(low, x - np.trunc(x), 0.25)
        made = np.where(low, made - math.pi / np.tan(math.pi * rest), made)
    made = np.where(np.isneginf(x) | whole, np.nan, made)
    return np.where(x == 0, np.copysign(np.inf, -x), made)


def zeta(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Hurwitz's sum of 1 / (q + k)^s over all k >= 0, by Euler and Maclaurin."""
    s, q = np.broadcast_arrays(s, q)
    good = s > 1
    power = np.where(good, s, 2.0)
    # Terms at negative q are added up one by one, so that the expansion starts from a positive number.
    negative = (q <= 0) & (q != np.floor(q)) & (power == np.floor(power))
    start = np.where(q > 0, q, 1.0)
    total = np.zeros(s.shape)
    if negative.any():
        steps = np.where(negative, -np.floor(q), 0)
        for k in range(int(steps.max())):
            total = np.where(k < steps, total + _power(q + k, power), total)
        start = np.where(negative, q + steps, start)
    for k in range(_ASYMPTOTIC_FROM):
        total = total + (start + k) ** -power
    edge = start + _ASYMPTOTIC_FROM
    last = edge**-power
    total = total + edge * last / (power - 1) + last / 2
    factor = power * last / edge
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + factor * b / math.factorial(2 * k)
        factor = factor * (power + 2 * k - 1) * (power + 2 * k) / (edge * edge)
    made = np.where((q > 0) | negative, total, np.where(q == np.floor(q), np.inf, np.nan))
    return np.where(good, made, np.where(s == 1, np.inf, np.nan))


def _power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """base^-exponent for a whole exponent and a base of any sign."""
    sign = np.where((base < 0) & (exponent % 2 == 1), -1.0, 1.0)
    return sign * np.abs(base) ** -exponent


def polygamma(n: int, x: np.ndarray) -> np.ndarray:
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(x)
    return (1 if n % 2 else -1) * math.factorial(n) * zeta(np.asarray(float(n + 1)), x)


def gammainc(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The lower incomplete gamma function, divided by Γ(a)."""
    return _incomplete_gamma(a, x)[0]


def gammaincc(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The upper incomplete gamma function, divided by Γ(a)."""
    return _incomplete_gamma(a, x)[1]


def _incomplete_gamma(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both parts: the smaller one by a series or a continued fraction, the other by what is left to 1."""
    a, x = np.broadcast_arrays(a, x)
    proper = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    aa, xx = np.where(proper, a, 1.0), np.where(proper, x, 1.0)
    front = np.exp(aa * np.log(xx) - xx - lgamma(aa))
    lower = front * _gamma_series(aa, np.minimum(xx, aa + 1))
    upper = front * _gamma_fraction(aa, np.maximum(xx, aa + 1))
    series = xx < aa + 1
    lower, upper = np.where(series, lower, 1 - upper), np.where(series, 1 - lower, upper)
    # The ends: x = 0, a = 0, infinities; nan for negative arguments and for (0, 0), (inf, inf).
    at_zero = (x == 0) & (a > 0) | (x >= 0) & np.isfinite(x) & np.isposinf(a)
    at_one = (a == 0) & (x > 0) | np.isposinf(x) & (a >= 0) & np.isfinite(a)
    lower = np.where(proper, lower, np.where(at_zero, 0.0, np.where(at_one, 1.0, np.nan)))
    upper = np.where(proper, upper, np.where(at_zero, 1.0, np.where(at_one, 0.0, np.nan)))
    return lower, upper


def _gamma_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    term = 1 / a
    total = term
    at = a
    while (np.abs(term) > np.abs(total) * 1e-17).any():
        at = at + 1
        term = term * x / at
        total = total + term
    return total


def _gamma_fraction(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Lentz's method."""
    tiny = 1e-300
    b = x + 1 - a
    c = np.full_like(x, 1 / tiny)
    d = 1 / np.where(b == 0, tiny, b)
    total = d
    for i in range(1, 100000):
        factor = -i * (i - a)
        b = b + 2
        d = factor * d + b
        d = 1 / np.where(np.abs(d) < tiny, tiny, d)
        c = b + factor / c
        c = np.where(np.abs(c) < tiny, tiny, c)
        change = d * c
        total = total * change
        if (np.abs(change - 1) < 4e-16).all():
            break
    return total


# ---------------------------------------------------------------- modified Bessel functions


def i0e(x: np.ndarray) -> np.ndarray:
    """exp(-|x|) I0(x)."""
    size = np.abs(x)
    small = np.minimum(size, 8.0)
    large = np.maximum(size, 8.0)
    return np.where(size <= 8, chebyshev(_I0_SMALL, small / 4 - 1), chebyshev(_I0_LARGE, 16 / large - 1) / np.sqrt(large))


def i1e(x: np.ndarray) -> np.ndarray:
    """exp(-|x|) I1(x)."""
    size = np.abs(x)
    small = np.minimum(size, 8.0)
    large = np.maximum(size, 8.0)
    made = np.where(
        size <= 8, chebyshev(_I1_SMALL, small / 4 - 1) * small, chebyshev(_I1_LARGE, 16 / large - 1) / np.sqrt(large)
    )
    return np.copysign(made, x)


def i0(x: np.ndarray) -> np.ndarray:
    return _unscaled(i0e(x), x)


def i1(x: np.ndarray) -> np.ndarray:
    return _unscaled(i1e(x), x)


def _unscaled(value: np.ndarray, x: np.ndarray) -> np.ndarray:
    half = np.exp(np.abs(x) / 2)  # in two steps, since exp(|x|) is infinite before the product is
    return np.where(np.isinf(x), np.where(value < 0, -np.inf, np.inf), half * value * half)
