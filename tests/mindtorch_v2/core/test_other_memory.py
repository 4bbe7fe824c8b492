"""Tensors that are given other memory: `set_` and `.data = ` keep the count of versions, which base and views share."""

from __future__ import annotations

import copy
import pickle

import pytest

import mindtorch_v2 as torch


def counts(*tensors: torch.Tensor) -> list[int]:
    return [tensor._version for tensor in tensors]


def test_set_counts_in_the_tensor_and_not_in_its_source():
    x, y = torch.ones(3), torch.zeros(2)
    x.add_(1)
    x.set_(y)
    assert counts(x, y) == [2, 0] and x.tolist() == [0.0, 0.0]
    x.add_(1)
    y.add_(1)
    assert counts(x, y) == [3, 1] and y.tolist() == [2.0, 2.0]
    assert x.untyped_storage() == y.untyped_storage() and x.untyped_storage()._cdata == y.untyped_storage()._cdata


@pytest.mark.parametrize(
    "source", [lambda y: (y.untyped_storage(),), lambda y: (y.untyped_storage(), 0, (2,), (1,)), lambda y: ()]
)
def test_each_form_of_set_counts_in_the_tensor(source):
    x, y = torch.ones(3), torch.zeros(2)
    x.set_(*source(y))
    assert counts(x, y) == [1, 0]


def test_a_view_on_other_memory_stays_a_view_and_counts_with_its_base():
    x, y = torch.ones(3), torch.zeros(2)
    view = x[1:]
    view.set_(y)
    assert view._base is x and view.tolist() == [0.0, 0.0] and counts(x, y, view) == [1, 0, 1]
    view.add_(1)
    x.add_(1)
    assert counts(x, y, view) == [3, 0, 3] and x.tolist() == [2.0] * 3 and y.tolist() == [1.0] * 2


def test_a_base_on_other_memory_counts_with_its_views():
    x, y = torch.ones(3), torch.zeros(2)
    view = x[1:]
    x.set_(y)
    view.add_(1)
    assert counts(x, y, view) == [2, 0, 2] and y.tolist() == [0.0, 0.0]


def test_data_counts_in_the_tensor():
    x, y = torch.ones(2), torch.zeros(3)
    x.data = y
    y.add_(1)
    assert counts(x, y) == [0, 1]
    x.add_(1)
    assert counts(x, y) == [1, 1] and y.tolist() == [2.0] * 3


def test_memory_on_loan_grows_for_all():
    x, y = torch.ones(2), torch.zeros(4)
    x.set_(y[1:3])
    x.resize_(10)
    y.add_(1)
    assert x[:3].tolist() == [1.0] * 3 and x.storage_offset() == 1
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[:4].add_(y)


def test_copies_share_as_the_tensors_did():
    x, y = torch.ones(2), torch.zeros(4)
    view = x[1:]
    view.set_(y)
    copied = copy.deepcopy([view, y])
    copied[0].add_(1)
    assert copied[1].tolist() == [1.0] * 4 and y.tolist() == [0.0] * 4
    loaded = pickle.loads(pickle.dumps(view))
    assert loaded.tolist() == [0.0] * 4


@pytest.mark.parametrize(("start", "message"), [(1, "set_ is not implemented"), (150, "out of bounds")])
def test_history_of_a_view_on_other_memory(start, message):
    x = torch.ones(3, requires_grad=True) * 2
    view = x[1:]
    view.set_(torch.zeros(200)[start : start + 2])
    assert (x.grad_fn.name(), view.grad_fn.name()) == ("torch::autograd::CopySlices", "AsStridedBackward0")
    with pytest.raises(RuntimeError, match=message):
        x.sum().backward()
