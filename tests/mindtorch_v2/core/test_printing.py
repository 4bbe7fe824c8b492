"""The text of tensors, as recorded from PyTorch 2.13."""

from __future__ import annotations

import math
import random
import zlib
from typing import Any

import numpy as np
import pytest

from mindtorch_v2._core import dtype as dtypes
from mindtorch_v2._core.device import device
from mindtorch_v2._core.dtype import by_name
from mindtorch_v2._core.printing import get_printoptions, set_printoptions, tensor_repr

NAN, INF = float("nan"), float("inf")
CPU = device("cpu")


def elements(name: str, values: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """An array of the dtype called `name`, rounded from the widest type of its kind."""
    d = by_name(name)
    wide = np.float64 if d.is_floating_point else np.complex128 if d.is_complex else d.np
    with np.errstate(over="ignore"):
        array = np.array(values, wide).astype(d.np)
    return array if shape is None else array.reshape(shape)


def text_of(array: np.ndarray, **kwargs: Any) -> str:
    return tensor_repr(array, dtype=dtypes.from_numpy(array.dtype), device=CPU, **kwargs)


@pytest.fixture(autouse=True)
def default_options():
    yield
    set_printoptions(profile="default")
    dtypes.set_default_dtype(dtypes.float32)


# ---------------------------------------------------------------- elements

INTEGERS = [
    (elements("int64", 5), "tensor(5)"),
    (elements("int64", [1, 20, -300]), "tensor([   1,   20, -300])"),
    (elements("int64", range(6), shape=(2, 3)), "tensor([[0, 1, 2],\n        [3, 4, 5]])"),
    (elements("int64", [2**63 - 1, -5]), "tensor([9223372036854775807,                  -5])"),
    (elements("int32", [1, 1]), "tensor([1, 1], dtype=torch.int32)"),
    (elements("uint8", [255]), "tensor([255], dtype=torch.uint8)"),
    (elements("int8", [-128, 7]), "tensor([-128,    7], dtype=torch.int8)"),
    (elements("uint64", [2**63]), "tensor([9223372036854775808], dtype=torch.uint64)"),
    (elements("uint16", [0, 65535]), "tensor([    0, 65535], dtype=torch.uint16)"),
    (elements("bool", [True, False]), "tensor([ True, False])"),
    (elements("bool", True), "tensor(True)"),
    (elements("bool", [True] * 4, shape=(2, 2)), "tensor([[True, True],\n        [True, True]])"),
]

FLOATS = [
    (elements("float32", 1.5), "tensor(1.5000)"),
    (elements("float32", 3.0), "tensor(3.)"),
    (elements("float32", [1.0, 2.0]), "tensor([1., 2.])"),
    (elements("float32", [-0.0, 0.0]), "tensor([-0., 0.])"),
    (elements("float32", [0.1, 0.25, 10.0]), "tensor([ 0.1000,  0.2500, 10.0000])"),
    (elements("float32", [123456.0]), "tensor([123456.])"),
    (
        elements("float32", [1.0, -2.5, 100.0, 0.125], shape=(2, 2)),
        "tensor([[  1.0000,  -2.5000],\n        [100.0000,   0.1250]])",
    ),
    (elements("float32", [0.0, 1.5, 0.0]), "tensor([0.0000, 1.5000, 0.0000])"),
    (elements("float32", [1e8]), "tensor([100000000.])"),
    (elements("float32", [0.0001, 0.5]), "tensor([1.0000e-04, 5.0000e-01])"),
    (elements("float32", [1000.0, 1.0]), "tensor([1000.,    1.])"),
    (elements("float32", [1000.0, 1.5]), "tensor([1000.0000,    1.5000])"),
    (elements("float64", [1.0, 1.0]), "tensor([1., 1.], dtype=torch.float64)"),
    (elements("float64", [1 / 3]), "tensor([0.3333], dtype=torch.float64)"),
    (elements("float16", [1.0, 1 / 3]), "tensor([1.0000, 0.3333], dtype=torch.float16)"),
    (elements("bfloat16", [1.0, 1 / 3]), "tensor([1.0000, 0.3340], dtype=torch.bfloat16)"),
    (elements("float8_e4m3fn", [1.5, 448.0]), "tensor([  1.5000, 448.0000], dtype=torch.float8_e4m3fn)"),
    (elements("float8_e5m2", [1.5, 57344.0]), "tensor([1.5000e+00, 5.7344e+04], dtype=torch.float8_e5m2)"),
]

SCIENTIFIC = [
    (elements("float32", [1e-6, 1.0]), "tensor([1.0000e-06, 1.0000e+00])"),
    (elements("float32", [1e10, 1.5]), "tensor([1.0000e+10, 1.5000e+00])"),
    (elements("float32", [1e5, 0.001]), "tensor([1.0000e+05, 1.0000e-03])"),
    (elements("float32", [2e8]), "tensor([2.0000e+08])"),
    (elements("float32", [0.00009]), "tensor([9.0000e-05])"),
    (elements("float32", [1001.0, 1.0]), "tensor([1.0010e+03, 1.0000e+00])"),
    (elements("float32", [-1e-6, 0.0]), "tensor([-1.0000e-06,  0.0000e+00])"),
    (elements("float64", [1e-310, 1e300]), "tensor([1.0000e-310, 1.0000e+300], dtype=torch.float64)"),
    (elements("float32", 1e-6), "tensor(1.0000e-06)"),
]

NOT_FINITE = [
    (elements("float32", [NAN, INF, -INF, 1.0]), "tensor([nan, inf, -inf, 1.])"),
    (elements("float32", [NAN]), "tensor([nan])"),
    (elements("float32", [1.5, INF]), "tensor([1.5000,    inf])"),
    (
        elements("float32", [1e-9, NAN, -INF, 0.0, 1.0]),
        "tensor([1.0000e-09,        nan,       -inf, 0.0000e+00, 1.0000e+00])",
    ),
    (elements("float32", NAN), "tensor(nan)"),
    (elements("float64", -INF), "tensor(-inf, dtype=torch.float64)"),
    (elements("float32", [NAN, 0.0]), "tensor([nan, 0.])"),
]

COMPLEX = [
    (elements("complex64", [1 + 2j, -0.5j]), "tensor([1.+2.0000j, -0.-0.5000j])"),
    (elements("complex64", 1j), "tensor(0.+1.j)"),
    (elements("complex128", [1 + 1j]), "tensor([1.+1.j], dtype=torch.complex128)"),
    (
        elements("complex64", [complex(NAN, 1), complex(1, INF), complex(0, -INF)]),
        "tensor([nan+1.j, 1.+infj, 0.-infj])",
    ),
    (elements("complex64", [1e10 + 1j, 1e-5]), "tensor([1.0000e+10+1.j, 1.0000e-05+0.j])"),
    (
        elements("complex64", [1 + 0.25j] * 4, shape=(2, 2)),
        "tensor([[1.+0.2500j, 1.+0.2500j],\n        [1.+0.2500j, 1.+0.2500j]])",
    ),
    (
        elements("complex64", [0j] * 12),
        "tensor([0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j])",
    ),
]

EMPTY = [
    (elements("float32", []), "tensor([])"),
    (elements("float32", [], shape=(2, 0)), "tensor([], size=(2, 0))"),
    (elements("float32", [], shape=(3, 0, 2)), "tensor([], size=(3, 0, 2))"),
    (elements("int64", []), "tensor([], dtype=torch.int64)"),
    (elements("bool", [], shape=(0, 3)), "tensor([], size=(0, 3), dtype=torch.bool)"),
    (elements("float64", [], shape=(0, 0)), "tensor([], size=(0, 0), dtype=torch.float64)"),
    (elements("complex64", []), "tensor([], dtype=torch.complex64)"),
]

DIMENSIONS = [
    (
        elements("float32", range(8), shape=(2, 2, 2)),
        "tensor([[[0., 1.],\n         [2., 3.]],\n\n        [[4., 5.],\n         [6., 7.]]])",
    ),
    (elements("float32", [0.0], shape=(1, 1, 1, 1)), "tensor([[[[0.]]]])"),
    (
        elements("int64", range(4), shape=(2, 1, 2, 1)),
        "tensor([[[[0],\n          [1]]],\n\n\n        [[[2],\n          [3]]]])",
    ),
    (elements("int64", range(4), shape=(4, 1)), "tensor([[0],\n        [1],\n        [2],\n        [3]])"),
    (
        elements("int64", range(16), shape=(2, 2, 2, 2)),
        "tensor([[[[ 0,  1],\n"
        "          [ 2,  3]],\n"
        "\n"
        "         [[ 4,  5],\n"
        "          [ 6,  7]]],\n"
        "\n"
        "\n"
        "        [[[ 8,  9],\n"
        "          [10, 11]],\n"
        "\n"
        "         [[12, 13],\n"
        "          [14, 15]]]])",
    ),
]

WRAPPING = [
    (
        elements("float32", range(30)),
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
        "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,\n"
        "        28., 29.])",
    ),
    (
        elements("int64", range(60), shape=(2, 30)),
        "tensor([[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "         18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29],\n"
        "        [30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,\n"
        "         48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59]])",
    ),
    (
        elements("float64", [0.5] * 9),
        "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000],\n       dtype=torch.float64)",
    ),
    (
        elements("float64", [0.5] * 7),
        "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000],\n       dtype=torch.float64)",
    ),
    (
        elements("float16", [100.0] * 13),
        "tensor([100., 100., 100., 100., 100., 100., 100., 100., 100., 100., 100., 100.,\n        100.], dtype=torch.float16)",
    ),
    (
        elements("complex64", [1.5 + 1.5j] * 10),
        "tensor([1.5000+1.5000j, 1.5000+1.5000j, 1.5000+1.5000j, 1.5000+1.5000j,\n"
        "        1.5000+1.5000j, 1.5000+1.5000j, 1.5000+1.5000j, 1.5000+1.5000j,\n"
        "        1.5000+1.5000j, 1.5000+1.5000j])",
    ),
    (
        elements("float64", [0.0] * 15),
        "tensor([0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.],\n       dtype=torch.float64)",
    ),
]

