"""Products of sparse matrices under their old names, and copies of parts: values as PyTorch 2.13 gives them."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

MATRIX = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
DENSE = torch.arange(6.0).reshape(3, 2)
PRODUCT = [[4.0, 6.0], [12.0, 16.0], [0.0, 0.0]]


@pytest.mark.parametrize("name", ["hspmm", "hsmm", "smm", "spmm", "dsmm"])
def test_products_are_those_of_the_dense_matrices(name):
    result = getattr(torch, name)(MATRIX.to_sparse(), DENSE)
    assert result.is_sparse == (name not in ("spmm", "dsmm"))
    assert (result.to_dense() if result.is_sparse else result).tolist() == PRODUCT


def test_hspmm_has_a_row_for_each_row_of_the_matrix_with_entries():
    result = torch.hspmm(MATRIX.to_sparse(), DENSE)
    assert result.sparse_dim() == 1 and result._indices().tolist() == [[0, 1]]


def test_sspaddmm_puts_the_entries_of_the_product_behind_those_of_the_first_matrix():
    added = torch.sspaddmm(DENSE.to_sparse(), MATRIX.to_sparse(), DENSE, beta=2, alpha=3)
    assert added.to_dense().tolist() == [[12.0, 20.0], [40.0, 54.0], [8.0, 10.0]]
    assert added._indices().tolist() == [[0, 1, 1, 2, 2, 0, 0, 1, 1], [1, 0, 1, 0, 1, 0, 1, 0, 1]]
    assert DENSE.to_sparse().sspaddmm(MATRIX.to_sparse(), DENSE).to_dense().tolist() == [[4.0, 7.0], [14.0, 19.0], [4.0, 5.0]]


def test_the_product_of_a_matrix_without_entries_has_none():
    assert torch.smm(torch.zeros(2, 3).to_sparse(), DENSE)._nnz() == 0


def test_gradients_pass_through_sspaddmm():
    dense = DENSE.clone().requires_grad_()
    torch.smm(MATRIX.to_sparse(), dense).to_dense().sum().backward()
    assert dense.grad.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]


def test_native_norm_is_that_of_the_elements():
    assert torch.native_norm(MATRIX.to_sparse()).item() == pytest.approx(14**0.5)
    assert torch.native_norm(MATRIX.to_sparse(), 1).item() == 6.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.hspmm(MATRIX, DENSE),
        lambda: torch.smm(MATRIX, DENSE),
        lambda: torch.sspaddmm(DENSE, MATRIX.to_sparse(), DENSE),
        lambda: torch.native_norm(MATRIX),
    ],
)
def test_a_dense_matrix_in_place_of_a_sparse_one_is_refused(call):
    with pytest.raises(NotImplementedError, match="must be a sparse COO tensor, not Strided"):
        call()


@pytest.mark.parametrize(
    "part, layout, expected",
    [
        ("indices", "sparse_coo", [[0, 1, 1], [1, 0, 2]]),
        ("values", "sparse_coo", [2.0, 1.0, 3.0]),
        ("crow_indices", "sparse_csr", [0, 1, 3, 3]),
        ("col_indices", "sparse_csr", [1, 0, 2]),
        ("ccol_indices", "sparse_csc", [0, 1, 2, 3]),
        ("row_indices", "sparse_csc", [1, 0, 1]),
    ],
)
def test_a_copy_of_a_part_shares_no_memory_with_it(part, layout, expected):
    matrix = MATRIX.to_sparse(layout=getattr(torch, layout))
    matrix = matrix.coalesce() if layout == "sparse_coo" else matrix
    copy = getattr(torch, f"{part}_copy")(matrix)
    assert copy.tolist() == expected
    copy.zero_()
    assert getattr(matrix, part)().tolist() == expected


@pytest.mark.parametrize("name", ["crow_indices_copy", "values_copy", "hspmm"])
def test_what_is_no_tensor_is_refused(name):
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        getattr(torch, name)(*[3] * (2 if name == "hspmm" else 1))
