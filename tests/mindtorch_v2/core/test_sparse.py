"""Sparse tensors."""

from __future__ import annotations

import copy

import pytest

import mindtorch_v2 as torch

INDICES = torch.tensor([[0, 1, 1], [2, 0, 0]])
DENSE = [[0.0, 0.0, 3.0], [9.0, 0.0, 0.0]]


def make(values=(3.0, 4.0, 5.0), **options):
    return torch.sparse_coo_tensor(INDICES, torch.tensor(values), (2, 3), **options)


def test_parts():
    s = make()
    assert (s.is_sparse, s.layout, s.shape, s.dtype) == (True, torch.sparse_coo, (2, 3), torch.float32)
    assert (s._nnz(), s.sparse_dim(), s.dense_dim(), s.is_coalesced()) == (3, 2, 0, False)
    assert s.to_dense().tolist() == DENSE
    c = s.coalesce()
    assert (c.indices().tolist(), c.values().tolist(), c._nnz()) == ([[0, 1], [2, 0]], [3.0, 9.0], 2)
    with pytest.raises(RuntimeError, match="uncoalesced"):
        s.indices()
    with pytest.raises(RuntimeError, match="expected sparse"):
        torch.ones(2).coalesce()


def test_there_and_back():
    dense = torch.tensor(DENSE)
    s = dense.to_sparse()
    assert s._nnz() == 2
    assert torch.equal(s.to_dense(), dense)
    assert torch.sparse_coo_tensor(INDICES, torch.ones(3)).shape == (2, 3)
    assert torch.sparse_coo_tensor((2, 2)).to_dense().tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((torch.tensor([0, 1]), torch.ones(2)), "must be sparse_dim x nnz"),
        ((INDICES, torch.ones(2)), "must have same nnz"),
        ((INDICES, torch.ones(3), (2, 2)), "size is inconsistent with indices"),
        ((-INDICES, torch.ones(3), (2, 3)), "found negative index"),
        ((INDICES, torch.ones(3), (2,)), "number of dimensions must be"),
    ],
)
def test_bad_parts(arguments, match):
    with pytest.raises(RuntimeError, match=match):
        torch.sparse_coo_tensor(*arguments)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s * 2,
        lambda s: s / 2,
        lambda s: -s,
        lambda s: s + s,
        lambda s: s - s * 3,
        lambda s: s.t(),
        lambda s: s.clone(),
        lambda s: s.transpose(0, 1),
        lambda s: s.sum(),
        lambda s: s @ torch.ones(3, 2),
        lambda s: torch.mm(s, torch.ones(3, 1)),
        lambda s: torch.ones(4, 2) @ s,
        lambda s: s.to(torch.float64),
        lambda s: s * torch.arange(6.0).view(2, 3),
        lambda s: torch.addmm(torch.ones(2, 2), s, torch.ones(3, 2)),
    ],
)
def test_ops_agree_with_the_dense_ones(call):
    s = make()
    made = call(s)
    torch.testing.assert_close(made.to_dense(), call(s.to_dense()))


def test_products_have_gradients():
    values = torch.tensor([3.0, 4.0, 5.0], requires_grad=True)
    other = torch.arange(3.0).view(3, 1).requires_grad_()
    torch.sparse.mm(torch.sparse_coo_tensor(INDICES, values, (2, 3)), other).sum().backward()
    assert values.grad.tolist() == [2.0, 0.0, 0.0]
    assert other.grad.tolist() == [[9.0], [0.0], [3.0]]


def test_what_is_not_there_says_so():
    with pytest.raises(NotImplementedError, match=r"aten::exp.*SparseCPU"):
        torch.exp(make())
    assert "layout=torch.sparse_coo" in repr(make())


def test_gradients_of_sparse_leaves():
    leaf = torch.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse().requires_grad_()
    assert leaf.requires_grad and leaf.is_leaf and leaf.grad is None
    torch.sparse.mm(leaf, torch.eye(2)).sum().backward()
    torch.sparse.mm(leaf, torch.eye(2) * 3).sum().backward()
    assert leaf.grad.is_sparse and leaf.grad.indices().tolist() == [[0, 1], [1, 0]] and leaf.grad.values().tolist() == [4, 4]
    assert not leaf.detach().requires_grad and not leaf.mul(2).is_leaf
    leaf.grad = None
    assert leaf.grad is None
    leaf.to_dense().pow(2).sum().backward()
    assert leaf.grad.values().tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="data of a different type"):
        leaf.grad = torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="data of a different size"):
        leaf.grad = torch.ones(3, 3).to_sparse()
    assert not leaf.requires_grad_(False).requires_grad


