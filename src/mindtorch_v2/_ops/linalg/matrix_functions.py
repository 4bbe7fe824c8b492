"""Functions of matrices that are composed of decompositions: norms, conditions, ranks, powers, exponentials."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.facts import Autocast
from ..._dispatch.registry import aten, composite, op
from .._support.common import home_of, like_first, normal_dim, scalar_name
from .._support.half import is_narrow
from . import _math as la
from ._checks import check_matrices, check_square, check_square_matrices, need_matrix
from .systems import check_info, regular

# ---------------------------------------------------------------- norms


def _matrix_dims(self, dim, name):
    array = self._array
    if array.dtype.kind not in "fcV":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {self.dtype.scalar_name}")
    need_matrix(array.ndim, name)
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, columns = (normal_dim(d, array.ndim) for d in dim)
    if rows == columns:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return rows, columns


def _by_singular_values(self, rows, columns, keepdim, reduce):
    ndim = self._array.ndim
    order = [d for d in range(ndim) if d not in (rows, columns)] + [rows, columns]
    norms = reduce(aten.linalg_svdvals(aten.permute(self, order)), keepdim)
    if not keepdim:
        return norms
    return aten.permute(aten.unsqueeze(norms, -1), [order.index(d) for d in range(ndim)])


@composite(
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    samples=lambda make: [
        (make(3, 4), 1),
        (make(3, 4), 2),
        (make(3, 4), -2, (0, 1), True),
        (make(3, 4), math.inf),
        (make(2, 3, 4), -1, (0, 2)),
    ],
    out=True,
)
def linalg_matrix_norm(self, ord, dim, keepdim, dtype):
    """A norm of matrices: "fro", "nuc", infinity, 1, 2 and their negatives.

    >>> torch.linalg.matrix_norm(torch.tensor([[3.0, 4.0]]))
    tensor(5.)
    """
    rows, columns = _matrix_dims(self, dim, "linalg.matrix_norm")
    if abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if dtype is not None:
        self = aten.to(self, dtype=dtype)
    extreme = aten.amax if ord > 0 else aten.amin
    if abs(ord) == 2:
        return _by_singular_values(self, rows, columns, keepdim, lambda s, keep: extreme(s, (-1,), keep))
    summed, kept = (columns, rows) if math.isinf(ord) else (rows, columns)
    if not keepdim and kept > summed:
        kept -= 1
    return extreme(aten.linalg_vector_norm(self, 1, (summed,), keepdim), (kept,), keepdim)


@composite(
    "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2, -1], bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    samples=lambda make: [(make(3, 4),), (make(3, 4), "nuc", (0, 1), True)],
    out=True,
)
def linalg_matrix_norm_by_name(self, ord, dim, keepdim, dtype):
    rows, columns = _matrix_dims(self, dim, "linalg.matrix_norm")
    if ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "fro":
        return aten.linalg_vector_norm(self, 2, dim, keepdim, dtype=dtype)
    if dtype is not None:
        self = aten.to(self, dtype=dtype)
    return _by_singular_values(self, rows, columns, keepdim, lambda s, keep: aten.sum(s, (-1,), keep))


@composite(
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    samples=lambda make: [(make(3, 4),), (make(3, 4), 2), (make(3, 4), 1, 0), (make(4), 3)],
    out=True,
)
def linalg_norm(self, ord, dim, keepdim, dtype):
    """A norm of vectors or matrices, by what `dim` and `ord` say.

    >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    ndim = self._array.ndim
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if dim is None and ord is not None and ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D.")
    if ord is not None and ((dim is not None and len(dim) == 2) or (dim is None and ndim == 2)):
        return aten.linalg_matrix_norm(self, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    return aten.linalg_vector_norm(self, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@composite(
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    samples=lambda make: [(make(3, 4), "fro"), (make(3, 4), "nuc")],
    out=True,
)
def linalg_norm_by_name(self, ord, dim, keepdim, dtype):
    if dim is None and self._array.ndim > 2:
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self._array.ndim}D."
        )
    return aten.linalg_matrix_norm(self, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)


# ---------------------------------------------------------------- condition and rank


def _check_cond(array):
    if array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")


def _empty_cond(self):
    """The condition of matrices without entries: 0, as in torch."""
    return aten.new_zeros(self, self._array.shape[:-2], dtype=self.dtype.to_real())


def _by_inverse(self, p):
    """|A| |A⁻¹|, infinite where there is no inverse."""
    inverse, info = aten.linalg_inv_ex(self)
    bad = aten.ne(info, 0)
    inverse = aten.masked_fill(inverse, aten.unsqueeze(aten.unsqueeze(bad, -1), -1), math.inf)
    return aten.linalg_matrix_norm(self, p) * aten.linalg_matrix_norm(inverse, p)


