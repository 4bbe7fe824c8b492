"""Activations and softmax: values, derivatives and errors as torch has them."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._ops._elementwise import where_true
from mindtorch_v2._ops._erf import erf32, normal_cdf32

_found = importlib.util.spec_from_file_location("network", Path(__file__).with_name("network.py"))
assert _found is not None and _found.loader is not None
network = importlib.util.module_from_spec(_found)
_found.loader.exec_module(network)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("activation"))
def test_activation_like_torch(expression):
    network.check("activation", expression)


@pytest.mark.parametrize("expression", network.expressions("activation_error"))
def test_activation_error_like_torch(expression):
    network.check("activation_error", expression)


def test_erf_is_near_the_truth():
    x = np.linspace(-6, 6, 20001).astype(np.float32)
    truth = np.array([math.erf(v) for v in x.astype(float)])
    assert np.abs(erf32(x) - truth).max() < 5e-7
    below = np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x.astype(float)])
    assert np.abs(normal_cdf32(x) - below).max() < 3e-7


@pytest.mark.parametrize("count", [10, 5000])
@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_masks_stop_what_is_not_finite(count, kind):
    values = np.full(count, np.inf, kind)
    values[::3] = np.nan
    values[1::3] = 2
    mask = np.arange(count) % 3 == 1
    assert np.array_equal(where_true(mask, values), np.where(mask, 2, 0).astype(kind))


@pytest.mark.parametrize("size", [8, 5000])
def test_relu_stops_infinite_gradients(size):
    x = torch.cat([-torch.ones(size), torch.ones(size)]).requires_grad_()
    torch.sqrt(torch.relu(x)).sum().backward()
    assert x.grad[:size].tolist() == [0.0] * size and x.grad[size:].tolist() == [0.5] * size


@pytest.mark.parametrize("columns", [5, 3000])
def test_softmax_of_few_and_many_elements(columns):
    x = torch.sin(torch.arange(4.0 * columns)).view(4, columns) * 30
    for function in (torch.softmax, torch.log_softmax):
        assert torch.allclose(function(x, 1), function(x.double(), 1).float(), atol=1e-5)
        assert torch.allclose(function(x, 1), function(x.t(), 0).t(), atol=1e-5)


def test_rows_far_apart_do_not_disturb_each_other():
    x = torch.tensor([[1000.0, 1000.0], [-1000.0, -1000.0]])
    assert torch.softmax(x, 1).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_random_slopes_lie_between_the_bounds():
    torch.manual_seed(0)
    x = -torch.ones(1000, requires_grad=True)
    y = torch.nn.functional.rrelu(x, 0.1, 0.3, training=True)
    assert -0.3 <= y.min().item() < -0.25 and -0.15 < y.max().item() <= -0.1
