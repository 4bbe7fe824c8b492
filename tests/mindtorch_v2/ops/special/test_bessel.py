"""Bessel's and Airy's functions: values to 15 digits, and what PyTorch 2.13 has at the ends of where they are defined."""

from __future__ import annotations

import math
from math import inf, nan

import pytest

import mindtorch_v2 as torch

POINTS = (0.001, 0.5, 1, 2, 2.5, 5, 7.75, 8.5, 26, 100)
VALUES = {
    "airy_ai": (
        0.3547692345431742,
        0.23169360648083348,
        0.13529241631288141,
        0.03492413042327438,
        0.01572592338047049,
        0.00010834442813607442,
        9.537038961641585e-08,
        1.0997009755195506e-08,
        5.15301114519834e-40,
        2.6344821520881846e-291,
    ),
    "bessel_j0": (
        0.9999997500000156,
        0.9384698072408129,
        0.7651976865579666,
        0.22389077914123567,
        -0.048383776468198,
        -0.1775967713143383,
        0.22523406912010668,
        0.041939251842934504,
        0.15599931552242113,
        0.019985850304223122,
    ),
    "bessel_j1": (
        0.0004999999375000026,
        0.2422684576748739,
        0.4400505857449335,
        0.5767248077568734,
        0.49709410246427405,
        -0.32757913759146523,
        0.1916025921891178,
        0.2731219636740537,
        0.015045730586915811,
        -0.07714535201411216,
    ),
    "bessel_y0": (
        -4.471416611375923,
        -0.44451873350670656,
        0.08825696421567696,
        0.5103756726497451,
        0.4980703596152319,
        -0.30851762524903376,
        0.17676987751364717,
        0.27020510536578746,
        0.012044625860755602,
        -0.07724431336508315,
    ),
    "bessel_y1": (
        -636.6221672311394,
        -1.471472392670243,
        -0.7812128213002887,
        -0.10703243154093754,
        0.1459181379667858,
        0.14786314339122683,
        -0.21433222865940804,
        -0.02616867939853747,
        -0.15579655322960265,
        -0.020372312002759792,
    ),
    "modified_bessel_i0": (
        1.0000002500000156,
        1.0634833707413236,
        1.2660658777520084,
        2.2795853023360673,
        3.289839144050123,
        27.239871823604446,
        338.5137537472759,
        683.1619269901156,
        15388976705.66081,
        1.0737517071310738e42,
    ),
    "modified_bessel_i1": (
        0.0005000000625000026,
        0.2578943053908963,
        0.565159103992485,
        1.590636854637329,
        2.5167162452886984,
        24.335642142450528,
        315.85248092400343,
        641.6199025400667,
        15090072642.341644,
        1.0683693903381625e42,
    ),
    "modified_bessel_k0": (
        7.023688800562382,
        0.9244190712276659,
        0.42102443824070834,
        0.11389387274953344,
        0.06234755320036619,
        0.0036910983340425942,
        0.00019099545486702074,
        8.625756634932507e-05,
        1.2498773979850725e-12,
        4.656628229175902e-45,
    ),
    "modified_bessel_k1": (
        999.9962381560856,
        1.656441120003301,
        0.6019072301972346,
        0.13986588181652243,
        0.07389081634774707,
        0.004044613445452165,
        0.00020296330367377868,
        9.119724775006898e-05,
        1.2736907792389236e-12,
        4.6798537356369095e-45,
    ),
    "scaled_modified_bessel_k0": (
        7.030716002378251,
        1.5241093857739094,
        1.144463079806895,
        0.8415682150707714,
        0.7595486903280996,
        0.547807564313519,
        0.44340977933536646,
        0.4239359993336981,
        0.2446380149415515,
        0.12517562165912657,
    ),
    "scaled_modified_bessel_k1": (
        1000.9967345590684,
        2.731009708211786,
        1.6361534862632583,
        1.0334768470686886,
        0.900174423907878,
        0.6002738587883126,
        0.4711940069873715,
        0.4482133915630794,
        0.24929899875354783,
        0.12579995047957854,
    ),
    "spherical_bessel_j0": (
        0.9999998333333416,
        0.958851077208406,
        0.8414709848078965,
        0.45464871341284085,
        0.2393888576415826,
        -0.1917848549326277,
        0.12833532633692596,
        0.09393966030864592,
        0.029329171172292414,
        -0.005063656411097588,
    ),
}
# What negative numbers have: the same, the opposite, or nothing.
EVEN = ("bessel_j0", "modified_bessel_i0", "spherical_bessel_j0")
ODD = ("bessel_j1", "modified_bessel_i1")
# Values at 0, inf, -inf and nan.
ENDS = {
    "airy_ai": (0.3550280538878172, nan, nan, nan),
    "bessel_j0": (1, nan, nan, nan),
    "bessel_j1": (0, nan, nan, nan),
    "bessel_y0": (-inf, nan, nan, nan),
    "bessel_y1": (-inf, nan, nan, nan),
    "modified_bessel_i0": (1, nan, nan, nan),
    "modified_bessel_i1": (0, nan, nan, nan),
    "modified_bessel_k0": (inf, 0, nan, nan),
    "modified_bessel_k1": (inf, 0, nan, nan),
    "scaled_modified_bessel_k0": (inf, 0, nan, nan),
    "scaled_modified_bessel_k1": (inf, 0, nan, nan),
    "spherical_bessel_j0": (1, 0, 0, nan),
}


