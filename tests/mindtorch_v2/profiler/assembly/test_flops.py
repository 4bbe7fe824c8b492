"""FLOPs: every op with arithmetic has a formula, and what has none is named."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2.profiler import profile

x = torch.ones(4, 6)
image = torch.ones(2, 3, 8, 8)


def counted(work):
    with profile(with_flops=True) as prof:
        work()
    return {row.key: row.flops for row in prof.key_averages() if row.flops}


@pytest.mark.parametrize(
    "work, expected",
    [
        (lambda: x.sum(), {"aten::sum": 24}),
        (lambda: x.mean(0), {"aten::mean": 24}),
        (lambda: torch.softmax(x, 1), {"aten::_softmax": 96}),
        (lambda: F.layer_norm(x, (6,)), {"aten::native_layer_norm": 192}),
        (lambda: x.tanh_(), {"aten::tanh_": 24}),
        (lambda: F.linear(x, torch.ones(5, 6)), {"aten::mm": 240}),
        (lambda: x == x, {}),
        (lambda: x.t(), {}),
    ],
)
def test_counts(work, expected):
    assert counted(work) == expected


def test_a_convolution_is_counted_once_forward_and_twice_backward():
    weight = torch.ones(5, 3, 3, 3, requires_grad=True)
    flops = counted(lambda: F.conv2d(image, weight).sum().backward())
    forward = 2 * (2 * 5 * 6 * 6) * (3 * 3 * 3)
    assert flops["aten::conv2d"] == forward and flops["aten::convolution_backward"] == 2 * forward
    assert not {"aten::convolution", "aten::_convolution"} & set(flops)


def test_what_an_op_with_a_formula_calls_is_not_missing():
    weight = torch.ones(5, 3, 3, 3)
    with profile(with_flops=True) as prof:
        F.conv2d(image, weight)
        x.view(24)
    assert prof.ops_without_flops() == ["aten::view"]
