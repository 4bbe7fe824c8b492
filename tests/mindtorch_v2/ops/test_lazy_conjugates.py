"""conj() and imag of a conjugate: views that note what is to be done to the values, and the gate that does it."""

from __future__ import annotations

import copy
import io

import pytest

import mindtorch_v2 as torch


def numbers():
    return torch.tensor([1 + 2j, 3 - 1j])


def test_a_conjugate_is_a_view_with_a_bit():
    x = numbers()
    c = x.conj()
    assert c.is_conj() and not x.is_conj() and not c.is_neg()
    assert c._is_view() and c._base is x and c.data_ptr() == x.data_ptr()
    assert c.tolist() == [1 - 2j, 3 + 1j]
    assert not c.conj().is_conj() and c.conj().tolist() == x.tolist()
    assert repr(c) == "tensor([1.-2.j, 3.+1.j])"


def test_a_real_tensor_is_its_own_conjugate():
    x = torch.ones(2)
    assert x.conj() is x and x.resolve_conj() is x and x.resolve_neg() is x


WRITES = [
    (lambda c: c.mul_(2j), [4 - 2j, -2 - 6j]),
    (lambda c: c.copy_(torch.tensor([5 + 7j, 0])), [5 - 7j, 0]),
    (lambda c: c.fill_(1j), [-1j, -1j]),
    (lambda c: c.__setitem__(0, 5 + 7j), [5 - 7j, 3 - 1j]),
    (lambda c: c.index_fill_(0, torch.tensor([1]), 2j), [1 + 2j, -2j]),
    (lambda c: c.imag.fill_(3), [1 - 3j, 3 - 3j]),
    (lambda c: torch.add(numbers(), 1, out=c), [2 - 2j, 4 + 1j]),
    (lambda c: c[:1].zero_(), [0, 3 - 1j]),
]


@pytest.mark.parametrize(("write", "expected"), WRITES)
def test_writes_reach_the_base(write, expected):
    x = numbers()
    version = x._version
    write(x.conj())
    assert x.tolist() == expected
    assert x._version > version


VIEWS = [
    lambda c: c[0],
    lambda c: c.view(2, 1),
    lambda c: c.expand(3, 2),
    lambda c: c.unbind()[1],
    lambda c: c.detach(),
    lambda c: c.t(),
]


@pytest.mark.parametrize("view", VIEWS)
def test_views_keep_the_bit(view):
    x = numbers()
    c = view(x.conj())
    assert c.is_conj()
    assert c.tolist() == view(x.resolve_conj()).conj().tolist()


OPS = [
    lambda c: c + c,
    lambda c: c.exp(),
    lambda c: torch.cat([c, c]),
    lambda c: c @ c,
    lambda c: c.sum(),
    lambda c: torch.stack([c.real, c.imag]),
    lambda c: torch.where(c == c, c, 0),
    lambda c: torch._foreach_mul([c], 2)[0],
    lambda c: c.to(torch.complex128),
    lambda c: c.reshape(2, 1).contiguous() + 0,
]


@pytest.mark.parametrize("op", OPS)
def test_ops_see_the_values(op):
    x = numbers()
    lazy, eager = op(x.conj()), op(torch.conj_physical(x))
    assert not lazy.is_conj()
    assert torch.equal(lazy, eager)


def test_resolving_copies():
    c = numbers().conj()
    for copied in (c.resolve_conj(), c.clone(), c.clone(memory_format=torch.contiguous_format)):
        assert not copied.is_conj() and not copied._is_view() and copied.tolist() == c.tolist()
    i = c.imag
    assert i.is_neg() and i.tolist() == [-2.0, 1.0] and i._base is c._base
    assert not i.resolve_neg().is_neg() and i.resolve_neg().tolist() == [-2.0, 1.0]
    assert not c.real.is_neg()
    assert torch._neg_view(torch.ones(2)).tolist() == [-1.0, -1.0]


REFUSED = [
    (
        lambda c: c.numpy(),
        "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead.",
    ),
    (
        lambda c: c.imag.numpy(),
        "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead.",
    ),
    (lambda c: torch.view_as_real(c), "view_as_real doesn't work on unresolved conjugated tensors."),
    (lambda c: c.view(torch.float32), "torch.Tensor.view is not supported for conjugate view tensors when converting"),
    (
        lambda c: c.imag.view(torch.int32),
        "torch.Tensor.view is not supported for tensors with negative bit set when converting",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_shows_memory_refuses(call, message):
    with pytest.raises(RuntimeError) as caught:
        call(numbers().conj())
    assert str(caught.value).startswith(message)
    assert numbers().conj().numpy(force=True).tolist() == [1 - 2j, 3 + 1j]


def test_dlpack_refuses():
    with pytest.raises(BufferError, match="Can't export tensors with the conjugate bit set"):
        numbers().conj().__dlpack__()


def test_copies_and_files_keep_the_bit():
    x = numbers()
    pair = copy.deepcopy([x, x.conj()])
    assert pair[1].is_conj()
    pair[1].fill_(2j)
    assert pair[0].tolist() == [-2j, -2j] and x.tolist() == numbers().tolist()
    file = io.BytesIO()
    torch.save({"c": x.conj(), "n": numbers().conj().imag}, file)
    file.seek(0)
    found = torch.load(file)
    assert found["c"].is_conj() and found["c"].tolist() == [1 - 2j, 3 + 1j]
    assert found["n"].is_neg() and found["n"].tolist() == [-2.0, 1.0]


def test_gradients():
    x = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (x.conj() * x).real.sum().backward()
    assert x.grad.tolist() == [2 + 4j, 6 - 2j] and not x.grad.is_conj()
    x.grad = None
    base = x * 1
    base.conj().mul_(1j)
    base.imag.sum().backward()
    assert x.grad.tolist() == [-1, -1]
    assert torch.autograd.gradcheck(lambda t: t.conj().imag * 2, (numbers().to(torch.complex128).requires_grad_(),))
    x = numbers().requires_grad_()
    assert x.conj().grad_fn.name() == "ConjBackward0"


def test_without_memory_and_batched():
    meta = torch.empty(2, dtype=torch.complex64, device="meta").conj()
    assert meta.is_conj() and meta[0].is_conj() and not (meta + 1).is_conj()
    assert torch.func.vmap(lambda t: t.conj() * 2)(numbers()).tolist() == [2 - 4j, 6 + 2j]


def test_set_takes_the_bit_along():
    x = torch.empty(0, dtype=torch.complex64)
    x.set_(numbers().conj())
    assert x.is_conj() and x.tolist() == [1 - 2j, 3 + 1j]


def test_inverse_transforms_of_real_numbers_are_noted_conjugates():
    x = torch.arange(4.0)
    for transform in (torch.fft.ifft, torch.fft.ihfft):
        found = transform(x)
        assert found.is_conj() and torch.allclose(found, transform(x.double()).to(torch.complex64))
