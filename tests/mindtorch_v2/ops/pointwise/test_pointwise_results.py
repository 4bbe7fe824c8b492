"""Element-wise ops, reductions and scans where dtypes, signs of zero or complex numbers decide: what PyTorch 2.13 answered."""

from __future__ import annotations

from math import inf, nan

import pytest

import mindtorch_v2 as torch

NAMES = {
    "torch": torch,
    "inf": inf,
    "nan": nan,
    "o": torch.ones,
    "t": torch.tensor,
    "byte": torch.tensor([1, 200, 3], dtype=torch.uint8),
    "short": torch.tensor([1, 100, -3], dtype=torch.int8),
    "mask": torch.tensor([True, False, True]),
    "x": torch.arange(12.0).view(3, 4) ** 2,
    "big": torch.tensor([200, 100], dtype=torch.uint8),
}

RESULTS = [
    # numbers that wrap around, and those that may not
    ("torch.add(byte, byte, alpha=-3)", "tensor([254, 112, 250], dtype=torch.uint8)"),
    ("torch.add(byte, 5, alpha=-3)", "tensor([242, 185, 244], dtype=torch.uint8)"),
    ("torch.sub(byte, byte, alpha=-3)", "tensor([ 4, 32, 12], dtype=torch.uint8)"),
    ("torch.rsub(byte, byte, alpha=-3)", "tensor([ 4, 32, 12], dtype=torch.uint8)"),
    ("torch.rsub(byte, 5, alpha=-3)", "tensor([ 8, 93, 14], dtype=torch.uint8)"),
    ("torch.addcmul(byte, byte, byte, value=-3)", "tensor([254, 8, 232], dtype=torch.uint8)"),
    ("torch.where(mask, byte, -1)", "tensor([ 1, 255, 3], dtype=torch.uint8)"),
    ("torch.where(mask, o(3), inf)", "tensor([1., inf, 1.])"),
    ("torch.where(mask, o(3).half(), 1e10)", "tensor([1., inf, 1.], dtype=torch.float16)"),
    ("byte.masked_fill(mask, t(3.))", "tensor([ 3, 200, 3], dtype=torch.uint8)"),
    ("mask.masked_fill(mask, t(3j))", "tensor([ True, False, True])"),
    ("o(3).long().masked_fill(mask, t(3.5))", "tensor([3, 1, 3])"),
    # a remainder of 0 has the sign of the dividend
    ("torch.remainder(t([-2., 2., 3., -3., 0., -0.]), 2)", "tensor([-0., 0., 1., 1., 0., -0.])"),
    ("torch.remainder(t([3., -3., 0., -0., 1.5]), -1.5)", "tensor([0., -0., 0., -0., 0.])"),
    ("torch.remainder(t([3., -3., 0.]), -inf)", "tensor([-inf, -3., 0.])"),
    ("torch.remainder(-2., t([2., -2., 3.]))", "tensor([-0., -0., 1.])"),
    ("t([-2., 3.], dtype=torch.bfloat16) % 2", "tensor([-0., 1.], dtype=torch.bfloat16)"),
    ("t([-2., 3.]).remainder_(2)", "tensor([-0., 1.])"),
    ("-2. % t([2., 3.])", "tensor([-0., 1.])"),
    ("torch.nan_to_num(t([nan, inf]), nan=inf)", "tensor([ inf, 3.4028e+38])"),
    ("torch.nan_to_num(t([nan, inf, -inf]), posinf=-inf)", "tensor([ 0.0000e+00, -inf, -3.4028e+38])"),
    # truth values
    ("torch.pow(t([True, False]), True)", "tensor([ True, False])"),
    ("torch.conj_physical(mask)", "tensor([ True, False, True])"),
    ("mask.clone().conj_physical_()", "tensor([ True, False, True])"),
    ("t(True).sum_to_size(())", "tensor(1)"),
    ("t(3, dtype=torch.uint8).sum_to_size(())", "tensor(3)"),
    # scans stay in the dtype asked for
    ("torch.cumsum(big, 0, dtype=torch.uint8)", "tensor([200, 44], dtype=torch.uint8)"),
    ("torch.cumprod(big, 0, dtype=torch.uint8)", "tensor([200, 32], dtype=torch.uint8)"),
    ("torch.cumsum(big, 0, dtype=torch.int8)", "tensor([-56, 44], dtype=torch.int8)"),
    ("torch.cumsum(big.long(), 0, dtype=torch.int16)", "tensor([200, 300], dtype=torch.int16)"),
    ("torch.diff(o(3), 0, 0, o(2))", "tensor([1., 1., 1.])"),
    ("torch.diff(o(3), 0, append=o(2))", "tensor([1., 1., 1.])"),
    (
        "torch.logcumsumexp(t([1 + 2j, -0.5 + 1j, 2 - 1j, complex(-inf, 0)]), 0)",
        "tensor([1.0000+2.0000j, 1.1277+1.8340j, 1.5136-0.7927j, 1.5136-0.7927j])",
    ),
    ("torch.logcumsumexp(t([complex(inf, 1), complex(nan, 0)]), 0)", "tensor([inf+1.j, nan+nanj])"),
    # a tuple, whatever the spacing
    ("torch.gradient(x[0])", "(tensor([1., 2., 4., 5.]),)"),
    ("torch.gradient(x[0], spacing=2)", "(tensor([0.5000, 1.0000, 2.0000, 2.5000]),)"),
    ("torch.gradient(x[0], spacing=t(2.))", "(tensor([0.5000, 1.0000, 2.0000, 2.5000]),)"),
    ("torch.gradient(x[0], spacing=[torch.arange(4)])", "(tensor([1., 2., 4., 5.]),)"),
    ("torch.gradient(t(3.))", "()"),
    (
        "torch.histogram(o(0), 3)",
        "torch.return_types.histogram( hist=tensor([0., 0., 0.]), bin_edges=tensor([0.0000, 0.3333, 0.6667, 1.0000]))",
    ),
    ("torch.histogram(x, t([0., 50., 121.]), weight=x.view(-1)).hist", "tensor([140., 366.])"),
    ("t([2., 4.]).__rdiv__(1)", "tensor([0.5000, 0.2500])"),
]


