"""Embeddings and bags of them: values, derivatives and errors as torch has them."""

from __future__ import annotations

import network
import pytest

import mindtorch_v2 as torch

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("embedding"))
def test_embedding_like_torch(expression):
    network.check("embedding", expression)


@pytest.mark.parametrize("expression", network.expressions("embedding_error"))
def test_embedding_error_like_torch(expression):
    network.check("embedding_error", expression)


def test_a_sparse_gradient_has_a_row_for_every_index():
    table = torch.zeros(4, 2, requires_grad=True)
    torch.nn.functional.embedding(torch.tensor([1, 3, 1]), table, sparse=True).sum().backward()
    assert table.grad.is_sparse
    assert table.grad.to_dense().tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]


def test_rows_are_shortened_to_the_greatest_norm():
    table = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    torch.nn.functional.embedding(torch.tensor([0]), table, max_norm=1.0)
    assert torch.allclose(table, torch.tensor([[0.6, 0.8], [0.3, 0.4]]), atol=1e-5)
