"""`_lazy_clone`: copies that share memory until one of them is written to."""

from __future__ import annotations

import copy
import pickle

import pytest

import mindtorch_v2 as torch

_C = torch._C


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.bfloat16, torch.complex64, torch.int8])
def test_memory_is_copied_at_the_first_write(dtype):
    x = torch.tensor([[0, 1], [2, 3]], dtype=dtype)
    storage, address = _C._storage_address(x), x.data_ptr()
    clone, view = x._lazy_clone(), x.view(4)
    total = x + clone
    assert total.dtype is dtype and all(map(_C._is_cow_tensor, (x, clone, view)))
    assert _C._storage_address(x) == _C._storage_address(view) == storage != _C._storage_address(clone)
    assert _C._data_address(x) == _C._data_address(clone) == _C._data_address(view) == address
    view += torch.ones(1, dtype=dtype)
    assert not _C._is_cow_tensor(x) and not _C._is_cow_tensor(view) and _C._is_cow_tensor(clone)
    assert _C._storage_address(x) == storage and x.data_ptr() == view.data_ptr() != address == _C._data_address(clone)
    clone += torch.ones(1, dtype=dtype)  # the last one: it keeps the memory
    assert not _C._is_cow_tensor(clone) and clone.data_ptr() == address and clone.equal(x)


def _out(x, y):
    torch.add(x, 1, out=y)


def _adam(x, y):
    parameter = torch.nn.Parameter(y)
    parameter.grad = torch.ones(4)
    torch.optim.Adam([parameter]).step()


WRITES = {
    "add_": lambda x, y: y.add_(1),
    "a view": lambda x, y: y[2:].fill_(7),
    "a subscript": lambda x, y: y.__setitem__(0, 7.0),
    "a mask": lambda x, y: y.masked_fill_(y > 1, 7.0),
    "index_fill_": lambda x, y: y.index_fill_(0, torch.tensor([0]), 7.0),
    "scatter_": lambda x, y: y.scatter_(0, torch.tensor([0]), torch.tensor([7.0])),
    "out=": _out,
    "data": lambda x, y: y.data.fill_(7),
    "numpy": lambda x, y: y.numpy().fill(7),
    "storage": lambda x, y: y.untyped_storage().fill_(1),
    "typed storage": lambda x, y: y._typed_storage()._setitem(0, 7.0),
    "random": lambda x, y: y.uniform_(5, 6),
    "resize_": lambda x, y: y.resize_(8).fill_(7),
    "foreach": lambda x, y: torch._foreach_add_([y], [torch.ones(4)]),
    "an optimizer": _adam,
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("into", ["clone", "original"])
def test_a_write_shows_in_one_of_them(name, into):
    x = torch.arange(4.0)
    clone = x._lazy_clone()
    written, other = (clone, x) if into == "clone" else (x, clone)
    WRITES[name](other, written)
    assert other.tolist() == [0, 1, 2, 3] and written.tolist() != [0, 1, 2, 3]


def test_gradients_and_history():
    x = torch.ones(3, requires_grad=True)
    clone = x._lazy_clone()
    assert clone.grad_fn is not None
    (clone * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    saved = x.detach()._lazy_clone()
    with torch.no_grad():
        x.mul_(4)
    assert saved.tolist() == [1, 1, 1] and x.tolist() == [4, 4, 4] and x._version == 1


def test_copies_of_copies_and_those_that_end():
    x = torch.arange(4.0).view(2, 2).t()
    address = x.data_ptr()
    second = x._lazy_clone()._lazy_clone()
    assert second.stride() == (1, 2) and second.equal(x)
    assert pickle.loads(pickle.dumps(second)).equal(copy.deepcopy(second))
    del x
    assert second.zero_().data_ptr() == address  # the others are gone


def test_what_writes_past_the_version_is_refused():
    mean = torch.zeros(2)
    clone = mean._lazy_clone()
    with pytest.raises(RuntimeError, match="unsupported operation"):
        torch.nn.functional.batch_norm(torch.ones(3, 2), mean, torch.ones(2), training=True)
    assert clone.tolist() == [0, 0]


def test_tensors_without_memory_are_cloned():
    assert torch.empty(2, device="meta")._lazy_clone().is_meta
    x = torch.tensor([1j]).conj()
    assert x._lazy_clone().tolist() == [-1j]