@composite(
    "linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
    samples=lambda make: [(regular(make),), (regular(make), 1)],
    autocast=Autocast.FLOAT32,
    out=True,
)
def linalg_cond(self, p):
    """The condition number of matrices with respect to inversion.

    >>> torch.linalg.cond(torch.eye(2))
    tensor(1.)
    """
    _check_cond(self._array)
    if p is not None and abs(p) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p is None or abs(p) == 2:
        values = aten.linalg_svdvals(self)
        if not values._array.shape[-1]:
            return _empty_cond(self)
        first, last = aten.narrow(values, -1, 0, 1), aten.narrow(values, -1, -1, 1)
        ratio = last / first if p == -2 else first / last
        return aten.squeeze(ratio, -1)
    check_square(self._array, f"linalg.cond(ord={p}): ")
    return _by_inverse(self, p) if self._array.size else _empty_cond(self)


@composite(
    "linalg_cond.p_str(Tensor self, str p) -> Tensor",
    samples=lambda make: [(regular(make), "fro"), (regular(make), "nuc")],
    autocast=Autocast.FLOAT32,
    out=True,
)
def linalg_cond_by_name(self, p):
    _check_cond(self._array)
    if p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square(self._array, f"linalg.cond(ord={p}): ")
    if not self._array.size:
        return _empty_cond(self)
    if p == "nuc":  # torch adds singular values, so that rounding keeps the condition of singular matrices finite
        values = aten.linalg_svdvals(self)
        return aten.sum(values, (-1,)) * aten.sum(aten.reciprocal(values), (-1,))
    return _by_inverse(self, p)


def _rank(self, atol, rtol, hermitian):
    need_matrix(self._array.ndim, "torch.linalg.matrix_rank", "input")
    check_matrices(self._array, "linalg.eigh" if hermitian else "linalg.matrix_rank", square=hermitian)
    self = aten.detach(self)
    size = max(self._array.shape[-2:])
    if not self._array.size:
        return aten.zeros(self._array.shape[:-2], dtype=dt.int64, device=home_of(self))
    values = aten.abs(aten.linalg_eigvalsh(self)) if hermitian else aten.linalg_svdvals(self)
    if rtol is None:
        atol_is_positive = atol is not None and (atol._array if hasattr(atol, "_array") else atol) > 0
        rtol = 0.0 if np.all(atol_is_positive) and atol is not None else float(np.finfo(self._array.dtype).eps) * size
    largest = aten.amax(values, (-1,), True)
    limit = largest * (aten.unsqueeze(rtol, -1) if hasattr(rtol, "_array") else rtol)
    if atol is not None:
        limit = aten.maximum(limit, aten.unsqueeze(atol, -1) if hasattr(atol, "_array") else aten.full_like(limit, atol))
    return aten.sum(values > limit, (-1,))


composite(
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    _rank,
    autocast=Autocast.FLOAT32,
    out=True,
    doc="""The number of singular values above a tolerance.

    >>> torch.linalg.matrix_rank(torch.ones(2, 2))
    tensor(1)
    """,
)
composite(
    "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, "
    "bool hermitian=False) -> Tensor",
    _rank,
    autocast=Autocast.FLOAT32,
    out=True,
)
composite(
    "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
    lambda self, tol, hermitian: _rank(self, tol, 0.0, hermitian),
    samples=lambda make: [(make(3, 4), 0.1)],
    autocast=Autocast.FLOAT32,
    out=True,
)
composite(
    "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
    lambda input, tol, hermitian: _rank(input, tol, 0.0, hermitian),
    samples=lambda make: [],
    autocast=Autocast.FLOAT32,
    out=True,
    out_overload="out_tol_tensor",
)

# ---------------------------------------------------------------- powers and exponentials


def _power(self, n):
    check_square_matrices(self._array, "linalg.matrix_power")
    if n == 0:
        identity = aten.eye(self._array.shape[-1], dtype=self.dtype, device=home_of(self))
        return aten.copy_(aten.clone(self), identity)
    if n < 0:
        self, n = aten.linalg_inv(self), -n
        if n == 1:
            return self
    if n == 1:
        return aten.clone(self)
    if n == 3:
        return aten.matmul(aten.matmul(self, self), self)
    product, square = None, None
    while n:
        square = self if square is None else aten.matmul(square, square)
        if n & 1:
            product = square if product is None else aten.matmul(product, square)
        n >>= 1
    return product


