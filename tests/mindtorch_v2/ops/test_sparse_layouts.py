"""Sparse tensors of all layouts show what PyTorch 2.13 showed (see recorded_sparse.py), and travel."""

import io
import json

import pytest

import mindtorch_v2 as torch

from .recorded_sparse import RECORDED, SHOWN, answer

EXPECTED = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("code", SHOWN)
def test_shown(code):
    assert answer(code, torch) == EXPECTED[code]


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_saved_and_loaded(layout):
    made = torch.eye(4).to_sparse(layout=getattr(torch, f"sparse_{layout}"), blocksize=(2, 2) if layout[0] == "b" else None)
    buffer = io.BytesIO()
    torch.save({"a": made}, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer)["a"]
    assert loaded.layout is made.layout and repr(loaded) == repr(made)


def test_invariants_are_checked_where_asked():
    bad = ([1, 1, 2], [0, 1], [1.0, 2.0], (2, 2))
    torch.sparse_csr_tensor(*bad)
    with torch.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match=r"`crow_indices\[..., 0\] == 0`"):
        torch.sparse_csr_tensor(*bad)
    assert not torch.sparse.check_sparse_tensor_invariants.is_enabled()


def test_in_place_needs_a_sparse_operand():
    with pytest.raises(RuntimeError, match=r"add\(sparse, dense\) is not supported. Use add\(dense, sparse\) instead."):
        torch.eye(2).to_sparse().add_(torch.ones(2, 2))
    with pytest.raises(NotImplementedError, match="batches of compressed sparse tensors"):
        torch.ones(2, 2, 2).to_sparse_csr()


_IN_ORDER = ([[0, 3, 4], [0, 2, 2]], [1.0, 2.0, 3.0])
_OTHER = ([[0, 1, 3, 4], [0, 1, 2, 2]], [0.0, 10.0, 20.0, 30.0])
_DOUBLE = ([[4, 0, 0], [2, 0, 0]], [1.0, 2.0, 3.0])


def _sparse(places, values, coalesced=False):
    sparse = torch.sparse_coo_tensor(places, torch.tensor(values), (6, 3))
    return sparse.coalesce() if coalesced else sparse


@pytest.mark.parametrize(
    ("first", "second", "places", "values"),  # as PyTorch 2.13 has them
    [
        (_IN_ORDER, _OTHER, [[0, 1, 3, 4], [0, 1, 2, 2]], [1, 10, 22, 33]),
        (_DOUBLE, _OTHER, [[0, 1, 3, 4, 0, 0], [0, 1, 2, 2, 0, 0]], [0, 10, 20, 31, 2, 3]),
        (_OTHER, _DOUBLE, [[0, 1, 3, 4, 0, 0], [0, 1, 2, 2, 0, 0]], [0, 10, 20, 31, 2, 3]),
        (_DOUBLE, _DOUBLE, [[4, 0, 0], [2, 0, 0]], [2, 4, 6]),
        (_DOUBLE, (*_DOUBLE, True), [[0, 4, 0, 0], [0, 2, 0, 0]], [5, 2, 2, 3]),
    ],
)
def test_sums_merge_places(first, second, places, values):
    one, other = _sparse(*first), _sparse(*second)
    added = one.clone()
    for total in (one + other, added.add_(other)):
        assert total._indices().tolist() == places and total._values().tolist() == values
        assert not total.is_coalesced()


def test_sums_of_values_that_are_not_one_after_the_other_are_joined():
    values = torch.arange(6.0).view(2, 3).t()
    total = torch.sparse_coo_tensor([[0, 1, 2]], values) + torch.sparse_coo_tensor([[0, 1, 2]], values)
    assert total._indices().tolist() == [[0, 1, 2, 0, 1, 2]]


