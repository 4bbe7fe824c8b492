"""Where results lie in memory, beside where PyTorch's do: see tests/helpers/layout_table.py."""

from __future__ import annotations

import json

import layout_table
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core.layout import order_of_dims
from mindtorch_v2._dispatch import dispatcher

_WANTED = json.loads(layout_table.TABLE.read_text())
_ROWS = layout_table.rows(torch)


@pytest.mark.parametrize("op", sorted(_ROWS))
@pytest.mark.filterwarnings("ignore")
def test_results_have_the_strides_that_torch_gives_them(op):
    got = {name: layout_table.strides(torch, call) for name, call in _ROWS[op].items()}
    assert {name: one for name, one in got.items() if one != _WANTED[op][name]} == {
        name: one for name, one in _WANTED[op].items() if one != got[name]
    }


@pytest.mark.parametrize(
    ("strides", "order"),
    [
        ([(12, 4, 1)], [2, 1, 0]),
        ([(1, 4, 12)], [0, 1, 2]),
        ([(0, 4, 1)], [2, 1, 0]),  # an expanded dim stays in its place
        ([(0, 1, 4)], [1, 2, 0]),
        ([(1, 2, 8), (12, 4, 1)], [0, 1, 2]),  # the first operand decides
        ([(0, 0, 0), (1, 2, 8)], [0, 1, 2]),  # the second where the first is broadcast
    ],
)
def test_dims_are_ordered_as_torch_iterates(strides, order):
    assert order_of_dims((2, 3, 4), strides) == order


def test_a_result_can_be_viewed_where_torch_can_view_it():
    x, y = torch.ones(3, 4), torch.ones(4, 3)
    assert (y + x.t()).view(-1).shape == (12,)
    assert torch.ones(4).expand(3, 4).clone().view(-1).shape == (12,)
    assert (x.t() * 2 + y).t().view(-1).shape == (12,)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        (x.t() + y).view(-1)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        (x.t() * 2 + y).view(-1)


@pytest.mark.parametrize(
    ("order", "strides"),
    [
        ((0, 2, 1, 3), (24, 6, 24, 1)),
        ((0, 3, 2, 1), (24, 1, 6, 24)),
        ((2, 0, 1, 3), (6, 24, 24, 1)),
        ((3, 2, 1, 0), (1, 6, 24, 24)),
    ],
)
def test_dims_of_one_element_lie_outside_as_in_torch(order, strides):
    x = torch.zeros(1, 1, 4, 12)[:, :, :, ::2].permute(order)
    assert torch.exp(x).stride() == torch.add(x, x).stride() == torch.eq(x, x).stride() == strides
    assert torch.exp(x, out=torch.empty(0)).stride() == strides


@pytest.mark.parametrize(
    ("shape", "orders"),
    [
        ((80, 90), ((1, 0), (0, 1))),
        ((80, 90), ((0, 1), (1, 0))),
        ((4, 8, 20, 30), ((0, 2, 3, 1), (0, 1, 2, 3))),
        ((4, 8, 20, 30), ((3, 1, 2, 0), (0, 2, 3, 1))),
        ((4, 8, 20, 30), ((2, 3, 0, 1), (2, 3, 0, 1))),
    ],
)
@pytest.mark.parametrize("step", [1, 2])
def test_large_operands_that_lie_differently_are_combined_in_the_order_of_the_first(shape, orders, step):
    """Of small ones the result is laid out anew, which takes as long; both agree."""

    def lying(order):
        whole = torch.randn([shape[dim] * (step if place == len(order) - 1 else 1) for place, dim in enumerate(order)])
        return whole[..., ::step].permute([order.index(dim) for dim in range(len(order))])

    first, second = (lying(order) for order in orders)
    small = tuple(slice(0, 2) for _ in shape)
    for op in (torch.add, torch.sub, torch.div, torch.maximum, torch.gt, torch.atan2):
        got, like = op(first, second), op(first[small], second[small])
        assert got.tolist() == op(first.contiguous(), second.contiguous()).tolist()
        by_size = sorted(range(len(shape)), key=got.stride().__getitem__)
        assert by_size == sorted(range(len(shape)), key=like.stride().__getitem__)
        assert got.untyped_storage().nbytes() == got.numel() * got.element_size()


def test_the_result_of_large_operands_is_not_laid_out_anew(monkeypatch):
    def laid_out_anew(*_):
        raise AssertionError("computed in one order of dims and copied to another")

    x, y = torch.randn(80, 90), torch.randn(90, 80)
    monkeypatch.setattr(dispatcher, "like_operands", laid_out_anew)
    assert torch.mul(x.t(), y).stride() == (1, 90)
