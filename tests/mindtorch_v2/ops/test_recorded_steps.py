"""What a recording shows of numbers and data that become tensors: torch's own steps, and the numbers themselves."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

ONES = torch.ones(2)
MASK = ONES > 0
WHERE = ["aten::where", ">aten::scalar_tensor", ">aten::to", ">aten::where"]
TENSOR = ["aten::empty", "aten::to", "aten::lift_fresh"]


def _tree(prof):
    lines = []
    for event in prof.events():
        depth, parent = 0, event.cpu_parent
        while parent is not None:
            depth, parent = depth + 1, parent.cpu_parent
        lines.append(">" * depth + event.name)
    return lines


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: torch.tensor([1.0, 2.0]), [*TENSOR, "aten::detach_"]),
        (lambda: torch.tensor(1.0), [*TENSOR, "aten::detach_"]),
        (lambda: ONES.new_tensor([1.0]), [*TENSOR, "aten::detach_"]),
        (lambda: torch.as_tensor([1.0]), TENSOR),
        (lambda: torch.Tensor([1.0]), TENSOR),
        (lambda: torch.from_numpy(np.ones(2)), ["aten::lift_fresh"]),
        (lambda: torch.as_tensor(np.ones(2)), ["aten::lift_fresh", "aten::to"]),
        (lambda: torch.ones(2).detach_(), ["aten::ones", ">aten::empty", ">aten::fill_", "aten::detach_"]),
        (lambda: torch.where(MASK, ONES, 0.0), WHERE),
        (lambda: torch.where(MASK, 0, ONES), WHERE),
        (lambda: torch.where(MASK, 1.0, 2.0), ["aten::where", ">aten::scalar_tensor", ">aten::scalar_tensor", ">aten::where"]),
    ],
)
def test_steps(call, expected):
    quiet = call()
    with profile() as prof:
        made = call()
    assert _tree(prof) == expected
    assert made.dtype is quiet.dtype and torch.equal(made, quiet)


def test_where_with_a_number_keeps_its_history():
    x = torch.ones(2, requires_grad=True)
    with profile():
        torch.where(MASK, x, 0.0).sum().backward()
    assert x.grad.tolist() == [1, 1]


LIKE = [">aten::empty_like", ">>aten::empty_strided"]
NEW = [">aten::new_empty", ">>aten::empty"]
GENERATOR = torch.Generator()


@pytest.mark.parametrize(
    ("call", "inner"),
    [
        (lambda: torch.zeros(2), [">aten::empty", ">aten::zero_"]),
        (lambda: torch.ones(2, dtype=torch.int8), [">aten::empty", ">aten::fill_"]),
        (lambda: torch.full((2,), 3), [">aten::empty", ">aten::fill_"]),
        (lambda: torch.rand(20), [">aten::empty", ">aten::uniform_"]),
        (lambda: torch.rand(2, generator=GENERATOR.manual_seed(3)), [">aten::empty", ">aten::uniform_"]),
        (lambda: torch.randn(3), [">aten::empty", ">aten::normal_"]),
        (lambda: torch.randn(30, requires_grad=True), [">aten::empty", ">aten::normal_"]),
        (lambda: torch.randint(9, (4,)), [">aten::empty", ">aten::random_"]),
        (lambda: torch.randint(3, 9, (4,), generator=GENERATOR.manual_seed(3)), [">aten::empty", ">aten::random_"]),
        (lambda: torch.zeros_like(ONES), [*LIKE, ">aten::zero_"]),
        (lambda: torch.ones_like(ONES, requires_grad=True), [*LIKE, ">aten::fill_"]),
        (lambda: torch.full_like(ONES, 2), [*LIKE, ">aten::fill_"]),
        (lambda: torch.rand_like(ONES), [*LIKE, ">aten::uniform_"]),
        (lambda: torch.randn_like(ONES), [*LIKE, ">aten::normal_"]),
        (lambda: ONES.new_zeros(2), [*NEW, ">aten::zero_"]),
        (lambda: ONES.new_ones(2), [*NEW, ">aten::fill_"]),
        (lambda: ONES.new_full((2,), 5.0), [*NEW, ">aten::fill_"]),
    ],
)
@pytest.mark.parametrize("options", [{}, {"record_shapes": True, "profile_memory": True}])
def test_factories_show_the_ops_that_fill_memory(call, inner, options):
    torch.manual_seed(1)
    quiet = call()
    torch.manual_seed(1)
    with profile(**options) as prof:
        made = call()
    assert [line for line in _tree(prof) if "[memory]" not in line][1:] == inner
    assert made.dtype is quiet.dtype and made.stride() == quiet.stride() and torch.equal(made, quiet)
    assert made._version == quiet._version == 0 and made.requires_grad == quiet.requires_grad


@pytest.mark.parametrize("shape", [(4, 3), (2, 1, 3), (0, 2)])
@pytest.mark.parametrize("format_", [torch.preserve_format, torch.contiguous_format])
def test_memory_like_a_tensor_lies_as_without_a_recording(shape, format_):
    model = torch.ones(shape).transpose(0, -1)
    with profile():
        strides = torch.empty_like(model, memory_format=format_).stride()
    assert strides == torch.empty_like(model, memory_format=format_).stride()


@pytest.mark.parametrize("call", [lambda: torch.zeros(-1), lambda: torch.ones(-1), lambda: ONES.new_zeros(-2)])
def test_factories_refuse_as_without_a_recording(call):
    with pytest.raises(RuntimeError) as quiet:
        call()
    with profile(), pytest.raises(RuntimeError) as recorded:
        call()
    assert str(recorded.value) == str(quiet.value)


def test_factories_in_inference_mode():
    with profile(), torch.inference_mode():
        made = torch.ones(2)
    assert made.is_inference() and made.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: ONES > 0, [None, 0]),
        (lambda: ONES == 1, [None, 1]),
        (lambda: ONES != 1.5, [None, 1.5]),
        (lambda: ONES.clone().lt_(2), [None, 2]),
        (lambda: ONES.remainder(2), [None, 2]),
        (lambda: 3 - ONES, [None, 3, 1]),
        (lambda: ONES + 1, [None, None, 1]),  # torch has no form of its own for a number there
        (lambda: ONES > ONES, [None, None]),
    ],
)
def test_numbers_are_known(call, expected):
    with profile(record_shapes=True) as prof:
        call()
    assert prof.events()[-1].concrete_inputs == expected