@pytest.mark.parametrize(("expression", "expected"), RESULTS, ids=[row[0] for row in RESULTS])
def test_results(expression, expected):
    assert " ".join(repr(eval(expression, NAMES)).split()) == expected


A = [[1 + 2j, -0.5 + 1j], [2 - 1j, 0.3 - 0.7j]]
B = [0.5 - 1j, -1 + 0.25j]
Z = [[1 + 2j, 0j], [2 - 1j, 0.3 - 0.7j]]  # with a zero, by which no derivative may divide

# Gradients of the sum of |result - 0.3|.
GRADIENTS = [
    (
        "torch.add(a, b, alpha=1 - 2j)",
        {"a": [-1 + 0j, -0.3714 + 0.9285j, 0.0665 - 0.9978j, -0.307 + 0.9517j], "b": [1.0621 - 2.8647j, -4.4388 + 0.5234j]},
    ),
    (
        "torch.sub(a, b, alpha=1 - 2j)",
        {
            "a": [0.4819 + 0.8762j, -0.2334 - 0.9724j, 0.9545 + 0.2983j, 0.1671 - 0.9859j],
            "b": [0.9126 - 4.0473j, -3.8504 + 2.0909j],
        },
    ),
    (
        "torch.rsub(a, b, alpha=1 - 2j)",
        {
            "a": [0.5711 + 2.1619j, -0.212 + 2.226j, 1.9476 - 1.0986j, 2.1115 - 0.7358j],
            "b": [-0.929 + 0.7948j, -0.976 + 0.4618j],
        },
    ),
    ("torch.cumprod(a, 1)", {"a": [0.8304 + 1.9439j, -1 + 2j, 1.4746 - 0.9594j, 0.5153 - 2.1759j]}),
    ("torch.cumprod(z, 1)", {"z": [0.3304 + 0.9439j, -1 + 2j, 1.4746 - 0.9594j, 0.5153 - 2.1759j]}),
    ("torch.prod(a)", {"a": [0.7294 + 1.7587j, -1.9387 + 3.2774j, 1.7587 - 0.7294j, 2.5586 - 4.9702j]}),
    ("torch.prod(a, 1)", {"a": [0.5 + 1j, -1 + 2j, 0.6127 - 0.4524j, 0.5153 - 2.1759j]}),
    ("torch.prod(z)", {"z": [0j, -3.3 - 1.9j, 0j, 0j]}),
    ("torch.prod(z, 1)", {"z": [0j, -1 + 2j, 0.6127 - 0.4524j, 0.5153 - 2.1759j]}),
    (
        "torch.ldexp(a, b)",
        {
            "a": [0.5791 + 1.2902j, -0.3515 + 0.3556j, 1.2029 - 0.7437j, -0.2192 - 0.4494j],
            "b": [4.3731 - 0.1056j, 0.5407 - 0.0794j],
        },
    ),
    ("torch.logsumexp(a, 1)", {"a": [0.4896 + 0.7314j, -0.0783 + 0.1801j, 0.7739 - 0.3527j, 0.116 - 0.1033j]}),
    ("torch.logcumsumexp(a, 1)", {"a": [0.82 + 1.6752j, -0.0783 + 0.1801j, 1.6359 - 0.8597j, 0.116 - 0.1033j]}),
    ("torch.renorm(a, 2, 0, 0.5)", {"a": [-0.1315 + 0.0281j, -0.1374 + 0.0065j, -0.0443 - 0.1075j, -0.202 - 0.0596j]}),
    ("torch.renorm(a, 1, 1, 0.5)", {"a": [-0.0785 + 0.0725j, -0.1525 - 0.0092j, -0.0761 - 0.0858j, -0.2685 - 0.0193j]}),
    ("torch.pow(0, a)", {"a": [complex(nan, nan)] * 4}),
]


