"""Second derivatives that keep a graph, through several layers whose backward op is differentiated as a composition of ops."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn


def _norms(x):
    weight = torch.arange(16.0, dtype=torch.float64).reshape(4, 4).sin()
    return F.layer_norm(F.layer_norm(x, (4,)).pow(2) @ weight, (4,)).pow(3)


def _groups(x):
    return F.group_norm(F.group_norm(x, 2).pow(2), 1).pow(3)


def _batches(x):
    normal = F.batch_norm(x, None, None, training=True)
    return F.batch_norm(normal.pow(2), None, None, training=True).pow(3)


@pytest.mark.parametrize("function", [_norms, _groups, _batches])
def test_a_kept_graph_does_not_change_second_derivatives(function) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    loss = first.pow(2).sum()
    (kept,) = torch.autograd.grad(loss, x, create_graph=True)
    (plain,) = torch.autograd.grad(loss, x)
    assert torch.allclose(kept, plain)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("order", [2, 3])
def test_lstm_layers_that_are_single_ops_can_be_differentiated_again(bidirectional: bool, order: int) -> None:
    torch.manual_seed(0)
    net, data = nn.LSTM(3, 4, 2, bidirectional=bidirectional), torch.rand(5, 2, 3)

    def derivatives():
        x = data.clone().requires_grad_()
        output, (h, c) = net(x)
        value = output.pow(2).sum() + h.sum() + c.pow(3).sum()
        for _ in range(order):
            (grad,) = torch.autograd.grad(value, x, create_graph=True)
            value = grad.pow(2).sum()
        return [grad, *torch.autograd.grad(value, list(net.parameters()))]

    single = derivatives()
    torch._C._set_mkldnn_enabled(False)
    try:
        composed = derivatives()
    finally:
        torch._C._set_mkldnn_enabled(True)
    for a, b in zip(single, composed, strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5)
