"""Products of matrices and tensors, and distances: results in torch's dtypes, refusals in torch's words."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

F = torch.nn.functional
inf = float("inf")


def ones(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype)


def u8(*values):
    return torch.tensor(values, dtype=torch.uint8)


def bf16(*values):
    return torch.tensor(values, dtype=torch.bfloat16)


B, I64, F64, U8 = torch.bool, torch.int64, torch.float64, torch.uint8

RESULTS = {
    "addbmm of bytes": (
        lambda: torch.addbmm(u8(1, 2), ones(3, 1, 2, dtype=U8) * 9, ones(3, 2, 2, dtype=U8) * 5),
        torch.uint8,
        [[15, 16]],
    ),
    "addbmm of bytes, factors cut": (
        lambda: torch.addbmm(u8(1), ones(1, 1, 2, dtype=U8), ones(1, 2, 1, dtype=U8), beta=0.6, alpha=2.7),
        torch.uint8,
        [[4]],
    ),
    "addmm of bytes, a factor below zero": (
        lambda: torch.addmm(u8(0), ones(1, 1, dtype=U8), ones(1, 1, dtype=U8), alpha=-1),
        torch.uint8,
        [[255]],
    ),
    "tensordot of bytes that broadcast": (
        lambda: torch.tensordot(ones(1, 2, dtype=U8), ones(3, 1, dtype=U8), ([0, 1], [0, 1])),
        torch.uint8,
        6,
    ),
    "einsum of bytes, summed first": (lambda: torch.einsum("ij,k->k", u8([1, 2], [3, 4]), u8(1, 2)), I64, [10, 20]),
    "addr of several dtypes": (lambda: torch.addr(ones(1, 2, dtype=F64), ones(1), ones(2, dtype=I64)), F64, [[2.0, 2.0]]),
    "bilinear of bfloat16": (
        lambda: F.bilinear(bf16([1, 2]), bf16([3, 4]), bf16([[1, 2], [3, 4]], [[1, 0], [0, 1]]), bf16(1, -1)),
        torch.bfloat16,
        [[62.0, 10.0]],
    ),
    "dist of complex numbers": (lambda: torch.dist(torch.tensor([3 + 4j]), torch.tensor([0j])), torch.float32, 5.0),
    "dist of complex and real numbers": (
        lambda: torch.dist(torch.tensor([3 + 4j], dtype=torch.complex128), ones(1) * 3),
        F64,
        4.0,
    ),
    "dist, the least": (lambda: torch.dist(torch.tensor([3.0, 5.0]), torch.tensor([1.0, 1.0]), -inf), torch.float32, 2.0),
    "dist of bfloat16": (
        lambda: torch.dist(ones(1000, dtype=torch.bfloat16), ones(1, dtype=torch.bfloat16) * 2),
        torch.bfloat16,
        31.625,
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_result(name):
    call, dtype, expected = RESULTS[name]
    made = call()
    assert made.dtype == dtype and made.tolist() == expected


REFUSED = {
    "self that does not expand": (
        lambda: torch.addmm(ones(5, 2), ones(3, 4), ones(4, 2)),
        RuntimeError,
        "The expanded size of the tensor (3) must match the existing size (5) at non-singleton "
        "dimension 0.  Target sizes: [3, 2].  Tensor sizes: [5, 2]",
    ),
    "self that does not expand, times 0": (
        lambda: torch.baddbmm(ones(5, 2), ones(2, 3, 4), ones(2, 4, 2), beta=0),
        RuntimeError,
        "The expanded size of the tensor (3) must match the existing size (5) at "
        "non-singleton dimension 1.  Target sizes: [2, 3, 2].  Tensor sizes: [5, 2]",
    ),
    "self of more dims": (
        lambda: torch.addmm(ones(2, 3, 2), ones(3, 4), ones(4, 2)),
        RuntimeError,
        "expand(torch.FloatTensor{[2, 3, 2]}, size=[3, 2]): the number of sizes provided (2) must be "
        "greater or equal to the number of dimensions in the tensor (3)",
    ),
    "addmv, self too long": (
        lambda: torch.addmv(ones(5), ones(3, 4), ones(4)),
        RuntimeError,
        "size mismatch, got input (5), mat (3x4), vec (4)",
    ),
    "addmv, self a matrix": (
        lambda: torch.addmv(ones(2, 3), ones(3, 4), ones(4)),
        RuntimeError,
        "vector + matrix @ vector expected, got 2, 2, 1",
    ),
    "complex factor of floats": (
        lambda: torch.addmm(ones(2, 2), ones(2, 2), ones(2, 2), beta=2j),
        RuntimeError,
        "value cannot be converted to type float without overflow",
    ),
    "factor too large for bytes": (
        lambda: torch.addmm(u8([1]), u8([1]), u8([1]), alpha=300),
        RuntimeError,
        "value cannot be converted to type uint8_t without overflow",
    ),
    "addr, fraction of bytes": (
        lambda: torch.addr(u8([1]), u8(1), u8(1), alpha=0.5),
        RuntimeError,
        "For integral input tensors, argument alpha must not be a floating point number.",
    ),
    "addr, bool of bytes": (
        lambda: torch.addr(u8([1]), u8(1), u8(1), beta=True),
        RuntimeError,
        "Boolean beta only supported for Boolean results.",
    ),
    "mm of bools": (
        lambda: torch.mm(ones(2, 2, dtype=B), ones(2, 2, dtype=B)),
        NotImplementedError,
        "\"addmm_impl_cpu_\" not implemented for 'Bool'",
    ),
    "bmm of bools": (
        lambda: torch.bmm(ones(1, 2, 2, dtype=B), ones(1, 2, 2, dtype=B)),
        NotImplementedError,
        "\"bmm\" not implemented for 'Bool'",
    ),
    "mv of bools": (
        lambda: torch.mv(ones(2, 2, dtype=B), ones(2, dtype=B)),
        NotImplementedError,
        "\"addmv_impl_cpu\" not implemented for 'Bool'",
    ),
    "vdot of two dtypes": (
        lambda: torch.vdot(ones(1), ones(3, dtype=torch.float16)),
        RuntimeError,
        "dot : expected both vectors to have same dtype, but found Float and Half",
    ),
    "vecdot of integers": (
        lambda: torch.linalg.vecdot(ones(3, dtype=I64), ones(3, dtype=I64)),
        RuntimeError,
        "linalg.vecdot: Expected a floating point or complex tensor as input. Got Long",
    ),
    "tensordot over too many": (
        lambda: torch.tensordot(ones(2, 3), ones(3, 2), 3),
        RuntimeError,
        "tensordot expects dims < ndim_a or ndim_b, but got dims=3",
    ),
    "tensordot, sizes": (
        lambda: torch.tensordot(ones(2, 3), ones(2, 3), 1),
        RuntimeError,
        "contracted dimensions need to match, but first has size 3 in dim -1 and second has size 2 in dim 0",
    ),
    "tensordot, a dim twice": (
        lambda: torch.tensordot(ones(2, 3), ones(3, 2), ([1, 1], [0, 0])),
        RuntimeError,
        "dim 1 appears multiple times in the list of dims",
    ),
    "cross of fours": (
        lambda: torch.linalg.cross(ones(2, 4), ones(2, 4)),
        RuntimeError,
        "linalg.cross: inputs dimension -1 must have length 3. Got 4 and 4",
    ),
    "cross that does not broadcast": (
        lambda: torch.linalg.cross(ones(2, 3), ones(4, 3)),
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 0",
    ),
    "multi_dot, sizes": (
        lambda: torch.linalg.multi_dot([ones(2, 3), ones(3, 4), ones(5, 2)]),
        RuntimeError,
        "multi_dot(): tensors 1 and 2 with shapes [3, 4] and [5, 2] cannot be multiplied",
    ),
    "multi_dot, three dims": (
        lambda: torch.linalg.multi_dot([ones(2, 2, 2), ones(3, 3)]),
        RuntimeError,
        "multi_dot(): the first tensor must be 1D or 2D but got 3D",
    ),
    "multi_dot, dtypes": (
        lambda: torch.linalg.multi_dot([ones(2, 2), ones(2, 2, dtype=F64)]),
        RuntimeError,
        "multi_dot(): all tensors must have be the same dtype but tensor 0 is float and tensor 1 double",
    ),
    "bilinear, dtypes": (
        lambda: F.bilinear(ones(2, 3), ones(2, 4), ones(2, 3, 4, dtype=F64), ones(2)),
        RuntimeError,
        "All tensors must have the same dtype, got input1: float, input2: float, weight: double, bias: float",
    ),
    "bilinear, bias": (
        lambda: F.bilinear(ones(2, 3), ones(2, 4), ones(5, 3, 4), ones(4)),
        RuntimeError,
        "bilinear(): bias size does not match weight size: got 4 but expected 5",
    ),
    "bilinear, batch": (
        lambda: F.bilinear(ones(2, 3), ones(3, 4), ones(5, 3, 4)),
        RuntimeError,
        "bilinear(): input batch dimensions do not match at dim 0: got 2 and 3",
    ),
    "cdist, batch": (
        lambda: torch.cdist(ones(2, 3, 3), ones(4, 2, 3)),
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 0",
    ),
    "dist of integers": (
        lambda: torch.dist(ones(2, dtype=I64), ones(2, dtype=I64)),
        RuntimeError,
        "norm(): input dtype should be either floating point or complex. Got Long instead.",
    ),
    "dist of nothing": (
        lambda: torch.dist(ones(0), ones(0), inf),
        RuntimeError,
        "linalg.vector_norm cannot compute the inf norm on an empty tensor because the operation does not have an identity",
    ),
    "einsum, a digit": (
        lambda: torch.einsum("ij,1k->ik", ones(2, 3), ones(4, 2)),
        RuntimeError,
        "einsum(): invalid subscript given at index 3 in the equation string, subscripts must be in [a-zA-Z]",
    ),
    "einsum, a dot": (
        lambda: torch.einsum("i.j->", ones(2, 3)),
        RuntimeError,
        "einsum(): found '.' for operand 0 that is not part of any ellipsis",
    ),
    "einsum, two ellipses": (
        lambda: torch.einsum("...i...->", ones(2, 3)),
        RuntimeError,
        "einsum(): found '.' for operand 0 for which an ellipsis was already found",
    ),
    "einsum, sizes": (
        lambda: torch.einsum("ij,jk->ik", ones(2, 3), ones(4, 2)),
        RuntimeError,
        "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3",
    ),
    "einsum, diagonal": (
        lambda: torch.einsum("ii->i", ones(2, 3)),
        RuntimeError,
        "einsum(): subscript i is repeated for operand 0 but the sizes don't match, 3 != 2",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == words


def test_einsum_multiplies_where_nothing_is_left_to_sum():
    with profile() as prof:
        torch.einsum("ij,k->ik", ones(3, 4), ones(5))
    names = [event.name for event in prof.events()]
    assert "aten::mul" in names and "aten::bmm" not in names and names.count("aten::sum") == 1


def test_second_derivative_of_distances():
    many, few = (torch.arange(1.0, 2 * n + 1, dtype=torch.float64).sqrt().reshape(n, 2).requires_grad_() for n in (26, 2))
    few = (few.detach() + 0.3).requires_grad_()  # a distance of 0 has no derivative
    assert torch.autograd.gradgradcheck(torch.cdist, (many, few), fast_mode=True)
    (grad,) = torch.autograd.grad(torch.cdist(few, few + 1).sum(), few, create_graph=True)
    with pytest.raises(NotImplementedError, match="the derivative for '_cdist_backward' is not implemented"):  # as in torch
        grad.sum().backward()
