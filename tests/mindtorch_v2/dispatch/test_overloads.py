"""Choosing overloads: by types where they decide, by values where they do not."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


def test_a_zero_dim_tensor_does_not_decide_for_tensors_of_other_shapes():
    torch.zeros(2).fill_(torch.tensor(3.0))
    with pytest.raises(RuntimeError, match="only supports 0-dimension"):
        torch.zeros(2).fill_(torch.ones(2))


def test_a_zero_dim_tensor_stands_for_a_number_where_no_overload_takes_it():
    assert torch.arange(torch.tensor(3)).tolist() == [0, 1, 2]


def test_writing_a_tensor_keeps_its_gradient():
    value = torch.tensor(2.0, requires_grad=True)
    made = torch.zeros(3).clone()
    made.fill_(value)
    made.sum().backward()
    assert value.grad.item() == 3.0


@pytest.mark.parametrize("args", [("a",), (1, 2, 3, 4)])
def test_calls_that_fit_no_overload_are_refused_with_the_forms_that_exist(args):
    with pytest.raises(TypeError, match=r"max\(\) received an invalid combination of arguments"):
        torch.max(torch.ones(2), *args)


def test_writing_into_shared_places_is_refused_in_torchs_words():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        torch.ones(1, 3).expand(2, 3).add_(1)
