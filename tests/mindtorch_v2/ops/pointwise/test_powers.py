"""Integers to integer powers, of which some are negative: what PyTorch 2.13 answered."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


def test_in_place_negative_powers_are_written():
    x = torch.tensor([2, 3, 4])
    assert x.pow_(torch.tensor([2, 2, -1])) is x
    assert x.tolist() == [4, 9, 0]


def test_the_operator_and_a_view():
    x = torch.tensor([-1, 1, 0, -1, 2], dtype=torch.int16)
    x **= torch.tensor([-1, -3, -1, -2, -5], dtype=torch.int16)
    assert x.tolist() == [-1, 1, 0, 1, 0]
    x = torch.tensor([2, 3, 4])
    x[::2].pow_(torch.tensor([-1, 3]))
    assert x.tolist() == [0, 3, 64]


def test_an_out_tensor_and_a_tensor_without_dims():
    out = torch.empty(3, dtype=torch.int64)
    torch.pow(torch.tensor([2, 3, 1]), torch.tensor([-1, 2, -4]), out=out)
    assert out.tolist() == [0, 9, 1]
    x = torch.tensor(3)
    x.pow_(torch.tensor(-1))
    assert x.item() == 0


@pytest.mark.parametrize(
    ("base", "exponents", "expected"), [(2, [-1, 3], [0, 8]), (1, [-1, 2], [1, 1]), (-1, [-1, -2], [-1, 1])]
)
def test_a_number_to_negative_powers(base, exponents, expected):
    assert torch.pow(base, torch.tensor(exponents)).tolist() == expected
