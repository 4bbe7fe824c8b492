"""Bessel's functions of the first and second kind, the modified ones of the second, and Airy's, of float64 arrays.

Each is a Chebyshev series on an interval, fitted to 50 digits and cut at 1e-18: near the origin of the function without its
logarithm, far out of the amplitudes of the oscillation or the exponential.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._support.special_math import chebyshev, i0, i1

# J0(x) for |x| <= 8, in x²/32 - 1
_J0 = (
    0.15772797147489012,
    -0.008723442352852221,
    0.2651786132033368,
    -0.37009499387264977,
    0.15806710233209725,
    -0.034893769411408884,
    0.004819180069467605,
    -0.00046062616620627504,
    3.246032882100508e-05,
    -1.7619469077621507e-06,
    7.608163592418782e-08,
    -2.679253530557673e-09,
    7.848696314479465e-11,
    -1.9438346867370164e-12,
    4.125320595634374e-14,
    -7.588508125447546e-16,
    1.2218515873961411e-17,
)
# J1(x) / x, the same
_J1 = (
    0.08104484632565812,
    -0.1489751450676521,
    0.1609992623572097,
    -0.08268049176681791,
    0.022213639654966037,
    -0.003646940600769276,
    0.0004050337728354822,
    -3.255554866857259e-05,
    1.9858774049915165e-06,
    -9.521984756750436e-08,
    3.687133759097148e-09,
    -1.178026622695885e-10,
    3.160154580348003e-12,
    -7.221755239651773e-14,
    1.4232144003513942e-15,
    -2.4441972916190464e-17,
    3.6912682997929334e-19,
)
# Y0(x) - 2/π log(x) J0(x), the same
_Y0 = (
    -0.03314611320328494,
    -0.2744743055297453,
    0.17903431407718265,
    0.26156734625504663,
    -0.17730201278114358,
    0.04719668959576339,
    -0.007287962479552079,
    0.0007531135932577742,
    -5.632079141056987e-05,
    3.206532537654801e-06,
    -1.44072332740187e-07,
    5.248794787330516e-09,
    -1.5837552541812015e-10,
    4.02633081830612e-12,
    -8.747341203310769e-14,
    1.6434898714919468e-15,
    -2.6977881152566837e-17,
    3.9032584173475982e-19,
)
# (Y1(x) - 2/π (log(x) J1(x) - 1/x)) / x, the same
_Y1 = (
    0.0025380132357417816,
    -0.01608717304766875,
    -0.09591204536083074,
    0.08445197259652346,
    -0.028328123944594365,
    0.005289897544167113,
    -0.0006414551451326356,
    5.505982873338744e-05,
    -3.53808001868935e-06,
    1.7707804556154404e-07,
    -7.11055004989928e-09,
    2.344337905911516e-10,
    -6.4651518414115946e-12,
    1.51429151205002e-13,
    -3.0511859694473254e-15,
    5.34668038572867e-17,
    -8.224911372021585e-19,
)
# The amplitudes of cosine and sine for x >= 8, those of the sine times x/8, in 128/x² - 1
_P0 = (
    0.9994603493475187,
    -0.0005365220468132117,
    3.0751847875194745e-06,
    -5.1705945376060975e-08,
    1.6306464635151382e-09,
    -7.86409137723707e-11,
    5.168262387349193e-12,
    -4.3045788699253914e-13,
    4.3265957431549404e-14,
    -5.069034095935236e-15,
    6.748072215733873e-16,
    -1.0011513723467786e-16,
    1.6305919233744186e-17,
    -2.880866169482871e-18,
)
_Q0 = (
    -0.015555854605337009,
    6.838519942611649e-05,
    -7.414498411060647e-07,
    1.7972457247968992e-08,
    -7.27191593686632e-10,
    4.2201219046687385e-11,
    -3.206747420996635e-12,
    3.006145125351706e-13,
    -3.336328185322427e-14,
    4.255225040245461e-15,
    -6.09993013164005e-16,
    9.662128970303257e-17,
    -1.6686065214378146e-17,
    3.1082440486738143e-18,
    -6.191115787358145e-19,
    1.3091448717220122e-19,
    -2.9211627152642775e-20,
)
_P1 = (
    1.0009030408600137,
    0.0008989898330859408,
    -3.987284300488908e-06,
    6.177633960644299e-08,
    -1.8718907491063067e-09,
    8.816898659582339e-11,
    -5.704863640395645e-12,
    4.699195515230542e-13,
    -4.6842237839904895e-14,
    5.452674896044717e-15,
    -7.221180842274018e-16,
    1.0667689114335412e-16,
    -1.7312313216116335e-17,
    3.0492991197665872e-18,
)
_Q1 = (
    0.04677778706953532,
    -9.62772354915708e-05,
    9.138615257955454e-07,
    -2.0959781384083424e-08,
    8.229193327650554e-10,
    -4.686363688176945e-11,
    3.5152187949686082e-12,
    -3.2643156743279e-13,
    3.5967765829165294e-14,
    -4.5612523950772974e-15,
    6.508282957783384e-16,
    -1.0269147531823243e-16,
    1.767635548776479e-17,
    -3.2834519872981614e-18,
    6.524081149589261e-19,
    -1.3765771484849487e-19,
)
# K0(x) + log(x/2) I0(x) for x <= 2, in x²/2 - 1
_K0_SMALL = (
    -0.2676636966169514,
    0.3442898999246285,
    0.0359799365153615,
    0.001264615411446926,
    2.286212103119452e-05,
    2.5347910790261494e-07,
    1.904516377220209e-09,
    1.0349695257633625e-11,
    4.2598161427910826e-14,
    1.3744654358807508e-16,
    3.5708965285083736e-19,
)
# x (K1(x) - log(x/2) I1(x)), the same
_K1_SMALL = (
    0.7626501136694739,
    -0.3531559607765449,
    -0.12261118082265715,
    -0.006975723859639864,
    -0.0001730288957513052,
    -2.4334061415659684e-06,
    -2.213387630734726e-08,
    -1.4114883926335278e-10,
    -6.666901694199329e-13,
    -2.427449850519366e-15,
    -7.023863479386288e-18,
)
# exp(x) √x K0(x) for x >= 2, in 4/x - 1
_K0_LARGE = (
    1.2201515410329777,
    -0.0314481013119645,
    0.0015698838857300533,
    -0.00012849549581627802,
    1.39498137188765e-05,
    -1.8317555227191195e-06,
    2.766813639445015e-07,
    -4.660489897687948e-08,
    8.574034017414225e-09,
    -1.6975345093890614e-09,
    3.5773972814003283e-10,
    -7.957489244477396e-11,
    1.8559491149549264e-11,
    -4.514597883374519e-12,
    1.1403405882073441e-12,
    -2.9800969231481784e-13,
    8.032890775068375e-14,
    -2.2275133267462965e-14,
    6.340076476276646e-15,
    -1.848593377920907e-15,
    5.5120559994043335e-16,
    -1.6782311257549006e-16,
    5.2103917776435543e-17,
    -1.6475805939842632e-17,
    5.3004337711773354e-18,
    -1.7331712005821001e-18,
)
# exp(x) √x K1(x), the same
_K1_LARGE = (
    1.3603130952422213,
    0.10392373657681724,
    -0.002857816859622779,
    0.00019521551847135162,
    -1.936197974166083e-05,
    2.406484947837217e-06,
    -3.5019606030878126e-07,
    5.7410841254500495e-08,
    -1.0345762465678097e-08,
    2.0150497551970347e-09,
    -4.1903547593419254e-10,
    9.218315187605315e-11,
    -2.129967838427791e-11,
    5.139639673482343e-12,
    -1.2891739609498229e-12,
    3.348419666052243e-13,
    -8.976705182010146e-14,
    2.4771544242195988e-14,
    -7.0198370892147685e-15,
    2.038703166239861e-15,
    -6.057047270643018e-16,
    1.8380935752430455e-16,
    -5.689462849193648e-17,
    1.7940510478863572e-17,
    -5.7567444820733025e-18,
    1.8778651901623268e-18,
)
# With ζ = 2/3 |x|^(3/2) and ζ5 that of 5: the amplitudes of cosine and sine for x <= -5, the second times ζ/ζ5, in 2
# (ζ5/ζ)² - 1
_AI_LEFT_F = (
    0.9996723415461005,
    -0.0003255483561055322,
    2.069745155969119e-06,
    -3.890961736474424e-08,
    1.3645959446950337e-09,
    -7.265563438866682e-11,
    5.234675629062907e-12,
    -4.749669415821452e-13,
    5.172156139604189e-14,
    -6.533725295545284e-15,
    9.33927407277721e-16,
    -1.4823330512580455e-16,
    2.5745988399644002e-17,
    -4.8369440585693956e-18,
)
_AI_LEFT_G = (
    0.009272787915716868,
    -4.36175518450266e-05,
    5.29408468379181e-07,
    -1.434118865710255e-08,
    6.440324847796898e-10,
    -4.1176387496476087e-11,
    3.4235445378828598e-12,
    -3.490421701751702e-13,
    4.190838856265692e-14,
    -5.756075237141602e-15,
    8.850415992299218e-16,
    -1.4983889943593537e-16,
    2.7572529590754257e-17,
    -5.457802245876769e-18,
    1.1523597740972649e-18,
    -2.5773171990728105e-19,
    6.07062870393373e-20,
    -1.4984859091704627e-20,
)
# Ai(x) for -5 <= x <= 2, in (2x + 3) / 7
_AI_MIDDLE = (
    0.15168947628223672,
    -0.005228692408472365,
    -0.007183007563342123,
    -0.2750085825170078,
    0.15267285652736612,
    0.11299722901833571,
    -0.12930163519980795,
    0.021717950423082666,
    0.024911850702736413,
    -0.01433585742189573,
    0.000696689451639598,
    0.001974398933529019,
    -0.0007230393972252199,
    -1.6112414526177467e-05,
    8.133273673249939e-05,
    -2.0775365813975462e-05,
    -1.6054762687164758e-06,
    2.0560158255601387e-06,
    -3.825520517284178e-07,
    -4.913870596184178e-08,
    3.514168642051892e-08,
    -4.846385010860496e-09,
    -8.897812059422213e-10,
    4.329786248648808e-10,
    -4.414745597439301e-11,
    -1.1096862995764342e-11,
    4.024832028797832e-12,
    -2.9609936249846454e-13,
    -1.0257635127287476e-13,
    2.920579876829024e-14,
    -1.4619955511486232e-15,
    -7.35505053091767e-16,
    1.6986548408182807e-16,
    -5.0563208224652944e-18,
    -4.2234448483626644e-18,
    8.087008847190025e-19,
)
# 2 √π x^(1/4) exp(ζ) Ai(x) for x >= 2, in 2 ζ2/ζ - 1
_AI_RIGHT = (
    0.9844053049171552,
    -0.014792784850104199,
    0.0007327177465426715,
    -6.12595423417825e-05,
    6.83476697557269e-06,
    -9.237229735403982e-07,
    1.436225340438052e-07,
    -2.489319422322096e-08,
    4.709793440054328e-09,
    -9.583863708112733e-10,
    2.0745855483677591e-10,
    -4.737267332192277e-11,
    1.1336099808224236e-11,
    -2.827706782319351e-12,
    7.320712095125598e-13,
    -1.9599793911089723e-13,
    5.4101162570683925e-14,
    -1.5356466802223836e-14,
    4.472340393300025e-15,
    -1.3338094674756683e-15,
    4.066582046456231e-16,
    -1.265583225645289e-16,
    4.015126334015871e-17,
    -1.2969972135960937e-17,
    4.2613499074124e-18,
    -1.422676842293507e-18,
)

_TWO_OVER_PI = 2 / math.pi
_ROOT_HALF = math.sqrt(0.5)
_SPLIT = 8.0  # where series near the origin and amplitudes far out meet
_AIRY_ZERO_FROM = 103.892  # beyond it torch has 0, a little before the float64 numbers end


def j0(x: np.ndarray) -> np.ndarray:
    """The Bessel function of the first kind of order 0; nan for infinities."""
    return _regular(np.abs(x), lambda size: chebyshev(_J0, _square(size)), lambda size: _far_0(size)[0])


def j1(x: np.ndarray) -> np.ndarray:
    """The Bessel function of the first kind of order 1; nan for infinities."""
    result = _regular(np.abs(x), lambda size: chebyshev(_J1, _square(size)) * size, lambda size: _far_1(size)[0])
    return np.where(np.signbit(x), -result, result)


def y0(x: np.ndarray) -> np.ndarray:
    """The Bessel function of the second kind of order 0: -inf at 0, nan below it and for infinities."""

    def near(size: np.ndarray) -> np.ndarray:
        t = _square(size)
        return _TWO_OVER_PI * np.log(size) * chebyshev(_J0, t) + chebyshev(_Y0, t)

    return _second_kind(x, near, lambda size: _far_0(size)[1])


def y1(x: np.ndarray) -> np.ndarray:
    """The Bessel function of the second kind of order 1: -inf at 0, nan below it and for infinities."""

    def near(size: np.ndarray) -> np.ndarray:
        t = _square(size)
        return _TWO_OVER_PI * (np.log(size) * chebyshev(_J1, t) * size - 1 / size) + chebyshev(_Y1, t) * size

    return _second_kind(x, near, lambda size: _far_1(size)[1])


def _square(size: np.ndarray) -> np.ndarray:
    return size * size / 32 - 1


def _regular(size: np.ndarray, near: Callable[[np.ndarray], np.ndarray], far: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`near` up to 8 and `far` beyond it; nan for infinities, as in torch."""
    result = np.where(size <= _SPLIT, near(np.minimum(size, _SPLIT)), far(np.maximum(size, _SPLIT)))
    return np.where(np.isinf(size), np.nan, result)


