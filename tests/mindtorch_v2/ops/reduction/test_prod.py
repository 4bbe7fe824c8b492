"""Second derivatives of products, whatever is 0 among the factors."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


@pytest.mark.parametrize(
    "factors, second",
    [
        ([2.0, 3.0, 4.0], [17.0, 10.0, 7.0]),
        ([0.0, 3.0, 4.0], [17.0, 4.0, 3.0]),
        ([0.0, 0.0, 4.0], [8.0, 4.0, 0.0]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ],
)
def test_second_derivatives_of_a_product(factors, second):
    x = torch.tensor(factors, requires_grad=True)
    (once,) = torch.autograd.grad(x.prod(), x, create_graph=True)
    assert once.requires_grad
    (twice,) = torch.autograd.grad((once * torch.tensor([1.0, 2.0, 3.0])).sum(), x)
    torch.testing.assert_close(twice, torch.tensor(second))
