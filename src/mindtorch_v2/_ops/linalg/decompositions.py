"""Singular values and eigenvalues; pseudo-inverses and least squares."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._core.keys import AUTOGRAD
from ..._dispatch.facts import Autocast, Batching
from ..._dispatch.registry import aten, composite, op
from .._support.common import home_of, scalar_name
from . import _math as la
from ._checks import LAPACK, check_batches, check_kernel, check_matrices, check_square_matrices
from .systems import named, spd

_INT64 = np.dtype(np.int64)


def _real(array):
    return dt.from_numpy(array.dtype).to_real().np


def _complex(array):
    return dt.from_numpy(array.dtype).to_complex().np


def _is_complex(t):
    return t._array.dtype.kind == "c"


# ---------------------------------------------------------------- singular values


def _svd_shapes(A, full_matrices, compute_uv, driver):
    *batch, m, n = A._array.shape
    rank = min(m, n)
    u, vh = (
        ((*batch, m, m if full_matrices else rank), (*batch, n if full_matrices else rank, n)) if compute_uv else ((0,), (0,))
    )
    return [(u, A._array.dtype), ((*batch, rank), _real(A._array)), (vh, A._array.dtype)]


@op(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
    "-> (Tensor U, Tensor S, Tensor Vh)",
    shape=_svd_shapes,
    node="LinalgSvdBackward0",
    takes_all_grads=True,
    samples=lambda make: [(make(4, 3),), (make(2, 3, 4),)],
    batching=Batching.LAST_DIMS,
)
def linalg_svd_kernel(A, full_matrices, compute_uv, driver):
    check_matrices(A, "linalg.svd", kernel="linalg_svd_cpu")
    if compute_uv:
        u, values, vh = la.svd(A, full_matrices)
        return la.column_major(u), values, la.column_major(vh)
    return np.empty(0, A.dtype), la.singular_values(A), np.empty(0, A.dtype)


@linalg_svd_kernel.vjp
def _(grads, A, full_matrices, compute_uv, result0, result1, result2):
    u, s, vh = result0, result1, result2
    if not compute_uv:  # only now are the vectors needed
        u, s, vh = aten._linalg_svd(A, False, True)
        full_matrices = False
    grad_u, grad_s, grad_vh = grads
    rank = s._array.shape[-1]
    if full_matrices:
        u, vh = aten.narrow(u, -1, 0, rank), aten.narrow(vh, -2, 0, rank)
        grad_u = None if grad_u is None else aten.narrow(grad_u, -1, 0, rank)
        grad_vh = None if grad_vh is None else aten.narrow(grad_vh, -2, 0, rank)
    return (_svd_grad(grad_u, grad_s, grad_vh, u, s, vh),)


def _skew(t):
    return t - aten.mH(t)


def _svd_grad(grad_u, grad_s, grad_vh, u, s, vh):
    m, n, rank = u._array.shape[-2], vh._array.shape[-1], s._array.shape[-1]
    if grad_u is None and grad_vh is None:
        if grad_s is None:
            return None
        if m >= n:
            return aten.matmul(u, aten.unsqueeze(grad_s, -1) * vh)
        return aten.matmul(u * aten.unsqueeze(grad_s, -2), vh)
    skew_u = None if grad_u is None else _skew(aten.matmul(aten.mH(u), grad_u))
    skew_v = None if grad_vh is None else _skew(aten.matmul(vh, aten.mH(grad_vh)))
    squares = s * s
    gap = aten.unsqueeze(squares, -2) - aten.unsqueeze(squares, -1)
    aten.fill_(aten.diagonal(gap, 0, -2, -1), 1)
    inner = None
    if skew_u is not None:
        inner = (skew_u / gap) * aten.unsqueeze(s, -2)
    if skew_v is not None:
        part = aten.unsqueeze(s, -1) * (skew_v / gap)
        inner = part if inner is None else inner + part
    if _is_complex(u) and skew_u is not None:
        # The phase of each pair of vectors is free; its gradient is on the diagonal.
        inner = inner + aten.diag_embed(aten.diagonal(skew_u, 0, -2, -1) / (2 * s))
    if grad_s is not None:
        inner = inner + aten.to(aten.diag_embed(grad_s), dtype=inner.dtype)
    grad = aten.matmul(aten.matmul(u, inner), vh)
    # The parts of the gradients outside of the space that the vectors span.
    if m > rank and grad_u is not None:
        scaled = grad_u / aten.unsqueeze(s, -2)
        grad = grad + aten.matmul(scaled - aten.matmul(u, aten.matmul(aten.mH(u), scaled)), vh)
    if n > rank and grad_vh is not None:
        scaled = grad_vh / aten.unsqueeze(s, -1)
        grad = grad + aten.matmul(u, scaled - aten.matmul(aten.matmul(scaled, aten.mH(vh)), vh))
    return grad


def _driver(driver):
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@composite(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    samples=lambda make: [(make(4, 3), False), (make(3, 3),)],
    autocast=Autocast.FLOAT32,
    out=True,
    out_overload="U",
)
def linalg_svd(A, full_matrices, driver):
    """The singular value decomposition, A = U @ diag(S) @ Vh.

    >>> torch.linalg.svd(torch.tensor([[3.0, 0.0], [0.0, 2.0]])).S
    tensor([3., 2.])
    """
    _driver(driver)
    return named(linalg_svd, *aten._linalg_svd(A, full_matrices, True))


@composite(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    samples=lambda make: [(make(4, 3),)],
    autocast=Autocast.FLOAT32,
    out=True,
)
def linalg_svdvals(A, driver):
    """The singular values of matrices, in descending order.

    >>> torch.linalg.svdvals(torch.tensor([[3.0, 0.0], [0.0, 2.0]]))
    tensor([3., 2.])
    """
    _driver(driver)
    return aten._linalg_svd(A, False, bool(A._keys & AUTOGRAD))[1]


@composite(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    samples=lambda make: [(make(4, 3),)],
    autocast=Autocast.FLOAT32,
    out=True,
    out_overload="U",
)
def svd(self, some, compute_uv):
    """The singular value decomposition; `linalg.svd` is to be preferred.

    >>> torch.svd(torch.tensor([[3.0, 0.0], [0.0, 2.0]])).S
    tensor([3., 2.])
    """
    if self._array.ndim < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {self._array.ndim} dimensions instead"
        )
    if compute_uv:
        u, s, vh = aten.linalg_svd(self, not some)
        return named(svd, u, s, aten.mH(vh))
    *batch, m, n = self._array.shape
    return named(
        svd, aten.new_zeros(self, (*batch, m, m)), aten.linalg_svdvals(self), aten.mT(aten.new_zeros(self, (*batch, n, n)))
    )


# ---------------------------------------------------------------- eigenvalues of symmetric matrices


def _symmetric(make):
    a = make(3, 3)
    return [(a + aten.mT(a),)]


@op(
    "_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
    node="LinalgEighBackward0",
    takes_all_grads=True,
    samples=_symmetric,
    shape=lambda A, UPLO, compute_v: [
        (A._array.shape[:-1], _real(A._array)),
        (A._array.shape if compute_v else (0,), A._array.dtype),
    ],
    batching=Batching.LAST_DIMS,
)
def linalg_eigh_kernel(A, UPLO, compute_v):
    check_square_matrices(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_kernel(A, "linalg_eigh_cpu")
    if compute_v:
        values, vectors = la.eigh(A, UPLO.upper())
        return values, la.column_major(vectors)
    return la.eigvalsh(A, UPLO.upper()), np.empty(0, A.dtype)


@linalg_eigh_kernel.vjp
def _(grads, A, UPLO, compute_v, result0, result1):
    values, vectors = (result0, result1) if compute_v else aten._linalg_eigh(A, UPLO, True)
    grad_values, grad_vectors = grads
    adjoint = aten.mH(vectors)
    if grad_vectors is None:
        if grad_values is None:
            return (None,)
        return (aten.matmul(vectors, aten.unsqueeze(grad_values, -1) * adjoint),)
    gap = aten.unsqueeze(values, -2) - aten.unsqueeze(values, -1)
    aten.fill_(aten.diagonal(gap, 0, -2, -1), math.inf)
    # Only one triangle of A is read, and it stands for both: each gets half of the skew part.
    inner = _skew(aten.matmul(adjoint, grad_vectors)) / (2 * gap)
    if grad_values is not None:
        inner = inner + aten.to(aten.diag_embed(grad_values), dtype=inner.dtype)
    return (aten.matmul(aten.matmul(vectors, inner), adjoint),)


def _eigh_tangents(t, A, UPLO, compute_v, result0, result1):
    """The tangent of A is read as Hermitian, whichever triangle of A is."""
    values, vectors = (result0, result1) if compute_v else aten._linalg_eigh(A, UPLO, True)
    rotated = aten.matmul(aten.mH(vectors), aten.matmul(t, vectors))
    tangent = aten.diagonal(rotated, 0, -2, -1)
    if rotated._array.dtype.kind == "c":
        tangent = aten.real(tangent)
    gap = aten.unsqueeze(values, -2) - aten.unsqueeze(values, -1)
    aten.fill_(aten.diagonal(gap, 0, -2, -1), math.inf)
    return tangent, aten.matmul(vectors, rotated / gap) if compute_v else aten.zeros_like(result1)


linalg_eigh_kernel.jvp(A=_eigh_tangents)


@composite(
    "linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
    samples=_symmetric,
    autocast=Autocast.FLOAT32,
    out=True,
    out_overload="eigvals",
)
def linalg_eigh(self, UPLO):
    """The eigenvalues, in ascending order, and eigenvectors of a Hermitian matrix.

    >>> torch.linalg.eigh(torch.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    tensor([2., 3.])
    """
    return named(linalg_eigh, *aten._linalg_eigh(self, UPLO, True))


composite(
    "linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor",
    lambda self, UPLO: aten._linalg_eigh(self, UPLO, bool(self._keys & AUTOGRAD))[0],
    samples=_symmetric,
    autocast=Autocast.FLOAT32,
    out=True,
    doc="""The eigenvalues of a Hermitian matrix, in ascending order.

    >>> torch.linalg.eigvalsh(torch.tensor([[3.0, 0.0], [0.0, 2.0]]))
    tensor([2., 3.])
    """,
)

# ---------------------------------------------------------------- eigenvalues of any matrix


def _check_finite(A, name):
    check_matrices(A, name, square=True)
    if not np.isfinite(A).all():
        raise RuntimeError(f"torch.{name}: input tensor should not contain infs or NaNs.")


@op(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    takes_all_grads=True,
    differentiable_results=1,
    shape=lambda self: [(self._array.shape[:-1], _complex(self._array)), (self._array.shape, _complex(self._array))],
    samples=lambda make: [(make(3, 3),)],
    autocast=Autocast.FLOAT32,
)
def linalg_eig(self):
    """The eigenvalues and eigenvectors of a square matrix, always complex.

    >>> torch.linalg.eig(torch.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    tensor([2.+0.j, 3.+0.j])
    """
    _check_finite(self, "linalg.eig")
    values, vectors = np.linalg.eig(self)
    wanted = _complex(self)
    return values.astype(wanted, copy=False), la.column_major(vectors.astype(wanted, copy=False))


@linalg_eig.vjp
def _(grads, self, result0, result1):
    values, vectors = result0, result1
    grad_values, grad_vectors = grads
    adjoint = aten.mH(vectors)
    if grad_vectors is None:
        inner = aten.unsqueeze(grad_values, -1) * adjoint
    else:
        gap = aten._conj(aten.unsqueeze(values, -2) - aten.unsqueeze(values, -1))
        aten.fill_(aten.diagonal(gap, 0, -2, -1), 1)
        rotated = aten.matmul(adjoint, grad_vectors)
        # Vectors have length 1, so that the part of the gradient along them is removed.
        along = aten.to(aten.unsqueeze(aten.real(aten.diagonal(rotated, 0, -2, -1)), -2), dtype=rotated.dtype)
        part = (rotated - aten.matmul(adjoint, vectors * along)) / gap
        identity = aten.eye(values._array.shape[-1], dtype=rotated.dtype, device=home_of(rotated))
        part = part * (1 - identity)
        if grad_values is not None:
            part = part + aten.diag_embed(grad_values)
        inner = aten.matmul(part, adjoint)
    grad = aten.linalg_solve(aten.mH(vectors), inner)
    return (grad if _is_complex(self) else aten.real(grad),)


@op(
    "_linalg_eigvals(Tensor self) -> Tensor",
    nondiff=True,
    shape=lambda self: (self._array.shape[:-1], _complex(self._array)),
    samples=lambda make: [(make(3, 3),)],
)
def linalg_eigvals_kernel(self):
    _check_finite(self, "linalg.eigvals")
    return np.linalg.eigvals(self).astype(_complex(self), copy=False)


composite(
    "linalg_eigvals(Tensor self) -> Tensor",
    lambda self: aten.linalg_eig(self)[0] if self._keys & AUTOGRAD else aten._linalg_eigvals(self),
    samples=lambda make: [(make(3, 3),)],
    autocast=Autocast.FLOAT32,
    out=True,
    doc="""The eigenvalues of a square matrix, always complex.

    >>> torch.linalg.eigvals(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor([2.+0.j, 3.+0.j])
    """,
)

# ---------------------------------------------------------------- pseudo-inverses and least squares


def _pinv(array, atol, rtol, hermitian):
    if hermitian:
        check_matrices(array, "linalg.eigh", square=True)
    if not array.size:
        return np.zeros((*array.shape[:-2], array.shape[-1], array.shape[-2]), array.dtype)
    if hermitian:
        values, vectors = la.eigh(array)
        size = np.abs(values)
        left, right = vectors, vectors
    else:
        left, values, right = la.svd(array, False)
        size = values
        right = la.adjoint(right)
    limit = np.maximum(atol, rtol * size.max(-1))[..., None]
    inverse = np.divide(1, values, out=np.zeros_like(values), where=size > limit)
    return np.matmul(right * inverse[..., None, :], la.adjoint(left)).astype(array.dtype, copy=False)


def _tolerances(array, atol, rtol):
    """torch's defaults: relative to the largest side, unless an absolute tolerance is given."""
    if array.ndim < 2 or array.dtype.char not in LAPACK:
        shape = ", ".join(map(str, array.shape))
        raise RuntimeError(
            f"linalg.pinv({scalar_name(array)}{{[{shape}]}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )
    if rtol is None:
        rtol = (
            0.0
            if atol is not None and np.any(np.asarray(atol) > 0)
            else float(np.finfo(array.dtype).eps) * max(array.shape[-2:])
        )
    return 0.0 if atol is None else atol, rtol


def pinv_grad(g, inverse, a):
    """The gradient of A from that of its pseudo-inverse."""
    inverse_h, grad_h = aten.mH(inverse), aten.mH(g)
    left = aten.matmul(grad_h, aten.matmul(inverse, inverse_h))
    right = aten.matmul(aten.matmul(inverse_h, inverse), grad_h)
    through_inverse = aten.matmul(aten.matmul(inverse_h, g), inverse_h)
    outer = left - aten.matmul(aten.matmul(a, inverse), left)
    inner = right - aten.matmul(aten.matmul(right, inverse), a)
    return outer + inner - through_inverse


def _pinv_shape(self, *_rest):
    *batch, m, n = self._array.shape
    return (*batch, n, m), self._array.dtype


def _declare_pinv(overload, arguments, tolerances, samples):
    made = op(
        f"linalg_pinv{overload}(Tensor self, {arguments}) -> Tensor",
        lambda self, first, second=None, hermitian=None: _pinv(
            self, *_tolerances(self, *tolerances(first, second)), second if hermitian is None else hermitian
        ),
        shape=_pinv_shape,
        samples=samples,
        doc="""The pseudo-inverse of matrices.

        >>> torch.linalg.pinv(torch.tensor([[2.0], [0.0]]))
        tensor([[0.5000, 0.0000]])
        """,
    )
    made.vjp(self=lambda g, self, result: pinv_grad(g, result, self))
    return made


_declare_pinv(
    ".atol_rtol_float",
    "*, float? atol=None, float? rtol=None, bool hermitian=False",
    lambda atol, rtol: (atol, rtol),
    lambda make: [(make(4, 3),), (make(3, 4),), (spd(make), {"hermitian": True})],
)
_declare_pinv(
    ".atol_rtol_tensor",
    "*, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False",
    lambda atol, rtol: (atol, rtol),
    lambda make: [],
).not_differentiable("atol", "rtol")
_declare_pinv("", "float rcond, bool hermitian=False", lambda rcond, _: (None, rcond), lambda make: [(make(4, 3), 1e-10)])

composite(
    "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    lambda self, rcond: aten.linalg_pinv(self, rcond),
    samples=lambda make: [(make(4, 3),)],
    autocast=Autocast.FLOAT32,
    doc="""The pseudo-inverse of matrices, as `linalg.pinv`.

    >>> torch.pinverse(torch.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """,
)


def _lstsq_shapes(self, b, rcond, driver):
    m, n = self._array.shape[-2:]
    vector = b._array.ndim < self._array.ndim
    rows = (*b._array.shape, 1) if vector else b._array.shape
    batch = np.broadcast_shapes(self._array.shape[:-2], rows[:-2])
    full = m > n and driver not in (None, "gelsy")
    return [
        ((*batch, n) if vector else (*batch, n, rows[-1]), self._array.dtype),
        ((*batch, rows[-1]) if full else (0,), _real(self._array)),
        ((0,) if driver == "gels" else batch, _INT64),
        ((*batch, min(m, n)) if driver in ("gelsd", "gelss") else (0,), _real(self._array)),
    ]


def _check_lstsq(a, b, driver):
    name = "torch.linalg.lstsq"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {scalar_name(a)} "
            f"and other's dtype {scalar_name(b)}"
        )
    if not 0 <= a.ndim - b.ndim <= 1:
        raise RuntimeError(f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")
    side = -1 if b.ndim < a.ndim else -2
    if b.shape[side] != a.shape[-2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({side})")
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    check_matrices(a, name)
    check_batches(a.shape, b.shape if b.ndim == a.ndim else (*b.shape, 1))


@op(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) "
    "-> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    shape=_lstsq_shapes,
    takes_all_grads=True,
    differentiable_results=2,
    samples=lambda make: [
        (make(4, 3), make(4, 2)),
        (make(2, 4, 3), make(2, 4, 1)),
        (make(4, 3), make(4)),
        (make(4, 3), make(4, 2), {"driver": "gelsd"}),
        (make(4, 3), make(4), {"driver": "gels"}),
    ],
    autocast=Autocast.FLOAT32,
)
def linalg_lstsq(self, b, rcond, driver):
    """The solution of a least squares problem: the x for which A @ x is closest to b.

    >>> torch.linalg.lstsq(torch.tensor([[1.0], [1.0]]), torch.tensor([[1.0], [3.0]])).solution
    tensor([[2.0000]])
    """
    driver = driver or "gelsy"
    _check_lstsq(self, b, driver)
    vector = b.ndim < self.ndim
    rows = b[..., None] if vector else b
    m, n = self.shape[-2:]
    matrices, batch = self, self.shape[:-2]
    if rows.shape[:-2] != batch:
        batch = np.broadcast_shapes(batch, rows.shape[:-2])
        matrices = np.broadcast_to(self, (*batch, m, n))
    limit = float(np.finfo(self.dtype).eps) * max(m, n) if rcond is None else rcond
    inverse = _pinv(matrices, 0.0, limit, False)
    # LAPACK writes the solution over the right-hand side, which has more rows where there are more equations than unknowns.
    room = np.empty((*batch, rows.shape[-1], max(m, n)), self.dtype).swapaxes(-1, -2)
    solution = np.matmul(inverse, rows, out=room[..., :n, :])
    values = la.singular_values(matrices)
    rank = (values > limit * values.max(-1, keepdims=True)).sum(-1) if values.size else np.zeros(batch, np.int64)
    residuals = np.empty(0, values.dtype)
    if m > n and (driver == "gels" or (driver != "gelsy" and (np.asarray(rank) == n).all())):
        error = np.matmul(self, solution) - rows
        residuals = (error.real**2 + error.imag**2 if error.dtype.kind == "c" else error**2).sum(-2)
    if driver == "gels":
        rank = np.empty(0, np.int64)
    return (
        solution[..., 0] if vector else solution,
        residuals,
        np.asarray(rank, np.int64),
        values if driver in ("gelsd", "gelss") else np.empty(0, values.dtype),
    )


@linalg_lstsq.not_differentiable("result3").vjp
def _(grads, self, b, result0, result1, needs):
    grad_solution, grad_residuals = grads[:2]
    vector = b._array.ndim < self._array.ndim
    rows = aten.unsqueeze(b, -1) if vector else b
    grad_a = grad_b = None
    if grad_solution is not None:
        g = aten.unsqueeze(grad_solution, -1) if vector else grad_solution
        inverse = aten.linalg_pinv(self)
        grad_a = pinv_grad(aten.matmul(g, aten.mH(rows)), inverse, self) if needs[0] else None
        grad_b = aten.matmul(aten.mH(inverse), g) if needs[1] else None
    if grad_residuals is not None and result1._array.size:
        # At the minimum the residuals do not change with the solution, but with A and b.
        x = aten.unsqueeze(result0, -1) if vector else result0
        error = (aten.matmul(self, x) - rows) * aten.unsqueeze(2 * grad_residuals, -2)
        through = aten.matmul(error, aten.mH(x))
        grad_a = through if grad_a is None else grad_a + through
        grad_b = -error if grad_b is None else grad_b - error
    return grad_a, aten.squeeze(grad_b, -1) if vector and grad_b is not None else grad_b
