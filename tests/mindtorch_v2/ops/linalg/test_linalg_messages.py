"""Matrices that do not fit: what PyTorch 2.13 says to them."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

linalg = torch.linalg
A = torch.tensor([[4.0, 1.0, 2.0], [1.0, 3.0, 0.0], [2.0, 0.0, 5.0]])
SINGULAR = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
LU, PIVOTS = linalg.lu_factor(A)
LD, LD_PIVOTS = linalg.ldl_factor(A)


def ones(*shape):
    return torch.ones(shape)


def doubles(*shape):
    return torch.ones(shape, dtype=torch.float64)


def ints(*shape):
    return torch.ones(shape, dtype=torch.int64)


def halves(*shape):
    return torch.ones(shape, dtype=torch.float16)


SQUARES = "A must be batches of square matrices, but they are 3 by 4 matrices"
SAME = "Expected b and A to have the same dtype, but found b of type Double and A of type Float instead."
LENGTHS = "The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 0"
LENGTHS_TURNED = "The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 0"
NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of "
    "order 1 is not positive-definite)."
)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        # LU
        (
            lambda: linalg.lu_factor(ones(3)),
            "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: [3] instead",
        ),
        (lambda: linalg.lu(ones(3)), "linalg.lu: Expected tensor with 2 or more dimensions. Got size: [3] instead"),
        (lambda: linalg.lu_solve(LU, PIVOTS, ones(3)), "linalg.lu_solve: The input tensor B must have at least 2 dimensions."),
        (
            lambda: linalg.lu_solve(LU, PIVOTS, ones(4, 1)),
            "linalg.lu_solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x1)",
        ),
        (
            lambda: linalg.lu_solve(LU, PIVOTS, doubles(3, 1)),
            "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type Float and B of "
            "type Double instead",
        ),
        (
            lambda: linalg.lu_solve(LU, PIVOTS.long(), ones(3, 1)),
            "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32",
        ),
        (
            lambda: linalg.lu_solve(LU, PIVOTS[:2], ones(3, 1)),
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix",
        ),
        (
            lambda: linalg.lu_solve(LU.expand(2, 3, 3), PIVOTS, ones(3, 1)),
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape [3] instead",
        ),
        (
            lambda: linalg.lu_solve(LU, PIVOTS * 9, ones(3, 1)),
            "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the "
            "result of lu_factor?",
        ),
        (lambda: linalg.lu_solve(LU.expand(2, 3, 3), PIVOTS.expand(2, 3), ones(4, 3, 1)), LENGTHS_TURNED),
        (lambda: linalg.lu_solve(ones(3, 4), PIVOTS, ones(3, 1)), f"torch.linalg.lu_solve: {SQUARES}"),
        (
            lambda: torch.lu_unpack(LU, PIVOTS * 7),
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            "Did you properly pass the result of lu_factor?",
        ),
        (
            lambda: torch.lu_unpack(ones(3), PIVOTS),
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: [3] instead",
        ),
        # triangular systems and Cholesky factors
        (lambda: linalg.solve_triangular(ones(2, 3, 3), ones(4, 3, 1), upper=True), LENGTHS_TURNED),
        (
            lambda: torch.triangular_solve(ones(3), A),
            "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has 1 dimensions instead",
        ),
        (
            lambda: torch.triangular_solve(ones(4, 1), A),
            "Incompatible matrix sizes for triangular_solve: each A matrix is 3 by 3 but each b matrix is 4 by 1",
        ),
        (lambda: torch.triangular_solve(ones(3, 1), ones(3, 4)), SQUARES),
        (lambda: torch.triangular_solve(doubles(3, 1), A), SAME),
        (lambda: torch.triangular_solve(ones(2, 3, 1), ones(4, 3, 3)), LENGTHS),
        (lambda: torch.cholesky_solve(ones(3), A), "b should have at least 2 dimensions, but has 1 dimensions instead"),
        (
            lambda: torch.cholesky_solve(ones(3, 1), ones(3)),
            "u should have at least 2 dimensions, but has 1 dimensions instead",
        ),
        (lambda: torch.cholesky_solve(ones(3, 1), ones(3, 4)), SQUARES),
        (
            lambda: torch.cholesky_solve(ones(4, 1), A),
            "Incompatible matrix sizes for cholesky_solve: each A matrix is 3 by 3 but each b matrix is 4 by 1",
        ),
        (lambda: torch.cholesky_solve(doubles(3, 1), A), SAME),
        (lambda: torch.cholesky_solve(ones(2, 3, 1), ones(4, 3, 3)), LENGTHS),
        (lambda: torch.cholesky(-A), f"cholesky: {NOT_POSITIVE}"),
        (lambda: torch.cholesky(torch.stack([A, -A])), f"cholesky: (Batch element 1): {NOT_POSITIVE}"),
        (lambda: linalg.cholesky_ex(-A, check_errors=True), f"linalg.cholesky_ex: {NOT_POSITIVE}"),
        # reflections
        (lambda: torch.geqrf(ones(3)), "torch.geqrf: input must have at least 2 dimensions."),
        (lambda: torch.ormqr(ones(3), ones(3), ones(3)), "torch.ormqr: input must have at least 2 dimensions."),
        (lambda: torch.ormqr(A, ones(3), ones(3)), "torch.ormqr: other must have at least 2 dimensions."),
        (
            lambda: torch.ormqr(A, ones(4), A),
            "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])",
        ),
        (lambda: torch.ormqr(A, ones(3), ones(4, 3)), "torch.ormqr: other.shape[-2] must be equal to input.shape[-2]"),
        (
            lambda: torch.ormqr(A, ones(3), ones(3, 4), left=False),
            "torch.ormqr: other.shape[-1] must be equal to input.shape[-2]",
        ),
        (
            lambda: torch.ormqr(A, ones(2, 3), A),
            "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim "
            "equal to 2 and input.ndim is equal to 2",
        ),
        (
            lambda: torch.ormqr(ones(2, 3, 3), ones(2, 3), A),
            "torch.ormqr: Expected other to have the same number of dimensions as "
            "input, but got other.ndim equal to 2 and input.ndim is equal to 3",
        ),
        (
            lambda: torch.ormqr(ones(2, 3, 3), ones(2, 3), ones(4, 3, 3)),
            "torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got [4]",
        ),
        (
            lambda: torch.ormqr(A, doubles(3), A),
            "torch.ormqr: Expected input and tau to have the same dtype, but input has dtypeFloat and tau has dtype Double",
        ),
        (
            lambda: linalg.householder_product(ones(3), ones(3)),
            "torch.linalg.householder_product: input must have at least 2 dimensions.",
        ),
        (
            lambda: linalg.householder_product(ones(3, 4), ones(3)),
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]",
        ),
        (
            lambda: linalg.householder_product(ones(4, 3), ones(4)),
            "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]",
        ),
        (
            lambda: linalg.householder_product(ones(2, 4, 3), ones(3, 3)),
            "torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2], but got [3]",
        ),
        (
            lambda: linalg.householder_product(ones(4, 3), doubles(3)),
            "torch.linalg.householder_product: tau dtype Double does not match input dtype Float",
        ),
        # least squares
        (lambda: linalg.lstsq(ones(3), ones(3)), "torch.linalg.lstsq: input must have at least 2 dimensions."),
        (lambda: linalg.lstsq(A, torch.tensor(1.0)), "torch.linalg.lstsq: other must have at least 1 dimension."),
        (lambda: linalg.lstsq(A, ones(4, 3)), "torch.linalg.lstsq: input.size(-2) should match other.size(-2)"),
        (lambda: linalg.lstsq(A, ones(4)), "torch.linalg.lstsq: input.size(-2) should match other.size(-1)"),
        (
            lambda: linalg.lstsq(A, ones(2, 3, 3)),
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1",
        ),
        (
            lambda: linalg.lstsq(A, doubles(3, 3)),
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got "
            "input's dtype Float and other's dtype Double",
        ),
        (lambda: linalg.lstsq(ones(2, 3, 3), ones(4, 3, 3)), LENGTHS),
        # LDL
        (lambda: linalg.ldl_factor(ones(3)), "torch.linalg.ldl_factor_ex: The input tensor A must have at least 2 dimensions."),
        (lambda: linalg.ldl_factor(ones(3, 4)), f"torch.linalg.ldl_factor_ex: {SQUARES}"),
        (
            lambda: linalg.ldl_solve(LD, LD_PIVOTS[:2], A),
            "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be "
            "the same, but got pivots with shape [2] instead",
        ),
        (lambda: linalg.ldl_solve(LD, ones(3), A), "torch.linalg.ldl_solve: Expected pivots to be integers. Got Float"),
        (
            lambda: linalg.ldl_solve(LD, LD_PIVOTS, ones(4, 1)),
            "Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is 3 by 3 but each b matrix is 4 by 1",
        ),
        (lambda: linalg.ldl_solve(LD, LD_PIVOTS, doubles(3, 1)), SAME),
        # the others
        (
            lambda: linalg.svd(torch.full((2, 2), torch.nan)),
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.",
        ),
        (
            lambda: linalg.svd(torch.stack([A, A * torch.inf])),
            "linalg.svd: (Batch element 1): The algorithm failed to converge "
            "because the input matrix contained non-finite values.",
        ),
        (lambda: torch.svd(ones(3)), "linalg.svd: input should have at least 2 dimensions, but has 1 dimensions instead"),
        (lambda: torch.logdet(ones(3, 4)), f"logdet: {SQUARES}"),
        (
            lambda: linalg.pinv(ints(3, 3)),
            "linalg.pinv(Long{[3, 3]}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types",
        ),
        (lambda: linalg.pinv(ones(3, 4), hermitian=True), f"linalg.eigh: {SQUARES}"),
        (
            lambda: linalg.matrix_rank(ones(3)),
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.",
        ),
        (lambda: torch.matrix_exp(halves(3)), "linalg.matrix_exp: The input tensor A must have at least 2 dimensions."),
        (
            lambda: linalg.matrix_power(ints(2, 2), -2),
            "linalg.inv: Expected a floating point or complex tensor as input. Got Long",
        ),
        (lambda: linalg.tensorinv(ones(4, 2, 2), ind=0), "Expected a strictly positive integer for 'ind', but got 0"),
        (lambda: linalg.vander(torch.tensor(2.0)), "N must be greater than 1."),
        (
            lambda: linalg.vander(halves(2), N=2),
            "linalg.vander supports floating point, complex, and integer tensors, but got Half",
        ),
        (lambda: linalg.cond(ones(3)), "linalg.cond: The input tensor must have at least 2 dimensions."),
        (lambda: linalg.cond(ones(3, 4), 1), f"linalg.cond(ord=1): {SQUARES}"),
        (lambda: linalg.cond(SINGULAR, 7), "linalg.cond got an invalid norm type: 7"),
        (lambda: linalg.cond(SINGULAR, "x"), "linalg.cond got an invalid norm type: x"),
        (lambda: linalg.matrix_norm(A, 2, dim=(0,)), "linalg.matrix_norm: dim must be a 2-tuple. Got 0"),
        (
            lambda: linalg.norm(ones(2, 2, 2), "fro"),
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.",
        ),
    ],
)
def test_what_does_not_fit(call, words):
    with pytest.raises(RuntimeError) as raised:
        call()
    assert str(raised.value).split("\n")[0] == words


@pytest.mark.parametrize(
    ("call", "kernel", "kind"),
    [
        (lambda: linalg.lu_factor(ints(3, 3)), "lu_cpu", "Long"),
        (lambda: linalg.lu(ints(3, 3)), "lu_cpu", "Long"),
        (lambda: linalg.solve(halves(3, 3), halves(3, 1)), "lu_cpu", "Half"),
        (lambda: linalg.det(halves(3, 3)), "lu_cpu", "Half"),
        (lambda: linalg.solve_triangular(ints(3, 3), ints(3, 1), upper=True), "triangular_solve_cpu", "Long"),
        (lambda: torch.triangular_solve(ints(3, 1), ints(3, 3)), "triangular_solve_cpu", "Long"),
        (lambda: torch.cholesky(ints(3, 3)), "cholesky_cpu", "Long"),
        (lambda: linalg.cholesky(halves(3, 3)), "cholesky_cpu", "Half"),
        (lambda: torch.cholesky_solve(ints(3, 1), ints(3, 3)), "cholesky_solve_cpu", "Long"),
        (lambda: torch.cholesky_inverse(halves(3, 3)), "cholesky_inverse_out_cpu", "Half"),
        (lambda: linalg.qr(halves(3, 3)), "geqrf_cpu", "Half"),
        (lambda: torch.geqrf(ints(3, 3)), "geqrf_cpu", "Long"),
        (lambda: linalg.householder_product(ints(4, 3), ints(3)), "orgqr_cpu", "Long"),
        (lambda: torch.ormqr(ints(3, 3), ints(3), ints(3, 3)), "ormqr_cpu", "Long"),
        (lambda: linalg.svd(halves(3, 3)), "linalg_svd_cpu", "Half"),
        (lambda: linalg.eigh(ints(3, 3)), "linalg_eigh_cpu", "Long"),
        (lambda: linalg.ldl_factor(halves(3, 3)), "ldl_factor_kernel_cpu", "Half"),
    ],
)
def test_dtypes_without_a_kernel(call, kernel, kind):
    with pytest.raises(NotImplementedError) as raised:
        call()
    assert str(raised.value) == f"\"{kernel}\" not implemented for '{kind}'"


def test_too_few_pivots_are_refused():
    with pytest.raises(RuntimeError, match="Did you properly pass the result of lu_factor"):
        torch.lu_unpack(LU, PIVOTS[:2])


@pytest.mark.parametrize("kind", [torch.complex64, torch.float32, torch.int64])
def test_codes_of_failures_are_int32(kind):
    with pytest.raises(RuntimeError, match="kInt"):
        torch._linalg_check_errors(torch.zeros(2, dtype=kind), "lu", is_matrix=False)
