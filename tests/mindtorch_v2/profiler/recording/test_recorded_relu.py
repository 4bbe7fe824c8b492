"""relu in a recording: torch's tree, one kernel, and the same numbers, history and errors as without a recording."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F
from mindtorch_v2.profiler import profile

WAYS = {
    "torch.relu": (lambda x: torch.relu(x), "aten::relu", "aten::clamp_min"),
    "Tensor.relu": (lambda x: x.relu(), "aten::relu", "aten::clamp_min"),
    "F.relu": (lambda x: F.relu(x), "aten::relu", "aten::clamp_min"),
    "torch.relu_": (lambda x: torch.relu_(x), "aten::relu_", "aten::clamp_min_"),
    "F.relu(inplace=True)": (lambda x: F.relu(x, inplace=True), "aten::relu_", "aten::clamp_min_"),
    "nn.ReLU": (lambda x: torch.nn.ReLU()(x), "aten::relu", "aten::clamp_min"),
}


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_the_tree_is_torchs(way, requires_grad):
    call, outer, inner = WAYS[way]
    x = torch.randn(4, 8, requires_grad=requires_grad)
    y = x.clone() if requires_grad else x
    with profile(record_shapes=True, profile_memory=True) as prof:
        result = call(y)
    parent, child = (event for event in prof.events() if event.name.startswith("aten::"))
    assert [parent.name, child.name, child.cpu_parent] == [outer, inner, parent]
    assert (child.input_shapes, child.concrete_inputs, child.sequence_nr) == ([[4, 8], []], [None, 0], -1)
    assert parent.self_cpu_memory_usage == 0
    assert child.self_cpu_memory_usage == (0 if inner.endswith("_") else 128)
    assert result.requires_grad is requires_grad
    assert y._version == (1 if outer.endswith("_") else 0)
    if requires_grad:
        assert result.grad_fn.name() == "ReluBackward0"
        result.sum().backward()
        assert torch.equal(x.grad, (x > 0).float())


def test_a_history_of_a_recording_is_that_of_relu_alone():
    x = torch.randn(3, requires_grad=True)
    y = x * 2
    with profile():
        y.relu_()
        z = x.relu()
    for node, inner in ((y.grad_fn, "MulBackward0"), (z.grad_fn, "AccumulateGrad")):
        assert node.name() == "ReluBackward0" and inner in node.next_functions[0][0].name()
    with torch.no_grad(), profile():
        assert x.relu().grad_fn is None


@pytest.mark.parametrize("count", [0, 7, 5000])
@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16", "int8", "int64"])
def test_a_recorded_program_has_the_same_numbers(kind, count):
    x = (torch.randn(count) * 3).to(getattr(torch, kind))
    if count and x.is_floating_point():
        x[:5] = torch.tensor([-0.0, 0.0, float("nan"), float("inf"), -float("inf")])
    plain, written = torch.relu(x), x.clone()
    with profile():
        recorded = torch.relu(x)
        written.relu_()
    for other in (recorded, written):
        assert other.dtype is plain.dtype
        assert other.view(torch.uint8).tolist() == plain.view(torch.uint8).tolist()  # to the bit


@pytest.mark.parametrize("kind", [torch.bool, torch.complex64])
def test_errors_are_the_same(kind):
    messages = []
    for recording in (False, True):
        with profile() if recording else torch.no_grad(), pytest.raises(RuntimeError) as caught:
            torch.relu(torch.zeros(2, dtype=kind))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_results_lie_in_memory_as_without_a_recording():
    turned = torch.randn(3, 4).t()
    with profile():
        recorded = turned.relu()
    assert recorded.stride() == turned.relu().stride() == (1, 4)


@pytest.mark.parametrize(
    "options", [{}, {"record_shapes": True}, {"with_stack": True}, {"profile_memory": True, "with_modules": True}]
)
def test_the_inner_op_lies_within_the_outer_one_whatever_is_recorded(options):
    x, module = torch.randn(4, 8), torch.nn.ReLU()
    with profile(**options) as prof:
        for _ in range(3):
            module(x)
    ops = [event for event in prof.events() if event.name.startswith("aten::")]
    assert [event.name for event in ops] == ["aten::relu", "aten::clamp_min"] * 3
    for outer, inner in zip(ops[::2], ops[1::2], strict=True):
        assert inner.cpu_parent is outer
        assert outer.time_range.start <= inner.time_range.start <= inner.time_range.end <= outer.time_range.end