composite(
    "linalg_matrix_power(Tensor self, int n) -> Tensor",
    _power,
    samples=lambda make: [(make(3, 3), n) for n in (1, 2, 3, 5)] + [(regular(make), -2)],
    out=True,
    doc="""The product of `n` copies of a square matrix, of its inverse for negative `n`.

    >>> torch.linalg.matrix_power(torch.tensor([[1, 1], [0, 1]]).float(), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """,
)
composite(
    "matrix_power(Tensor self, int n) -> Tensor",
    _power,
    samples=lambda make: [(make(3, 3), 2)],
    out=True,
    doc="""The product of `n` copies of a square matrix.

    >>> torch.matrix_power(torch.eye(2), 3)
    tensor([[1., 0.],
            [0., 1.]])
    """,
)


@op(
    "linalg_matrix_exp(Tensor self) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 3),), (make(2, 3, 3),)],
    out=False,
)
def linalg_matrix_exp(self):
    """The exponential of square matrices.

    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if is_narrow(self.dtype):
        check_square_matrices(self, "linalg.matrix_exp")
    else:
        check_matrices(self, "linalg.matrix_exp", square=True)
    return la.matrix_exp(self)


def _matrix_exp_grad(g, self):
    """The derivative in the direction g stands in the upper right of exp [[Aᴴ, g], [0, Aᴴ]]."""
    adjoint = aten.mH(self)
    *batch, n, _ = self._array.shape
    upper = aten.cat([adjoint, g], -1)
    lower = aten.cat([aten.zeros((*batch, n, n), dtype=self.dtype, device=home_of(self)), adjoint], -1)
    whole = aten.linalg_matrix_exp(aten.cat([upper, lower], -2))
    return aten.narrow(aten.narrow(whole, -2, 0, n), -1, n, n)


linalg_matrix_exp.vjp(self=_matrix_exp_grad)

composite(
    "matrix_exp(Tensor self) -> Tensor",
    lambda self: aten.linalg_matrix_exp(self),
    samples=lambda make: [(make(3, 3),)],
    doc="""The exponential of square matrices.

    >>> torch.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """,
)

# ---------------------------------------------------------------- tensors as matrices


@composite(
    "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
    samples=lambda make: [(aten.reshape(regular(make, n=4), (2, 2, 4)),)],
    autocast=Autocast.FLOAT32,
    out=True,
)
def linalg_tensorinv(self, ind):
    """The inverse of the linear map that `tensordot` with the input is.

    >>> torch.linalg.tensorinv(torch.eye(2).reshape(2, 2), ind=1)
    tensor([[1., 0.],
            [0., 1.]])
    """
    shape = self._array.shape
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    rows, columns = shape[:ind], shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), "
            f"but got {math.prod(columns)} != {math.prod(rows)}"
        )
    inverse, info = aten.linalg_inv_ex(aten.reshape(self, (math.prod(columns), math.prod(rows))))
    check_info(info, "inv", inverse)
    return aten.reshape(inverse, (*columns, *rows))


@composite(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    samples=lambda make: [(aten.reshape(regular(make, n=4), (2, 2, 4)), make(2, 2))],
    autocast=Autocast.FLOAT32,
    out=True,
)
def linalg_tensorsolve(self, other, dims):
    """The solution of a system in which `tensordot` is the product.

    >>> torch.linalg.tensorsolve(torch.eye(2), torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    ndim = self._array.ndim
    if dims is not None:
        self = aten.movedim(self, dims, [ndim - len(dims) + i for i in range(len(dims))])
    result = self._array.shape[other._array.ndim :]
    size = math.prod(result)
    if size != other._array.size:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {size} != {other._array.size}"
        )
    solution = aten.linalg_solve(aten.reshape(self, (size, size)), aten.flatten(other))
    return aten.reshape(solution, result)


@composite("linalg_vander(Tensor x, *, int? N=None) -> Tensor", samples=lambda make: [(make(4),), (make(3), {"N": 5})])
def linalg_vander(x, N):
    """The matrix of powers of the elements, lowest first.

    >>> torch.linalg.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    if x._array.dtype.kind == "b" or is_narrow(x._array.dtype):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {scalar_name(x._array)}"
        )
    if not x._array.ndim:
        x = aten.unsqueeze(x, 0)
    count = x._array.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    shape = x._array.shape
    powers = aten.cumprod(aten.expand(aten.unsqueeze(x, -1), (*shape, count - 1)), -1)
    return aten.cat([aten.new_ones(powers, (*shape, 1)), powers], -1)


composite(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    lambda A, offset, dim1, dim2: aten.diagonal(A, offset, dim1, dim2),
    doc="""A view of the diagonals of matrices.

    >>> torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """,
)


composite(
    "linalg_matmul(Tensor self, Tensor other) -> Tensor",
    lambda self, other: aten.matmul(self, other),
    samples=lambda make: [(make(3, 4), make(4, 2))],
    out=True,
    doc="""The matrix product, as `matmul`.

    >>> torch.linalg.matmul(torch.tensor([[1, 2]]), torch.tensor([[3], [4]]))
    tensor([[11]])
    """,
)
