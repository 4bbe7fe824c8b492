"""Recurrent layers: values, derivatives and errors as torch has them; one op or many make no difference."""

from __future__ import annotations

import network
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._ops.nn.lstm_layer import get_mkldnn_enabled, set_mkldnn_enabled

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("recurrent"))
def test_recurrent_like_torch(expression):
    network.check("recurrent", expression)


@pytest.mark.parametrize("expression", network.expressions("recurrent_error"))
def test_recurrent_error_like_torch(expression):
    network.check("recurrent_error", expression)


@pytest.fixture
def composed():
    """Layers composed of small ops, though they could be one."""
    before = get_mkldnn_enabled()
    set_mkldnn_enabled(False)
    yield
    set_mkldnn_enabled(before)


def run(options, wanted):
    """Results and gradients of an LSTM whose parameters and input are known."""
    layer = torch.nn.LSTM(3, 5, **options)
    with torch.no_grad():
        for number, parameter in enumerate(layer.parameters()):
            parameter.copy_(torch.sin(torch.arange(float(parameter.numel())) + number).view(parameter.shape) * 0.4)
    x = torch.cos(torch.arange(24.0)).view(4, 2, 3).requires_grad_()
    out, (h, c) = layer(x)
    results = {"out": out, "h": h, "c": c}
    sum(
        (results[name] * torch.linspace(1, 2, results[name].numel()).view(results[name].shape)).sum() for name in wanted
    ).backward()
    return [t.detach() for t in (out, h, c, x.grad, *[p.grad for p in layer.parameters()])]


@pytest.mark.parametrize("wanted", [("out",), ("h",), ("c",), ("out", "h", "c")])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"num_layers": 2}, {"bias": False}, {"batch_first": True}])
def test_one_op_per_layer_equals_many(options, wanted, request):
    single = run(options, wanted)
    request.getfixturevalue("composed")
    for one, many in zip(single, run(options, wanted), strict=True):
        assert torch.allclose(one, many, atol=1e-5)


def test_a_second_derivative_needs_the_layer_composed(composed):
    layer = torch.nn.LSTM(2, 3)
    x = torch.ones(2, 1, 2, requires_grad=True)
    (g,) = torch.autograd.grad(layer(x)[0].sum(), x, create_graph=True)
    g.sum().backward()
    assert bool((layer.weight_hh_l0.grad != 0).any())


def test_parts_of_an_unsafe_split_are_changed_without_each_other():
    x = torch.ones(2, 4, requires_grad=True)
    first, second = torch.unsafe_chunk(x * 2, 2, 1)
    first.sigmoid_()
    (first.sum() + (second * second).sum()).backward()
    assert x.grad[0, 2:].tolist() == [8.0, 8.0]
