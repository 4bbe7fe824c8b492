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


@pytest.mark.parametrize("shape", [(40, 999), (3, 8, 4096), (70001,)])
def test_products_of_many_factors(shape):
    torch.manual_seed(0)
    x = 2 ** (torch.rand(shape) / 50 - 0.01)
    torch.testing.assert_close(x.prod(-1), x.double().prod(-1).float(), rtol=1e-5, atol=0)
    torch.testing.assert_close(x.prod(-1, True), x.prod(-1).unsqueeze(-1), rtol=0, atol=0)
    torch.testing.assert_close(x.prod(), x.double().prod().float(), rtol=1e-4, atol=0)
    signs = torch.where(x > 1, 1.0, -1.0)
    assert (signs.prod(-1) == 1 - 2 * ((signs < 0).sum(-1) % 2)).all()
    signs[..., -1] = 0
    assert (signs.prod(-1) == 0).all() and signs.prod() == 0
    signs[..., 5] = torch.nan
    assert signs.prod(-1).isnan().all() and signs.prod().isnan()