def values(name: str, points: tuple[float, ...], dtype: torch.dtype = torch.float64) -> list[float]:
    made = getattr(torch.special, name)(torch.tensor(points, dtype=dtype))
    assert made.dtype is dtype
    return made.tolist()


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    # Airy's function loses digits with the exponent that it decays by.
    assert values(name, POINTS) == pytest.approx(VALUES[name], rel=2e-13 if name == "airy_ai" else 1e-14, abs=0)
    single = [v if abs(v) < 3e38 else inf for v in VALUES[name]]
    assert values(name, POINTS, torch.float32) == pytest.approx(single, rel=4e-6, abs=1e-37)


@pytest.mark.parametrize("name", [name for name in VALUES if name != "airy_ai"])
def test_negative_numbers(name: str) -> None:
    expected = [v if name in EVEN else -v if name in ODD else nan for v in VALUES[name]]
    assert values(name, tuple(-p for p in POINTS)) == pytest.approx(expected, rel=1e-14, nan_ok=True)


def test_airy_of_negative_numbers_and_of_large_ones() -> None:
    assert values("airy_ai", (-0.5, -2.5, -4.999, -5, -5.001, -7.75, -100, 103.9)) == pytest.approx(
        [
            0.4757280916105396,
            -0.11232506769296609,
            0.35108732472633847,
            0.35076100902411433,
            0.3504329395176303,
            0.17497790079676515,
            0.1767533932395529,
            0,
        ],
        rel=1e-13,
    )


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ends(name: str, dtype: torch.dtype) -> None:
    assert values(name, (0.0, inf, -inf, nan), dtype) == pytest.approx(ENDS[name], rel=1e-7, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("bessel_j0", 8.0),
        ("bessel_j1", 8.0),
        ("bessel_y0", 8.0),
        ("bessel_y1", 8.0),
        ("modified_bessel_k0", 2.0),
        ("modified_bessel_k1", 2.0),
        ("airy_ai", -5.0),
        ("airy_ai", 2.0),
    ],
)
def test_the_forms_meet(name: str, at: float) -> None:
    below, here, above = values(name, (math.nextafter(at, -inf), at, math.nextafter(at, inf)))
    assert below == pytest.approx(here, rel=4e-15) and above == pytest.approx(here, rel=4e-15)


def test_the_phase_of_large_numbers_is_kept() -> None:
    assert values("bessel_j0", (1e10,)) == pytest.approx([2.175591750246892e-06], rel=1e-9)


def test_zero_keeps_its_sign_where_the_function_does() -> None:
    assert math.copysign(1, values("bessel_j1", (-0.0,))[0]) == -1


@pytest.mark.parametrize("name", VALUES)
def test_operands(name: str) -> None:
    function = getattr(torch.special, name)
    assert function(torch.tensor([1, 2])).dtype is torch.float32
    assert function(torch.tensor(True)).shape == ()
    assert not function(torch.ones(2, requires_grad=True)).requires_grad  # torch has no derivative either
    out = torch.empty(2, dtype=torch.float64)
    assert function(torch.ones(2, dtype=torch.float64), out=out) is out
    assert out[0].item() == values(name, (1.0,))[0]
    for dtype, word in ((torch.float16, "Half"), (torch.bfloat16, "BFloat16"), (torch.complex64, "ComplexFloat")):
        with pytest.raises(NotImplementedError, match=f"\"{name}_cpu\" not implemented for '{word}'"):
            function(torch.ones(1, dtype=dtype))
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        function(2)
