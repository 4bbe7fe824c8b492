"""Pooling: values, derivatives and errors as torch has them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import mindtorch_v2 as torch

_found = importlib.util.spec_from_file_location("network", Path(__file__).with_name("network.py"))
assert _found is not None and _found.loader is not None
network = importlib.util.module_from_spec(_found)
_found.loader.exec_module(network)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("pool"))
def test_pool_like_torch(expression):
    network.check("pool", expression)


@pytest.mark.parametrize("expression", network.expressions("pool_error"))
def test_pool_error_like_torch(expression):
    network.check("pool_error", expression)


def test_windows_that_overlap_share_a_maximum():
    x = torch.zeros(1, 1, 3, 3)
    x[0, 0, 1, 1] = 1.0
    x.requires_grad_()
    torch.nn.functional.max_pool2d(x, 2, stride=1).sum().backward()
    assert x.grad[0, 0].tolist() == [[0.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 0.0]]


def test_the_first_of_equal_maxima_is_taken():
    _, indices = torch.nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), 2, return_indices=True)
    assert indices.flatten().tolist() == [0, 2, 8, 10]


def test_max_pool1d_without_history_needs_no_indices():
    x = torch.arange(6.0).view(1, 1, 6)
    assert torch.nn.functional.max_pool1d(x, 3).tolist() == [[[2.0, 5.0]]]
    assert torch.nn.functional.max_pool1d(x.requires_grad_(), 3).tolist() == [[[2.0, 5.0]]]