SUMMARIZED = [
    (elements("int64", range(2000)), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    (
        elements("float32", [0.0] * 2400, shape=(1200, 2)),
        "tensor([[0., 0.],\n"
        "        [0., 0.],\n"
        "        [0., 0.],\n"
        "        ...,\n"
        "        [0., 0.],\n"
        "        [0., 0.],\n"
        "        [0., 0.]])",
    ),
    (
        elements("float32", range(1200), shape=(2, 600)),
        "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 5.9700e+02, 5.9800e+02,\n"
        "         5.9900e+02],\n"
        "        [6.0000e+02, 6.0100e+02, 6.0200e+02,  ..., 1.1970e+03, 1.1980e+03,\n"
        "         1.1990e+03]])",
    ),
    (elements("int64", range(1500), shape=(1, 1500)), "tensor([[   0,    1,    2,  ..., 1497, 1498, 1499]])"),
    (
        elements("int64", range(1200), shape=(2, 8, 75)),
        "tensor([[[   0,    1,    2,  ...,   72,   73,   74],\n"
        "         [  75,   76,   77,  ...,  147,  148,  149],\n"
        "         [ 150,  151,  152,  ...,  222,  223,  224],\n"
        "         ...,\n"
        "         [ 375,  376,  377,  ...,  447,  448,  449],\n"
        "         [ 450,  451,  452,  ...,  522,  523,  524],\n"
        "         [ 525,  526,  527,  ...,  597,  598,  599]],\n"
        "\n"
        "        [[ 600,  601,  602,  ...,  672,  673,  674],\n"
        "         [ 675,  676,  677,  ...,  747,  748,  749],\n"
        "         [ 750,  751,  752,  ...,  822,  823,  824],\n"
        "         ...,\n"
        "         [ 975,  976,  977,  ..., 1047, 1048, 1049],\n"
        "         [1050, 1051, 1052,  ..., 1122, 1123, 1124],\n"
        "         [1125, 1126, 1127,  ..., 1197, 1198, 1199]]])",
    ),
    (
        elements("float32", [1.5] + [1e-9] * 1499 + [2.0]),
        "tensor([1.5000e+00, 1.0000e-09, 1.0000e-09,  ..., 1.0000e-09, 1.0000e-09,\n        2.0000e+00])",
    ),
    (
        elements("float32", [1e-9] + [1.5] * 1500),
        "tensor([1.0000e-09, 1.5000e+00, 1.5000e+00,  ..., 1.5000e+00, 1.5000e+00,\n        1.5000e+00])",
    ),
    (elements("bool", [True] * 1001), "tensor([True, True, True,  ..., True, True, True])"),
    (elements("complex64", [1j] * 1001), "tensor([0.+1.j, 0.+1.j, 0.+1.j,  ..., 0.+1.j, 0.+1.j, 0.+1.j])"),
]

SHORT = [
    (elements("float32", [3.14159, 2.0]), "tensor([3.14, 2.00])"),
    (elements("int64", range(1001)), "tensor([   0,    1,  ...,  999, 1000])"),
]

PRECISION_2_NO_SCI = [
    (elements("float32", [3.14159, 1e-5]), "tensor([3.14, 0.00])"),
    (elements("float32", [1e10, 1.5, NAN]), "tensor([10000000000.00,           1.50,            nan])"),
    (elements("float32", [1e9, 2.0]), "tensor([1000000000.,          2.])"),
]

SCI = [
    (elements("float32", [0.0, 1.5]), "tensor([0.0000e+00, 1.5000e+00])"),
    (elements("float32", [1.0, 2.0]), "tensor([1.0000e+00, 2.0000e+00])"),
    (elements("float32", [0.0, 0.0]), "tensor([0., 0.])"),
    (elements("float32", [NAN, INF]), "tensor([nan, inf])"),
    (elements("float32", 5.0), "tensor(5.0000e+00)"),
    (elements("int64", [5]), "tensor([5])"),
    (elements("complex64", [1 + 2j]), "tensor([1.0000e+00+2.0000e+00j])"),
]

PRECISION_0 = [
    (elements("float32", [1.5, 2.25]), "tensor([2, 2])"),
    (elements("float32", [1.0, 2.0]), "tensor([1., 2.])"),
    (elements("float32", [1e-9, 2.0]), "tensor([1e-09, 2e+00])"),
]

EDGES_2 = [
    (elements("int64", range(6)), "tensor([0, 1,  ..., 4, 5])"),
    (elements("int64", range(5)), "tensor([0, 1, 2, 3, 4])"),
    (elements("int64", range(4)), "tensor([0, 1, 2, 3])"),
    (
        elements("int64", range(24), shape=(4, 6)),
        "tensor([[ 0,  1,  ...,  4,  5],\n"
        "        [ 6,  7,  ..., 10, 11],\n"
        "        [12, 13,  ..., 16, 17],\n"
        "        [18, 19,  ..., 22, 23]])",
    ),
    (
        elements("int64", range(125), shape=(5, 5, 5)),
        "tensor([[[  0,   1,  ...,   3,   4],\n"
        "         [  5,   6,  ...,   8,   9],\n"
        "         ...,\n"
        "         [ 15,  16,  ...,  18,  19],\n"
        "         [ 20,  21,  ...,  23,  24]],\n"
        "\n"
        "        [[ 25,  26,  ...,  28,  29],\n"
        "         [ 30,  31,  ...,  33,  34],\n"
        "         ...,\n"
        "         [ 40,  41,  ...,  43,  44],\n"
        "         [ 45,  46,  ...,  48,  49]],\n"
        "\n"
        "        ...,\n"
        "\n"
        "        [[ 75,  76,  ...,  78,  79],\n"
        "         [ 80,  81,  ...,  83,  84],\n"
        "         ...,\n"
        "         [ 90,  91,  ...,  93,  94],\n"
        "         [ 95,  96,  ...,  98,  99]],\n"
        "\n"
        "        [[100, 101,  ..., 103, 104],\n"
        "         [105, 106,  ..., 108, 109],\n"
        "         ...,\n"
        "         [115, 116,  ..., 118, 119],\n"
        "         [120, 121,  ..., 123, 124]]])",
    ),
]

EDGES_0 = [
    (elements("int64", range(12)), "tensor([...], size=(12,))"),
    (elements("int64", range(3)), "tensor([0, 1, 2], size=(3,))"),
    (elements("int32", range(12), shape=(4, 3)), "tensor([...], size=(4, 3), dtype=torch.int32)"),
    (elements("float32", []), "tensor([])"),
    (elements("int64", 3), "tensor(3, size=())"),
]

NARROW = [
    (elements("int64", range(5)), "tensor([0, 1, 2, 3,\n        4])"),
    (elements("float32", range(6), shape=(2, 3)), "tensor([[0., 1., 2.],\n        [3., 4., 5.]])"),
    (elements("float64", [0.0] * 3), "tensor([0., 0., 0.],\n       dtype=torch.float64)"),
]

NARROWEST = [
    (elements("int64", range(3)), "tensor([0,\n        1,\n        2])"),
    (elements("float64", [0.0] * 2), "tensor([0.,\n        0.],\n       dtype=torch.float64)"),
]


@pytest.mark.parametrize(
    "array, expected",
    [
        *INTEGERS,
        *FLOATS,
        *SCIENTIFIC,
        *NOT_FINITE,
        *COMPLEX,
        *EMPTY,
        *DIMENSIONS,
        *WRAPPING,
        *SUMMARIZED,
    ],
)
def test_text(array, expected):
    assert text_of(array) == expected


OPTIONS = [
    ({"profile": "short"}, SHORT),
    ({"precision": 2, "sci_mode": False}, PRECISION_2_NO_SCI),
    ({"sci_mode": True}, SCI),
    ({"precision": 0}, PRECISION_0),
    ({"threshold": 5, "edgeitems": 2}, EDGES_2),
    ({"threshold": 5, "edgeitems": 0}, EDGES_0),
    ({"linewidth": 20}, NARROW),
    ({"linewidth": 1}, NARROWEST),
]


@pytest.mark.parametrize("options, array, expected", [(o, *case) for o, cases in OPTIONS for case in cases])
def test_text_with_options(options, array, expected):
    set_printoptions(**options)
    assert text_of(array) == expected


def test_threshold_is_the_last_size_that_is_printed_whole():
    assert "..." not in text_of(np.zeros(1000))
    assert "..." in text_of(np.zeros(1001))
    set_printoptions(profile="full")
    assert text_of(np.zeros(5000)).count("0.") == 5000


def test_no_more_than_the_corners_of_a_big_tensor_are_touched():
    # Three million million elements that are one float in memory: copying or scanning them would never end.
    array = np.broadcast_to(np.float32(1.5), (10_000, 10_000, 30_000))
    assert text_of(array).count("1.5000") == 6**3


def test_float8_e8m0fnu_has_no_zero():
    # PyTorch prints its smallest number as 0., which it is not.
    assert text_of(elements("float8_e8m0fnu", [2.0**-127])) == "tensor([5.8775e-39], dtype=torch.float8_e8m0fnu)"


def test_endless_lines():
    set_printoptions(linewidth=INF)
    assert text_of(np.arange(100)).count("\n") == 0


# ---------------------------------------------------------------- random tensors

SHAPES = ((), (1,), (7,), (40,), (0,), (2, 3), (3, 1, 2), (2, 0), (2, 2, 2, 2), (1001,), (8, 8, 20), (25, 3))


def random_values(rng: random.Random, count: int) -> list[float]:
    """Floats of one of the kinds that are printed differently."""
    kind = rng.randrange(7)
    if kind == 0:
        return [float(rng.randint(-100, 100)) for _ in range(count)]
    if kind == 1:
        return [rng.gauss(0, 1) for _ in range(count)]
    if kind == 2:
        return [rng.gauss(0, 1) * 10.0 ** rng.randint(-12, 12) for _ in range(count)]
    if kind == 3:
        return [rng.randint(0, 9) * 10.0 ** rng.randint(0, 10) for _ in range(count)]
    if kind == 4:
        return [rng.choice((NAN, INF, -INF, 0.0, -0.0, 1.0, 0.5)) for _ in range(count)]
    if kind == 5:
        return [rng.choice((1e-4, 9.9999e-5, 1000.0, 1.0, 1e8, 1.00001e8, 0.1, 1001.0, 1e-3)) for _ in range(count)]
    return [rng.random() * 1000 for _ in range(count)]


def random_case(rng: random.Random, name: str) -> tuple[list[complex], tuple[int, ...], dict[str, Any]]:
    """Values for a tensor of the dtype called `name`, its shape, and print options."""
    shape = rng.choice(SHAPES)
    count = math.prod(shape)
    if name.startswith("int"):
        largest = 2 ** (int(name[3:]) - 1) - 1
        top = min(largest, rng.choice((1, 10, 1000, largest)))
        values = [rng.randint(-top, top) for _ in range(count)]
    elif name == "bool":
        values = [rng.random() < 0.5 for _ in range(count)]
    elif name.startswith("complex"):
        values = list(map(complex, random_values(rng, count), random_values(rng, count)))
    else:
        values = random_values(rng, count)
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        options["precision"] = rng.randint(0, 9)
        options["threshold"] = rng.choice((0, 5, 20, 1000))
        options["edgeitems"] = rng.randint(0, 5)
        options["linewidth"] = rng.choice((1, 20, 40, 79, 81, 100, 200))
        options["sci_mode"] = rng.choice((None, None, True, False))
    return values, shape, options


# A checksum over the texts of a hundred random tensors of each dtype.
CHECKSUMS = {
    "bool": 0x76EE7DFA,
    "int8": 0xD9DD8E09,
    "int32": 0x6A350954,
    "int64": 0x6CBAF42A,
    "float16": 0x09DF2026,
    "bfloat16": 0x69F600CA,
    "float32": 0x53F2511F,
    "float64": 0x2BF12257,
    "complex64": 0x29392FAA,
    "complex128": 0x6C138EA1,
}


@pytest.mark.parametrize("name", CHECKSUMS)
def test_random_tensors(name):
    rng = random.Random(name)
    checksum = 0
    for _ in range(100):
        values, shape, options = random_case(rng, name)
        set_printoptions(profile="default")
        set_printoptions(**options)
        checksum = zlib.crc32(text_of(elements(name, values, shape)).encode(), checksum)
    assert checksum == CHECKSUMS[name]


# ---------------------------------------------------------------- what follows the elements

ONES = np.ones(2, np.float32)


@pytest.mark.parametrize(
    "array, arguments, expected",
    [
        (ONES, {"requires_grad": True}, "tensor([1., 1.], requires_grad=True)"),
        (ONES, {"requires_grad": True, "grad_fn_name": "MulBackward0"}, "tensor([1., 1.], grad_fn=<MulBackward0>)"),
        (np.float32(2.0), {"grad_fn_name": "SumBackward0"}, "tensor(2., grad_fn=<SumBackward0>)"),
        (np.zeros((2, 0), np.float32), {"requires_grad": True}, "tensor([], size=(2, 0), requires_grad=True)"),
        (
            np.zeros((2, 0)),
            {"grad_fn_name": "MulBackward0"},
            "tensor([], size=(2, 0), dtype=torch.float64, grad_fn=<MulBackward0>)",
        ),
        (
            np.full(8, 0.5, np.float32),
            {"grad_fn_name": "MulBackward0"},
            "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000],\n       grad_fn=<MulBackward0>)",
        ),
        (ONES, {"class_name": "Sub"}, "Sub([1., 1.])"),
        (np.eye(2, dtype=np.float32), {"class_name": "Sub"}, "Sub([[1., 0.],\n     [0., 1.]])"),
        (np.zeros(2), {"contents": "x"}, "tensor(x, dtype=torch.float64)"),
        (np.zeros((2, 0), np.int64), {"contents": "x"}, "tensor(x, size=(2, 0), dtype=torch.int64)"),
        (ONES, {"contents": "x\nyyy", "requires_grad": True}, "tensor(x\nyyy, requires_grad=True)"),
    ],
)
def test_suffixes(array, arguments, expected):
    assert text_of(np.asarray(array), **arguments) == expected


@pytest.mark.parametrize(
    "place, array, arguments, expected",
    [
        ("cpu:0", ONES, {}, "tensor([1., 1.])"),
        ("npu:0", ONES, {}, "tensor([1., 1.], device='npu:0')"),
        ("npu:0", ONES.astype(np.float64), {}, "tensor([1., 1.], device='npu:0', dtype=torch.float64)"),
        ("meta", np.zeros((2, 3), np.float32), {}, "tensor(..., device='meta', size=(2, 3))"),
        ("meta", np.zeros((2, 3)), {}, "tensor(..., device='meta', size=(2, 3), dtype=torch.float64)"),
        ("meta", np.zeros(2, np.int64), {}, "tensor(..., device='meta', size=(2,), dtype=torch.int64)"),
        ("meta", np.zeros((), np.float32), {}, "tensor(..., device='meta', size=())"),
        ("meta", np.zeros(0, np.float32), {}, "tensor(..., device='meta', size=(0,))"),
        (
            "meta",
            ONES,
            {"grad_fn_name": "MulBackward0"},
            "tensor(..., device='meta', size=(2,), grad_fn=<MulBackward0>)",
        ),
    ],
)
def test_text_on_other_devices(place, array, arguments, expected):
    d = dtypes.from_numpy(array.dtype)
    assert tensor_repr(array, dtype=d, device=device(place), **arguments) == expected


# default dtype -> dtype printed -> whether the text of elements names it
NAMED_DTYPES = {
    "float32": {"float32": False, "float64": True, "float16": True, "complex64": False, "complex128": True},
    "float64": {"float32": True, "float64": False, "float16": True, "complex64": True, "complex128": False},
    "float16": {"float32": True, "float64": True, "float16": False, "complex64": False, "complex128": True},
    "bfloat16": {"float32": True, "float64": True, "float16": True, "complex64": False, "complex128": True},
}


@pytest.mark.parametrize("default", NAMED_DTYPES)
def test_dtypes_that_go_without_saying(default):
    dtypes.set_default_dtype(by_name(default))
    for name, is_named in NAMED_DTYPES[default].items():
        assert ("dtype=" in text_of(elements(name, [0, 0]))) is is_named, name
        assert ("dtype=" in text_of(elements(name, []))) is (name != default), name


def test_elements_are_read_through_strides():
    array = np.arange(6).reshape(2, 3).T[::-1]
    assert text_of(array) == "tensor([[2, 5],\n        [1, 4],\n        [0, 3]])"


# ---------------------------------------------------------------- options


def test_options_and_profiles():
    defaults = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
    assert get_printoptions() == defaults
    set_printoptions(profile="short", precision=7)
    assert get_printoptions() == defaults | {"precision": 7, "edgeitems": 2}
    set_printoptions(profile="full")
    assert get_printoptions() == defaults | {"threshold": math.inf}
    set_printoptions(linewidth=100)
    assert get_printoptions() == defaults | {"threshold": math.inf, "linewidth": 100}
    set_printoptions(profile="default")
    assert get_printoptions() == defaults


def test_sci_mode_lasts_until_the_next_call():
    set_printoptions(sci_mode=True)
    assert get_printoptions()["sci_mode"] is True
    set_printoptions(precision=3)
    assert get_printoptions()["sci_mode"] is None


@pytest.mark.parametrize(
    "options, message",
    [
        ({"profile": "bogus"}, "profile must be one of default, short, full, not 'bogus'"),
        ({"edgeitems": -1, "precision": 2}, "edgeitems must not be negative, got -1"),
        ({"precision": -1}, "precision must not be negative, got -1"),
    ],
)
def test_options_that_make_no_sense_change_nothing(options, message):
    before = get_printoptions()
    with pytest.raises(ValueError, match=message):
        set_printoptions(**options)
    assert get_printoptions() == before
