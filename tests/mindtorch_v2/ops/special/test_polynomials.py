"""Orthogonal polynomials: what PyTorch 2.13 answered."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

import mindtorch_v2 as torch

POINTS = (-2, -1, -0.5, 0, 0.25, 0.5, 1, 1.5)
# Orders -1 and 0 are 0 and 1 everywhere; 1, 2, 3, 7 and 11 are these.
VALUES = {
    "chebyshev_polynomial_t": {
        1: (-2, -1, -0.5, 0, 0.25, 0.5, 1, 1.5),
        2: (7, 1, -0.5, -1, -0.875, -0.5, 1, 3.5),
        3: (-26, -1, 1, 0, -0.6875, -1, 1, 9),
        7: (-5042, -1, -0.5, 0, -0.98046875, 0.5, 1, 421.5),
        11: (-978122, -1, -0.5, 0, -0.354248046875, 0.5, 1, 19801.5),
    },
    "chebyshev_polynomial_u": {
        1: (-4, -2, -1, 0, 0.5, 1, 2, 3),
        2: (15, 3, 0, -1, -0.75, 0, 3, 8),
        3: (-56, -4, 1, 0, -0.875, -1, 4, 21),
        7: (-10864, -8, -1, 0, -0.9296875, 1, 8, 987),
        11: (-2107560, -12, 0, 0, -0.11279296875, 0, 12, 46368),
    },
    "chebyshev_polynomial_v": {
        1: (-5, -3, -2, -1, -0.5, 0, 1, 2),
        2: (19, 5, 1, -1, -1.25, -1, 1, 5),
        3: (-71, -7, 1, 1, -0.125, -1, 1, 13),
        7: (-13775, -15, -2, 1, -1.1328125, 0, 1, 610),
        11: (-2672279, -23, 1, 1, -1.07861328125, 1, 1, 28657),
    },
    "chebyshev_polynomial_w": {
        1: (-3, -1, 0, 1, 1.5, 2, 3, 4),
        2: (11, 1, -1, -1, -0.25, 1, 5, 11),
        3: (-41, -1, 1, -1, -1.625, -1, 7, 29),
        7: (-7953, -1, 0, -1, -0.7265625, 2, 15, 1364),
        11: (-1542841, -1, -1, -1, 0.85302734375, -1, 23, 64079),
    },
    "shifted_chebyshev_polynomial_t": {
        1: (-5, -3, -2, -1, -0.5, 0, 1, 2),
        2: (49, 17, 7, 1, -0.5, -1, 1, 7),
        3: (-485, -99, -26, -1, 1, 0, 1, 26),
        7: (-4656965, -114243, -5042, -1, -0.5, 0, 1, 5042),
        11: (-44716177445, -131836323, -978122, -1, -0.5, 0, 1, 978122),
    },
    "shifted_chebyshev_polynomial_u": {
        1: (-10, -6, -4, -2, -1, 0, 2, 4),
        2: (99, 35, 15, 3, 0, -1, 3, 15),
        3: (-980, -204, -56, -4, 1, 0, 4, 56),
        7: (-9409960, -235416, -10864, -8, -1, 0, 8, 10864),
        11: (-90354434940, -271669860, -2107560, -12, 0, 0, 12, 2107560),
    },
    "shifted_chebyshev_polynomial_v": {
        1: (-11, -7, -5, -3, -2, -1, 1, 3),
        2: (109, 41, 19, 5, 1, -1, 1, 11),
        3: (-1079, -239, -71, -7, 1, 1, 1, 41),
        7: (-10360559, -275807, -13775, -15, -2, 1, 1, 7953),
        11: (-99482086439, -318281039, -2672279, -23, 1, 1, 1, 1542841),
    },
    "shifted_chebyshev_polynomial_w": {
        1: (-9, -5, -3, -1, 0, 1, 3, 5),
        2: (89, 29, 11, 1, -1, -1, 5, 19),
        3: (-881, -169, -41, -1, 1, -1, 7, 71),
        7: (-8459361, -195025, -7953, -1, 0, -1, 15, 13775),
        11: (-81226783441, -225058681, -1542841, -1, -1, -1, 23, 2672279),
    },
    "hermite_polynomial_h": {
        1: (-4, -2, -1, 0, 0.5, 1, 2, 3),
        2: (14, 2, -1, -2, -1.75, -1, 2, 7),
        3: (-40, 4, 5, 0, -2.875, -5, -4, 9),
        7: (3104, -464, 461, 0, -368.8046875, -461, 464, 801),
        11: (121216, -230848, 107029, 0, -133371.77685546875, -107029, 230848, -312903),
    },
    "hermite_polynomial_he": {
        1: (-2, -1, -0.5, 0, 0.25, 0.5, 1, 1.5),
        2: (3, 0, -0.75, -1, -0.9375, -0.75, 0, 1.25),
        3: (-2, 2, 1.375, 0, -0.734375, -1.375, -2, -1.125),
        7: (-86, 20, 40.0234375, 0, -24.62982177734375, -40.0234375, -20, 54.4921875),
        11: (3342, -936, 3240.81005859375, 0, -2334.7542378902435, -3240.81005859375, 936, 5141.87841796875),
    },
    "laguerre_polynomial_l": {
        1: (3, 2, 1.5, 1, 0.75, 0.5, 0, -0.5),
        2: (7, 3.5, 2.125, 1, 0.53125, 0.125, -0.5, -0.875),
        3: (
            14.333333333333334,
            5.666666666666667,
            2.8958333333333335,
            1,
            0.3411458333333333,
            -0.14583333333333334,
            -0.6666666666666666,
            -0.6875,
        ),
        7: (
            133.24761904761903,
            25.9765873015873,
            7.950934709821428,
            1,
            -0.17936775570824035,
            -0.5183392237103176,
            -0.040476190476190554,
            0.5987583705357143,
        ),
        11: (
            746.7759948693281,
            85.31138974066056,
            17.8027413588012,
            1,
            -0.4108336057058042,
            -0.31390729875122675,
            0.4801341790925123,
            0.22542592928007057,
        ),
    },
    "legendre_polynomial_p": {
        1: (-2, -1, -0.5, 0, 0.25, 0.5, 1, 1.5),
        2: (5.5, 1, -0.125, -0.5, -0.40625, -0.125, 1, 2.875),
        3: (-17, -1, 0.4375, 0, -0.3359375, -0.4375, 1, 6.1875),
        7: (-2199.125, -1, -0.22314453125, 0, -0.2799186706542969, 0.22314453125, 1, 192.37646484375),
        11: (-342139.5546875, -1, -0.06387138366699219, 0, -0.05517664272338152, 0.06387138366699219, 1, 7237.164224624634),
    },
}
CASES = [(name, order) for name, orders in VALUES.items() for order in orders]


def polynomial(name: str) -> Any:
    return getattr(torch.special, name)


@pytest.mark.parametrize(("name", "order"), CASES)
def test_values(name: str, order: int) -> None:
    expected = VALUES[name][order]
    wide = polynomial(name)(torch.tensor(POINTS, dtype=torch.float64), order)
    assert wide.dtype is torch.float64
    assert wide.tolist() == pytest.approx(expected, rel=1e-13, abs=1e-14)
    assert polynomial(name)(torch.tensor(POINTS), order).tolist() == pytest.approx(expected, rel=1e-5, abs=5e-6)


@pytest.mark.parametrize("name", VALUES)
def test_orders_below_one(name: str) -> None:
    x = torch.tensor([-inf, -1.0, 0.3, inf, nan])
    for order, value in ((-7, 0.0), (-1, 0.0), (0, 1.0)):
        assert polynomial(name)(x, order).tolist() == [value] * 5


@pytest.mark.parametrize("name", VALUES)
def test_orders_may_be_tensors_and_are_cut_to_integers(name: str) -> None:
    function = polynomial(name)
    x = torch.tensor([[0.25], [1.5]], dtype=torch.float64)
    orders = torch.tensor([-1, 0, 1, 3.7, 7, nan, inf], dtype=torch.float64)
    made = function(x, orders)
    assert made.shape == (2, 7)
    for row, at in ((0, 4), (1, 7)):
        v = VALUES[name]
        assert made[row].tolist() == pytest.approx([0, 1, v[1][at], v[3][at], v[7][at], 0, 0], rel=1e-13)
    assert function(0.25, torch.tensor([1, 3])).tolist() == pytest.approx([VALUES[name][1][4], VALUES[name][3][4]], rel=1e-5)
    assert function(x=x, n=2.9).tolist() == function(x, 2).tolist()


@pytest.mark.parametrize("name", VALUES)
def test_operands(name: str) -> None:
    function = polynomial(name)
    assert function(torch.tensor([1, 2]), 2).dtype is torch.float32
    assert function(2.0, torch.tensor([1], dtype=torch.int32)).dtype is torch.float32
    assert function(torch.ones(2), torch.tensor(3.0, dtype=torch.float64)).dtype is torch.float32
    assert not function(torch.ones(2, requires_grad=True), 2).requires_grad  # torch has no derivative either
    assert function(torch.ones(0, 3), 4).shape == (0, 3)
    out = torch.empty(2)
    assert function(torch.full((2,), 0.25), 3, out=out) is out and out[0].item() == pytest.approx(VALUES[name][3][4])
    for dtype, word in ((torch.float16, "Half"), (torch.bfloat16, "BFloat16"), (torch.complex64, "ComplexFloat")):
        with pytest.raises(NotImplementedError, match=f"\"{name}_cpu\" not implemented for '{word}'"):
            function(torch.ones(1, dtype=dtype), 2)
    with pytest.raises(TypeError, match=r"received an invalid combination of arguments - got \(int, int\)"):
        function(2, 3)
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(2\) must match the size of tensor b \(3\)"):
        function(torch.ones(2), torch.ones(3))


def test_what_overflows_is_nan() -> None:
    x = torch.tensor([-2.0, 0.0, 2.0])
    for name in ("hermite_polynomial_h", "hermite_polynomial_he"):
        assert polynomial(name)(x, 200).isnan().all()
        assert not polynomial(name)(x.double(), 200).isnan().any()
        assert polynomial(name)(x.double(), 10**9).isnan().all()  # and does not count that far
    assert polynomial("legendre_polynomial_p")(x[::2], 200).isnan().all()


def test_chebyshev_polynomials_of_high_order_are_as_quick() -> None:
    x = torch.tensor([-1.0, 0.25, 1.0], dtype=torch.float64)
    for kind, low, high in (("t", 1, 1), ("u", 1000001, 1000001), ("v", 2000001, 1), ("w", 1, 2000001)):
        made = polynomial(f"chebyshev_polynomial_{kind}")(x, 1000000).tolist()
        assert (made[0], made[2]) == (low, high) and abs(made[1]) < 2
    assert polynomial("chebyshev_polynomial_t")(x, 1000000)[1].item() == pytest.approx(-0.37761341017153427, abs=1e-9)
