"""Vector norms, under all the names they have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.tensor import Tensor
from ..._dispatch.facts import Batching, Layout, Overlap, Surface
from ..._dispatch.registry import aten, composite, op
from .._support.blas_sums import row_dots
from .._support.common import like_first, normal_dim, normal_dims, np_dtype, reduced_shape, scalar_name
from .._support.flops import per_element
from .._support.half import is_narrow
from ..pointwise.arithmetic import conj
from ..reduction.reduce import by_dims, unsqueezed
from ..reduction.statistics import real_sum

_FLOAT32 = np.dtype(np.float32)
_SOME = 1 << 12  # more elements are squared and added up by BLAS


def _real(dtype):
    return dt.from_numpy(dtype).to_real().np


def _check_dtype(name, input_dtype, wanted):
    """A norm is computed in the dtype of its input or a wider one of the same kind."""
    if not (wanted.is_floating_point or wanted.is_complex):
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {wanted.scalar_name}")
    if input_dtype.is_complex != wanted.is_complex:
        kind = "complex" if input_dtype.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {wanted.scalar_name}")
    if dt.promote_types(input_dtype, wanted) is not wanted:
        raise RuntimeError(
            f"{name}: the dtype of the input ({input_dtype.scalar_name}) should be convertible without narrowing to "
            f"the specified dtype ({wanted.scalar_name})"
        )


def _norm(self, order, dim, keepdim, dtype, name="linalg.vector_norm"):
    if self.dtype.kind not in "fcVW":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(self)}")
    if dtype is not None:
        _check_dtype(name, dt.from_numpy(self.dtype), dt.from_numpy(np_dtype(dtype)))
        self = self.astype(np_dtype(dtype))
    if order.__class__ is complex:
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm.")
    wanted = _real(self.dtype)
    axes = normal_dims(dim, self.ndim)
    if (
        order == 2
        and not keepdim
        and len(axes) == self.ndim
        and self.flags.c_contiguous
        and self.dtype.kind == "f"
        and self.itemsize >= 4
    ):
        flat = self.reshape(-1)
        return np.sqrt(flat.dot(flat)) if flat.size != 1 else np.abs(flat[0])
    if order == 2 and self.size > _SOME and axes == (self.ndim - 1,) and self.flags.c_contiguous and self.dtype.char in "fd":
        rows = self.reshape(-1, self.shape[-1])
        norm = np.sqrt(row_dots(rows, rows))
        return norm.reshape(*self.shape[:-1], *[1] * keepdim)
    size = np.abs(self)
    if is_narrow(wanted):
        size = size.astype(_FLOAT32)
    if not self.size and (order < 0 or math.isinf(order)) and any(self.shape[d] == 0 for d in axes):
        empty = next(d for d in axes if self.shape[d] == 0)
        where = (
            f"the dimension {empty} because this dimension is empty and"
            if dim is not None and len(dim)
            else "an empty tensor because"
        )
        raise RuntimeError(f"{name} cannot compute the {order} norm on {where} the operation does not have an identity")
    if math.isinf(order):
        norm = (np.maximum if order > 0 else np.minimum).reduce(size, axes, None, None, keepdim)
    elif order and self.size and all(self.shape[d] == 1 for d in axes):  # of one element: no power that could overflow
        norm = size if keepdim else size.reshape(reduced_shape(self.shape, axes, False))
    elif order == 0:
        norm = np.add.reduce(size != 0, axes, size.dtype, None, keepdim)
    elif order == 1:
        norm = np.add.reduce(size, axes, None, None, keepdim)
    elif order == 2:
        norm = np.sqrt(np.add.reduce(np.multiply(size, size), axes, None, None, keepdim))
    else:
        norm = np.power(np.add.reduce(np.power(size, order), axes, None, None, keepdim), 1.0 / order)
    return np.asarray(norm).astype(wanted, copy=False)


def norm_grad(g, self, p, result, dim, keepdim):
    """The gradient of a p-norm; 0 where the norm is 0."""
    if p == 0:
        return None
    if dim is not None and len(dim):
        shape = self._array.shape
        g, result = unsqueezed(g, shape, dim, keepdim), unsqueezed(result, shape, dim, keepdim)
    if p == 1:
        return self.sgn() * g
    if p == 2:
        direction = aten.masked_fill_(self / result, result == 0, 0)
        return direction * g
    if math.isinf(p):
        largest = aten.logical_or(self.abs() == result, self.isnan())
        count = aten.sum(largest, normal_dims(dim, self._array.ndim), True)
        share = (g / count) * largest
        return self.sgn() * share
    if p < 1:
        scaled = self.sgn() * self.abs().pow_(p - 1).masked_fill_(self == 0, 0)
        return (scaled * g) * result.pow(1 - p)
    scaled = self.sgn() * self.abs().pow_(p - 1) if p < 2 else self * self.abs().pow_(p - 2)
    slope = g / result.pow(p - 1)
    return scaled * aten.masked_fill_(slope, result == 0, 0)


def _norm_tangent(t, self, p, result, dim, keepdim):
    """The tangent of a norm: the inner product of its gradient with the tangent of self."""
    if p == 0:
        return aten.zeros_like(result)
    slope = norm_grad(aten.ones_like(result), aten.to(self, dtype=t.dtype), p, result, dim, keepdim)
    return real_sum(conj(slope) * t, dim, keepdim)


def _norm_shape(self, p, dim=None, keepdim=False, dtype=None):
    return reduced_shape(self._array.shape, dim, keepdim), _real(np_dtype(dtype, self._array.dtype))


@op(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    layout=Layout.ROW_MAJOR,
    shape=_norm_shape,
    samples=lambda make: [
        (make(3, 4),),
        (make(3, 4), 1, 1),
        (make(3, 4), 3, (0, 1), True),
        (make(3, 4), 1.5, 0),
        (make(3, 4), math.inf, 1),
        (make(3, 4), 0.5),
    ],
    batching=Batching.REDUCTION,
    flops=per_element(2),
)
def linalg_vector_norm(self, ord, dim, keepdim, dtype):
    """The norm of vectors along dims; all elements are one vector if none is named.

    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return _norm(self, ord, dim, keepdim, dtype)