def _second_kind(
    x: np.ndarray, near: Callable[[np.ndarray], np.ndarray], far: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    result = _regular(np.where(x > 0, x, 1.0), near, far)
    return np.where(x > 0, result, np.where(x == 0, -np.inf, np.nan))


def _far_0(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """J0 and Y0 of numbers above 8."""
    # cos(x - π/4) and sin(x - π/4), from those of x: the difference would round x.
    cosine, sine = np.cos(size), np.sin(size)
    return _oscillation(size, _P0, _Q0, (cosine + sine) * _ROOT_HALF, (sine - cosine) * _ROOT_HALF)


def _far_1(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """J1 and Y1 of numbers above 8, with the phase x - 3π/4."""
    cosine, sine = np.cos(size), np.sin(size)
    return _oscillation(size, _P1, _Q1, (sine - cosine) * _ROOT_HALF, -(sine + cosine) * _ROOT_HALF)


def _oscillation(
    size: np.ndarray, p: tuple[float, ...], q: tuple[float, ...], cosine: np.ndarray, sine: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    inverse = 8 / size
    t = 2 * inverse * inverse - 1
    amplitude, lag = chebyshev(p, t), chebyshev(q, t) * inverse
    scale = np.sqrt(_TWO_OVER_PI / size)
    return scale * (amplitude * cosine - lag * sine), scale * (amplitude * sine + lag * cosine)


def spherical_j0(x: np.ndarray) -> np.ndarray:
    """sin(x) / x: 1 at 0, 0 at infinities."""
    finite = np.where(np.isinf(x) | (x == 0), 1.0, x)
    return np.where(np.isinf(x), 0.0, np.where(x == 0, 1.0, np.sin(finite) / finite))


# ---------------------------------------------------------------- modified functions of the second kind


def k0(x: np.ndarray) -> np.ndarray:
    """The modified Bessel function of the second kind of order 0: inf at 0, nan below it."""
    return _modified(x, _k0_small, _K0_LARGE, scaled=False)


def k0e(x: np.ndarray) -> np.ndarray:
    """exp(x) K0(x)."""
    return _modified(x, _k0_small, _K0_LARGE, scaled=True)


def k1(x: np.ndarray) -> np.ndarray:
    """The modified Bessel function of the second kind of order 1: inf at 0, nan below it."""
    return _modified(x, _k1_small, _K1_LARGE, scaled=False)


def k1e(x: np.ndarray) -> np.ndarray:
    """exp(x) K1(x)."""
    return _modified(x, _k1_small, _K1_LARGE, scaled=True)


def _k0_small(x: np.ndarray) -> np.ndarray:
    return chebyshev(_K0_SMALL, x * x / 2 - 1) - np.log(x / 2) * i0(x)


def _k1_small(x: np.ndarray) -> np.ndarray:
    return chebyshev(_K1_SMALL, x * x / 2 - 1) / x + np.log(x / 2) * i1(x)


def _modified(x: np.ndarray, small: Callable[[np.ndarray], np.ndarray], large: tuple[float, ...], scaled: bool) -> np.ndarray:
    positive = np.where(x > 0, x, 1.0)
    low, high = np.minimum(positive, 2.0), np.maximum(positive, 2.0)
    near, far = small(low), chebyshev(large, 4 / high - 1) / np.sqrt(high)
    if scaled:
        near = near * np.exp(low)
    else:
        far = far * np.exp(-high)
    return np.where(x > 0, np.where(positive <= 2, near, far), np.where(x == 0, np.inf, np.nan))


# ---------------------------------------------------------------- Airy's function


def _zeta(size: np.ndarray) -> np.ndarray:
    return size * np.sqrt(size) * (2 / 3)


def airy_ai(x: np.ndarray) -> np.ndarray:
    """Airy's function Ai; nan for infinities."""
    middle = chebyshev(_AI_MIDDLE, (2 * np.clip(x, -5.0, 2.0) + 3) / 7)
    result = np.where(x < -5, _airy_left(np.maximum(-x, 5.0)), np.where(x > 2, _airy_right(np.maximum(x, 2.0)), middle))
    result = np.where(x > _AIRY_ZERO_FROM, 0.0, result)
    return np.where(np.isinf(x), np.nan, result)


def _airy_left(size: np.ndarray) -> np.ndarray:
    """Ai(-size) for sizes above 5."""
    zeta = _zeta(size)
    inverse = _zeta(np.float64(5.0)) / zeta
    t = 2 * inverse * inverse - 1
    cosine, sine = np.cos(zeta), np.sin(zeta)
    wave = chebyshev(_AI_LEFT_F, t) * (cosine + sine) + chebyshev(_AI_LEFT_G, t) * inverse * (sine - cosine)
    return wave * _ROOT_HALF / (math.sqrt(math.pi) * np.sqrt(np.sqrt(size)))


def _airy_right(size: np.ndarray) -> np.ndarray:
    """Ai(size) for sizes above 2."""
    zeta = _zeta(size)
    series = chebyshev(_AI_RIGHT, 2 * _zeta(np.float64(2.0)) / zeta - 1)
    return series * np.exp(-zeta) / (2 * math.sqrt(math.pi) * np.sqrt(np.sqrt(size)))