def test_sparse_tensors_are_converted_by_their_values():
    x = torch.tensor([[0.0, 1.5]]).to_sparse()
    assert x.half().is_sparse and x.half().dtype is torch.float16 and x.long().values().tolist() == [1]
    assert x.double().to_dense().tolist() == [[0.0, 1.5]] and x.float() is x


def test_copies_of_sparse_tensors_have_their_gradients():
    given, leaf = torch.eye(2).to_sparse(), torch.eye(2).to_sparse().requires_grad_()
    given.grad = torch.eye(2).to_sparse()
    leaf.to_dense().sum().backward()
    copies = copy.deepcopy([given, given.grad, leaf, torch.eye(2).to_sparse_csr()])
    assert copies[0].grad is copies[1] and copies[2].requires_grad and copies[2].grad.values().tolist() == [1, 1]
    assert copies[3].layout is torch.sparse_csr and copies[3].to_dense().tolist() == [[1, 0], [0, 1]]
    copies[0].values().zero_()
    assert given.values().tolist() == [1, 1]


# ---------------------------------------------------------------- legacy types; answers are those of torch 2.13


@pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor")
def test_legacy_types_make_and_name_sparse_tensors():
    places, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    matrix = torch.sparse.FloatTensor(places, values, torch.Size([2, 3]))
    assert (tuple(matrix.shape), matrix.type(), matrix.is_coalesced()) == ((2, 3), "torch.sparse.FloatTensor", False)
    assert torch.equal(torch.sparse.mm(matrix, torch.ones(3, 1)), torch.tensor([[1.0], [2.0]]))
    assert torch.sparse.FloatTensor(places, values.double()).dtype is torch.float64  # that of the values
    assert [tuple(torch.sparse.LongTensor(*size).shape) for size in ((), (2, 3), (torch.Size([4]),))] == [(0,), (2, 3), (4,)]
    assert torch.sparse.LongTensor(2).dtype is torch.int64
    kinds = (torch.sparse.FloatTensor, torch.sparse.DoubleTensor, torch.FloatTensor)
    assert [isinstance(matrix, kind) for kind in kinds] == [True, False, False]
    assert [isinstance(values, kind) for kind in kinds] == [False, False, True]
    assert isinstance(matrix.type("torch.sparse.DoubleTensor"), torch.sparse.DoubleTensor)
    with pytest.raises(TypeError, match="invalid combination of arguments - got \\(list\\)"):
        torch.sparse.FloatTensor([2.0])


def test_legacy_types_warn():
    with pytest.warns(UserWarning, match="Please use torch.sparse_coo_tensor"):
        torch.set_warn_always(True)
        try:
            torch.sparse.ByteTensor()
        finally:
            torch.set_warn_always(False)


def test_indices_of_entries_and_of_rows():
    rows = torch.tensor([0, 0, 2])
    assert torch._convert_indices_from_coo_to_csr(rows, 4).tolist() == [0, 2, 2, 3, 3]
    assert torch._convert_indices_from_coo_to_csr(rows, 3, out_int32=True).dtype is torch.int32
    begins, columns = torch.tensor([[0, 1, 2], [0, 0, 2]]), torch.tensor([[0, 1], [1, 1]])
    back = torch._convert_indices_from_csr_to_coo
    assert back(begins[0], columns[0], out_int32=True).dtype is torch.int32
    assert back(begins[1], columns[1]).tolist() == [[1, 1], [1, 1]]
    assert back(torch.tensor([0, 2, 3]), torch.tensor([0, 2, 1]), transpose=True).tolist() == [[0, 2, 1], [0, 0, 1]]
    assert back(begins, columns).tolist() == [[0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]]  # batches: theirs first
    with pytest.raises(RuntimeError, match="supposed to be a vector, but got 2 dimensional"):
        torch._convert_indices_from_coo_to_csr(begins, 4)
