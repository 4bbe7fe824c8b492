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
        (lambda: torch.ones(2).detach_(), ["aten::ones", "aten::detach_"]),
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