def test_whether_places_are_in_order_can_be_said():
    sparse = _sparse(*_IN_ORDER).coalesce()
    assert not sparse._coalesced_(False).is_coalesced() and sparse._coalesced_(True).is_coalesced()
    assert sparse.requires_grad_()._values().grad_fn is None and not sparse._values().requires_grad


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc])
def test_gradients_of_sparse_tensors_are_sparse(layout):
    dense = torch.arange(1.0, 17).view(4, 4)
    in_blocks = layout in (torch.sparse_bsr, torch.sparse_bsc)
    convert = {"layout": layout, "blocksize": (2, 2)} if in_blocks else {"layout": layout}
    leaf = dense.to_sparse(**convert).requires_grad_()
    (grad,) = torch.autograd.grad((leaf.to_dense() * dense).sum(), leaf)
    assert grad.layout is layout and grad.to_dense().equal(dense)
    strided = dense.clone().requires_grad_()
    (grad,) = torch.autograd.grad(strided.to_sparse(**convert), strided, dense.to_sparse(**convert))
    assert grad.equal(dense)


def test_products_of_dense_and_sparse_tensors_that_both_require_grad():
    dense = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    other = dense.detach().requires_grad_()
    for product in (lambda x, y: x @ y, lambda x, y: y @ x):
        expected = torch.autograd.grad(product(dense, other).sum(), (dense, other))
        for layout in (torch.sparse_coo, torch.sparse_csr):
            sparse = other.detach().to_sparse(layout=layout).requires_grad_()
            first, second = torch.autograd.grad(product(dense, sparse).sum(), (dense, sparse))
            assert first.equal(expected[0]) and second.to_dense().equal(expected[1]) and second.layout is layout
    layer = torch.nn.Linear(2, 2, bias=False)
    layer.weight = torch.nn.Parameter(layer.weight.detach().to_sparse())
    layer(torch.ones(2)).sum().backward()
    assert layer.weight.grad.to_dense().equal(torch.ones(2, 2))


def test_gradients_of_sparse_outputs_that_do_not_fit():
    leaf = torch.tensor([[0.0, 2.0], [0.0, 4.0]]).to_sparse().requires_grad_()
    (grad,) = torch.autograd.grad(leaf * 2, leaf, torch.ones(2, 2))
    assert grad._values().tolist() == [2.0, 2.0]
    leaf = torch.tensor([[0.0, 2.0], [0.0, 4.0]]).to_sparse_csr().requires_grad_()
    with pytest.raises(NotImplementedError, match="compressed sparse output"):
        torch.autograd.grad(leaf * 2, leaf, torch.ones(2, 2))


@pytest.mark.parametrize("size", [torch.tensor([3]), [3.0], "a", (True,), 3])
def test_sizes_are_integers(size):
    with pytest.raises(TypeError, match="argument 'size' must be tuple of ints"):
        torch.sparse_coo_tensor(torch.zeros(1, 1, dtype=torch.int64), torch.ones(1), size=size)


@pytest.mark.parametrize("size", [(4, 3), [4, 3], torch.Size([4, 3]), None])
def test_new_takes_indices_and_values(size):
    indices, values = torch.tensor([[0, 2]]), torch.tensor([[1.0, 2, 3], [4, 5, 6]], dtype=torch.float64)
    made = torch.ones(2, 2).to_sparse().new(indices, values, *([] if size is None else [size]))
    assert made.is_sparse and made.shape == ((3, 3) if size is None else (4, 3)) and made.dtype is torch.float64
    assert made.to_dense()[2].tolist() == [4, 5, 6] and made.to_dense()[1].tolist() == [0, 0, 0]


def test_new_of_a_size_is_sparse_and_has_no_entries():
    like = torch.ones(2, 2, dtype=torch.float64).to_sparse()
    for made, shape in ((like.new(4, 3), (4, 3)), (like.new(torch.Size([4, 3])), (4, 3)), (like.new(), (0,))):
        assert made.is_sparse and made.shape == shape and made._nnz() == 0 and made.dtype is torch.float64
    with pytest.raises(TypeError, match=r"got \(list\), but expected one of"):
        like.new([1.5])
