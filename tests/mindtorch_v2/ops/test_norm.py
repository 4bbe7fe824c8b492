"""Normalisation: values, first and second derivatives, and errors as torch has them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import mindtorch_v2 as torch

_found = importlib.util.spec_from_file_location("network", Path(__file__).with_name("network.py"))
assert _found is not None and _found.loader is not None
network = importlib.util.module_from_spec(_found)
_found.loader.exec_module(network)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("norm"))
def test_norm_like_torch(expression):
    network.check("norm", expression)


@pytest.mark.parametrize("expression", network.expressions("norm_error"))
def test_norm_error_like_torch(expression):
    network.check("norm_error", expression)


def test_running_statistics_move_by_the_momentum():
    mean, variance = torch.zeros(2), torch.ones(2)
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    torch.nn.functional.batch_norm(x, mean, variance, training=True, momentum=0.5)
    assert mean.tolist() == [1.0, 10.0]
    assert variance.tolist() == [0.5 + 0.5 * 2, 0.5 + 0.5 * 200]


def test_half_precision_is_normalised_in_float32():
    x = torch.arange(8.0).view(2, 4) * 100
    made = torch.nn.functional.layer_norm(x.bfloat16(), (4,))
    assert made.dtype == torch.bfloat16
    assert torch.allclose(made.float(), torch.nn.functional.layer_norm(x, (4,)), atol=1e-2)


@pytest.mark.parametrize("rows", [3, 3000])
def test_small_and_large_inputs_take_different_ways_to_the_same_result(rows):
    x = torch.sin(torch.arange(rows * 48.0)).view(rows, 48)
    weight, bias = torch.linspace(0.5, 2, 48), torch.linspace(-1, 1, 48)
    plain = torch.nn.functional.layer_norm(x, (48,))
    assert torch.allclose(torch.nn.functional.layer_norm(x, (48,), weight, bias), plain * weight + bias, atol=1e-5)
    assert torch.allclose(plain, torch.nn.functional.layer_norm(x.double(), (48,)).float(), atol=1e-5)


@pytest.mark.parametrize("norm", [
    lambda x, w, b: torch.nn.functional.layer_norm(x, (4,), w, b),
    lambda x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, training=True),
    lambda x, w, b: torch.nn.functional.group_norm(x, 2, w, b),
])
def test_gradients_of_the_parameters_can_be_differentiated_again(norm):
    x = torch.sin(torch.arange(12.0, dtype=torch.float64)).view(3, 4).requires_grad_()
    w = torch.linspace(1, 2, 4, dtype=torch.float64).requires_grad_()
    b = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    to_w, to_b = torch.autograd.grad((norm(x, w, b) ** 2).sum(), (w, b), create_graph=True)
    (analytic,) = torch.autograd.grad((to_w * w.detach()).sum() + to_b.sum(), x)
    step = 1e-6
    for place in range(3):
        sides = []
        for sign in (1, -1):
            moved = x.detach().clone()
            moved.view(-1)[place] += sign * step
            w2, b2 = w.detach().requires_grad_(), b.detach().requires_grad_()
            gw, gb = torch.autograd.grad((norm(moved, w2, b2) ** 2).sum(), (w2, b2))
            sides.append(((gw * w.detach()).sum() + gb.sum()).item())
        assert abs((sides[0] - sides[1]) / (2 * step) - analytic.view(-1)[place].item()) < 1e-5