linalg_vector_norm.vjp(self=lambda g, self, ord, dim, keepdim, result: norm_grad(g, self, ord, result, dim, keepdim))
linalg_vector_norm.jvp(self=lambda t, self, ord, dim, keepdim, result: _norm_tangent(t, self, ord, result, dim, keepdim))


def _p(p):
    return 2 if p is None else p


norm = op(
    "norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
    lambda self, p: _norm(self, p, None, False, None),
    shape=_norm_shape,
    flops=per_element(2),
    doc="""The p-norm of all elements or along dims; `linalg.norm` is to be preferred.

    >>> torch.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """,
    handwritten=Surface.BOTH,
)
norm.vjp(self=lambda g, self, p, result: norm_grad(g, self, p, result, None, False))
norm.jvp(self=lambda t, self, p, result: _norm_tangent(t, self, p, result, None, False))

norm_dims = op(
    "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    lambda self, p, dim, keepdim: _norm(self, _p(p), dim, keepdim, None),
    node="NormBackward1",
    shape=_norm_shape,
    samples=lambda make: [(make(3, 4), 2, 1), (make(3, 4), 3, (0, 1), True)],
    flops=per_element(2),
    out_overload="out",
    handwritten=Surface.BOTH,
)
norm_dims.vjp(self=lambda g, self, p, dim, keepdim, result: norm_grad(g, self, _p(p), result, dim, keepdim))
norm_dims.jvp(self=lambda t, self, p, dim, keepdim, result: _norm_tangent(t, self, _p(p), result, dim, keepdim))

norm_dtype = op(
    "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
    lambda self, p, dtype: _norm(self, _p(p), None, False, dtype),
    node="NormBackward2",
    shape=lambda self, p, dtype: _norm_shape(self, p, None, False, dtype),
    samples=lambda make: [(make(3, 4), 2, {"dtype": dt.float64})],
    flops=per_element(2),
    handwritten=Surface.BOTH,
)
norm_dtype.vjp(self=lambda g, self, p, result: norm_grad(g, aten.to(self, dtype=g.dtype), _p(p), result, None, False))

norm_dims_dtype = op(
    "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
    lambda self, p, dim, keepdim, dtype: _norm(self, _p(p), dim, keepdim, dtype),
    node="NormBackward3",
    shape=_norm_shape,
    samples=lambda make: [(make(3, 4), 2, 1, False, {"dtype": dt.float64})],
    flops=per_element(2),
    out_overload="dtype_out",
    handwritten=Surface.BOTH,
)
norm_dims_dtype.vjp(
    self=lambda g, self, p, dim, keepdim, result: norm_grad(g, aten.to(self, dtype=g.dtype), _p(p), result, dim, keepdim)
)

composite(
    "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    lambda self, dim, keepdim: aten.norm(self, 2, dim, keepdim),
    samples=by_dims,
    out=True,
    out_overload="out",
    doc="""The root of the sum of squares along dims.

    >>> torch.ops.aten.frobenius_norm(torch.tensor([[3.0, 4.0]]), [0, 1])
    tensor(5.)
    """,
)
composite(
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
    lambda self, keepdim: aten.linalg_matrix_norm(self, "nuc", (-2, -1), keepdim),
    out=True,
    doc="""The sum of the singular values of a matrix.

    >>> torch.ops.aten.nuclear_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(7.)
    """,
)


# ---------------------------------------------------------------- slices of bounded norm


def _other_dims(array, dim):
    kept = normal_dim(dim, array.ndim)
    return tuple(d for d in range(array.ndim) if d != kept)


@op(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    checks_overlap=Overlap.PART,
    layout=Layout.ROW_MAJOR,
    inplace=True,
    shape=like_first,
    samples=lambda make: [(make(3, 4), 2, 0, 0.5), (make(3, 4), 3, 1, 100.0)],
)
def renorm(self, p, dim, maxnorm):
    """Shortens the slices along `dim` whose p-norm exceeds `maxnorm`.

    >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    if p.__class__ is complex:
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    norms = _norm(self, p, _other_dims(self, dim), True, None)
    return np.multiply(self, np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1).astype(norms.dtype))


def _renorm_grad(g, self, p, dim, maxnorm):
    others = _other_dims(self._array, dim)
    norms = aten.linalg_vector_norm(self, p, others, True)
    along = conj(self) * g
    if norms.dtype is not along.dtype:  # norms are real, also those of complex numbers
        along = aten.real(along)
    total = aten.sum(along, others, True)
    slope = norm_grad(total, self, p, norms, others, True)
    inverse = (norms + 1e-7).reciprocal()
    bounded = (g - slope * inverse) * (inverse * maxnorm)
    return aten.where(norms > maxnorm, bounded, g)


renorm.vjp(self=_renorm_grad)


def norm_function(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Tensor:
    """torch.norm and Tensor.norm: a vector norm, unless p="nuc"."""
    if isinstance(dim, int):
        dim = (dim,)
    into = {} if out is None else {"out": out}
    if p == "nuc":
        return aten.linalg_matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype, **into)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    return aten.linalg_vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype, **into)


METHODS = {"norm": lambda self, p="fro", dim=None, keepdim=False, dtype=None: norm_function(self, p, dim, keepdim, dtype=dtype)}
FUNCTIONS = {"norm": norm_function}
