"""Draws of distributions: after the same seed the same numbers as PyTorch 2.13, and the same random numbers afterwards."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import distributions as D

T = torch.tensor

# What is drawn, five times; all numbers, to five digits; the uniform number that comes next.
DRAWS = {
    "poisson": (lambda: D.Poisson(3.0), [6, 3, 2, 3, 4], 0.81547),
    "poisson of several rates": (
        lambda: D.Poisson(T([0.0, 0.5, 30.0, 200.0])),
        [0, 2, 39, 213, 0, 0, 31, 198, 0, 0, 32, 198, 0, 0, 33, 187, 0, 0, 30, 202],
        0.83524,
    ),
    "binomial": (lambda: D.Binomial(10, T([0.1, 0.5, 0.9])), [2, 6, 9, 1, 5, 10, 1, 6, 8, 0, 6, 10, 1, 5, 9], 0.023701),
    "binomial of log odds": (
        lambda: D.Binomial(T([3, 1000.0, 50]), logits=T([0.3, 0.1, -2.0])),
        [1, 498, 6, 1, 528, 5, 2, 522, 6, 1, 526, 4, 2, 505, 9],
        0.37556,
    ),
    "gamma": (lambda: D.Gamma(2.0, 1.0), [4.5526, 1.3158, 0.62202, 0.43463, 0.89988], 0.3971),
    "gamma of several shapes": (
        lambda: D.Gamma(T([0.01, 0.5, 1.0, 7.0, 100.0]), T([1.0, 2.0, 3.0, 0.5, 10.0])),
        [
            1.1755e-38,
            0.022075,
            0.35107,
            18.146,
            9.3828,
            1.1755e-38,
            0.10251,
            0.34002,
            15.339,
            11.493,
            6.1785e-13,
            0.023475,
            0.39537,
            7.6391,
            7.9116,
            3.1003e-29,
            0.22441,
            0.31022,
            8.4649,
            9.7029,
            1.1755e-38,
            0.10077,
            0.27342,
            9.0783,
            11.347,
        ],
        0.25604,
    ),
    "beta": (lambda: D.Beta(0.5, 0.5), [0.017565, 0.29571, 0.53228, 0.24529, 0.77717], 0.72624),
    "dirichlet": (
        lambda: D.Dirichlet(torch.ones(3)),
        [
            0.8349,
            0.13169,
            0.033414,
            0.077855,
            0.34747,
            0.57467,
            0.072862,
            0.80672,
            0.12041,
            0.21519,
            0.21457,
            0.57025,
            0.21951,
            0.60987,
            0.17062,
        ],
        0.20382,
    ),
    "student": (
        lambda: D.StudentT(T([1.0, 4.0]), 1.0, 2.0),
        [4.0767, 0.52103, -5.805, 2.0849, -0.99252, -2.6589, 3.5609, 3.5866, -5.1998, -0.079131],
        0.11469,
    ),
    "chi2": (
        lambda: D.Chi2(T([1.0, 5.0])),
        [0.0015787, 1.8843, 0.14471, 7.2982, 1.0034, 7.3046, 0.41005, 5.5272, 1.185, 3.182],
        0.81978,
    ),
    "negative binomial": (lambda: D.NegativeBinomial(T([5.0, 2.0]), T([0.4, 0.8])), [4, 7, 0, 3, 2, 3, 2, 17, 3, 5], 0.020376),
    "mixture": (
        lambda: D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Gamma(T([1.0, 5.0]), T([1.0, 1.0]))),
        [3.4754, 7.3711, 0.19393, 8.46, 3.7943],
        0.81978,
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_and_what_is_drawn_afterwards(name):
    make, drawn, after = DRAWS[name]
    torch.manual_seed(0)
    assert make().sample((5,)).flatten().tolist() == pytest.approx(drawn, rel=1e-4, abs=0)
    assert torch.rand(1).item() == pytest.approx(after, rel=1e-4)


def test_rows_of_an_lkj_factor():
    torch.manual_seed(0)
    made = D.LKJCholesky(3, 1.5).sample((5,))
    assert made[0].flatten().tolist() == pytest.approx([1, 0, 0, 0.15347, 0.98815, 0, -0.2852, -0.48392, 0.82734], rel=1e-4)
    assert torch.rand(1).item() == pytest.approx(0.92174, rel=1e-4)


# Torch approximates these gradients, so that two digits are all that can be compared.
@pytest.mark.parametrize(
    ("make", "parameters", "expected"),
    [
        (D.Gamma, ([0.05, 0.5, 2.0, 50.0], [1.0, 2.0, 3.0, 4.0]), [6.7, 11.0, 15.0, 10.0, -0.23, -4.5, -11.0, -140.0]),
        (D.Dirichlet, ([0.5, 2.0, 7.0],), [-0.91, -0.27, 0.16]),
        (D.Dirichlet, ([[0.2, 1.0], [30.0, 40.0]],), [-2.4, 0.57, -0.031, 0.026]),
        (D.Beta, ([0.3, 2.0, 60.0], [4.0, 0.8, 20.0]), [4.1, 1.9, 0.11, -0.3, -4.8, -0.29]),
        (D.StudentT, ([3.0, 9.0],), [-0.4, -0.28]),
        (D.Chi2, ([3.0, 0.9],), [19.0, 27.0]),
    ],
)
def test_gradients_of_draws(make, parameters, expected):
    parameters = [T(values, requires_grad=True) for values in parameters]
    torch.manual_seed(1)
    drawn = make(*parameters).rsample((4,))
    weights = torch.arange(1.0, drawn.numel() + 1).reshape(drawn.shape)
    grads = torch.autograd.grad((drawn * weights).sum(), parameters)
    assert [value for g in grads for value in g.flatten().tolist()] == pytest.approx(expected, rel=0.06)


def test_many_trials_need_no_more_memory_than_few():
    torch.manual_seed(0)
    drawn = D.Binomial(10**9, T(0.5)).sample((3,))
    assert drawn.dtype is torch.float32
    assert all(abs(value / 10**9 - 0.5) < 1e-3 for value in drawn.tolist())