@pytest.mark.parametrize(("expression", "expected"), GRADIENTS, ids=[row[0] for row in GRADIENTS])
def test_complex_gradients(expression, expected):
    inputs = {name: torch.tensor(values, requires_grad=True) for name, values in (("a", A), ("b", B), ("z", Z))}
    made = eval(expression, {"torch": torch, **inputs})
    (made - 0.3).abs().sum().backward()
    for name, values in expected.items():
        got = inputs[name].grad.flatten().tolist()
        for part in ("real", "imag"):
            assert [getattr(v, part) for v in got] == pytest.approx(
                [getattr(v, part) for v in values], abs=2e-4, nan_ok=True
            ), name


def test_bounds_of_other_shapes_have_gradients():
    x = torch.tensor([[-1.0, 0.5, 3.0], [0.0, 2.0, -2.0]], requires_grad=True)
    low = torch.tensor([-0.5, 1.0, 2.5], requires_grad=True)
    high = torch.tensor([1.0, 0.5, 2.75], requires_grad=True)
    (torch.clamp(x, low, high) * torch.arange(1.0, 7.0).view(2, 3)).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [4, 0, 0]]
    assert low.grad.tolist() == [1, 0, 6]
    assert high.grad.tolist() == [0, 7, 3]


def test_bounds_that_are_larger_than_what_they_bound():
    """Shapes for which PyTorch computes the result, and refuses the gradient."""
    x = torch.tensor([0.0, 2.0], requires_grad=True)
    low, high = torch.tensor([[-1.0], [1.0]], requires_grad=True), torch.tensor([[[3.0]], [[1.5]]], requires_grad=True)
    torch.clamp(x, low, high).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert low.grad.tolist() == [[0], [2]]
    assert high.grad.tolist() == [[[0]], [[2]]]
