"""Reductions: sums, means, extremes and truth over some or all dims."""

from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .._dispatch.registry import aten, composite, op
from ._common import np_dtype, normal_dim, normal_dims, reduced_shape

_INT64 = np.dtype(np.int64)


def _sum_dtype(array, dtype):
    """Integers are summed as int64, everything else in its own dtype."""
    if dtype is not None:
        return np_dtype(dtype)
    return _INT64 if array.dtype.kind in "iub" else array.dtype


def _sum_shape(self, dim=None, keepdim=False, dtype=None):
    return reduced_shape(self._array.shape, dim, keepdim), _sum_dtype(self._array, dtype)


def expand_reduced(g, shape, dim, keepdim):
    """A gradient of a reduction, brought back over the dims that were reduced."""
    if not keepdim and len(shape) and not (dim is None or len(dim) == 0):
        for d in sorted(normal_dims(dim, len(shape))):
            g = aten.unsqueeze(g, d)
    return aten.expand(g, shape)


def _reduce_sum(array, axes, keepdim, dtype):
    if array.dtype is dtype:
        return np.add.reduce(array, axes, None, None, keepdim)
    return np.add.reduce(array, axes, dtype, None, keepdim)


@op("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", shape=lambda self, dtype: _sum_shape(self, None, False, dtype))
def sum_all(self, dtype):
    return _reduce_sum(self, None, False, _sum_dtype(self, dtype))


sum_all.vjp(self=lambda g, self_shape: aten.expand(g, self_shape))


@op("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    shape=_sum_shape, node="SumBackward1")
def sum_dims(self, dim, keepdim, dtype):
    return _reduce_sum(self, normal_dims(dim, self.ndim), keepdim, _sum_dtype(self, dtype))


sum_dims.vjp(self=lambda g, self_shape, dim, keepdim: expand_reduced(g, self_shape, dim, keepdim))


def _mean_dtype(array, dtype):
    if dtype is not None:
        return np_dtype(dtype)
    if array.dtype.kind in "iub":
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or complex "
                           f"dtype. Got: {_scalar_name(array)}")
    return array.dtype


def _scalar_name(array):
    return dt.from_numpy(array.dtype).scalar_name


@op("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    shape=lambda self, dtype: ((), _mean_dtype(self._array, dtype)))
def mean_all(self, dtype):
    total = _reduce_sum(self, None, False, _mean_dtype(self, dtype))
    return np.divide(total, self.size) if self.size else np.full_like(total, np.nan)


mean_all.vjp(self=lambda g, self_shape: aten.expand(g, self_shape) / max(1, _size(self_shape)))


def _size(shape, dim=None):
    return int(np.prod([shape[d] for d in normal_dims(dim, len(shape))], dtype=np.int64)) if len(shape) else 1


@op("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", node="MeanBackward1",
    shape=lambda self, dim, keepdim, dtype: (reduced_shape(self._array.shape, dim, keepdim),
                                             _mean_dtype(self._array, dtype)))
def mean_dims(self, dim, keepdim, dtype):
    axes = normal_dims(dim, self.ndim)
    total = _reduce_sum(self, axes, keepdim, _mean_dtype(self, dtype))
    return np.divide(total, _size(self.shape, axes) if axes else self.size)


mean_dims.vjp(self=lambda g, self_shape, dim, keepdim:
              expand_reduced(g, self_shape, dim, keepdim) / max(1, _size(self_shape, dim)))


# ---------------------------------------------------------------- extremes


def value_selecting_grad(g, dim, index, shape, keepdim):
    """The gradient of picking one element per row: it goes where the element came from."""
    if not keepdim and len(shape):
        g, index = g.unsqueeze(dim), index.unsqueeze(dim)
    return aten.zeros(shape, dtype=g.dtype).scatter(dim, index, g)


def _no_elements(name, array, dim):
    if array.ndim and array.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _extreme(name, ufunc, arg):
    @op(f"{name}(Tensor self) -> Tensor", shape=lambda self: ((), self._array.dtype), node=f"{name.title()}Backward1")
    def whole(self):
        if self.size == 0:
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                               "reduction dim with the 'dim' argument.")
        return ufunc.reduce(self, None)

    def whole_grad(g, self, result):
        mask = self == result
        return mask * (g / mask.sum())

    whole.vjp(self=whole_grad)

    @op(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        node=f"{name.title()}Backward0",
        shape=lambda self, dim, keepdim: [(reduced_shape(self._array.shape, (dim,), keepdim), self._array.dtype),
                                          (reduced_shape(self._array.shape, (dim,), keepdim), _INT64)])
    def along(self, dim, keepdim):
        dim = normal_dim(dim, self.ndim)
        _no_elements(name, self, dim)
        if self.ndim == 0:
            return self.copy(), np.zeros((), np.int64)
        index = arg(self, dim, None, keepdims=True)
        values = np.take_along_axis(self, index, dim)
        return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))

    along.vjp(self=lambda g, self_shape, dim, keepdim, result1:
              value_selecting_grad(g, dim, result1, self_shape, keepdim))

    @op(f"arg{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", nondiff=True,
        shape=lambda self, dim, keepdim:
        (reduced_shape(self._array.shape, None if dim is None else (dim,), keepdim), _INT64))
    def position(self, dim, keepdim):
        if dim is None:
            found = np.asarray(arg(self, None))
            return found.reshape((1,) * self.ndim) if keepdim else found
        dim = normal_dim(dim, self.ndim)
        _no_elements("arg" + name, self, dim)
        return arg(self, dim, None, keepdims=keepdim) if self.ndim else np.zeros((), np.int64)

    @op(f"a{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        shape=lambda self, dim, keepdim: (reduced_shape(self._array.shape, dim, keepdim), self._array.dtype))
    def over(self, dim, keepdim):
        return ufunc.reduce(self, normal_dims(dim, self.ndim), None, None, keepdim)

    def over_grad(g, self, dim, keepdim, result):
        g, result = (expand_reduced(t, self.shape, dim, keepdim) for t in (g, result))
        mask = self == result
        return (g * mask) / mask.sum(normal_dims(dim, self.dim()), True)

    over.vjp(self=over_grad)


_extreme("max", np.maximum, np.argmax)
_extreme("min", np.minimum, np.argmin)


composite("max.other(Tensor self, Tensor other) -> Tensor", lambda self, other: aten.maximum(self, other))
composite("min.other(Tensor self, Tensor other) -> Tensor", lambda self, other: aten.minimum(self, other))


def _truth(name, ufunc):
    op(f"{name}(Tensor self) -> Tensor", lambda self: ufunc.reduce(self.astype(np.bool_, copy=False), None), nondiff=True,
       shape=lambda self: ((), np.dtype(np.bool_)))
    op(f"{name}.dim(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor",
       lambda self, dim, keepdim: ufunc.reduce(self.astype(np.bool_, copy=False), normal_dims(dim, self.ndim), None, None,
                                               keepdim),
       nondiff=True, shape=lambda self, dim, keepdim: (reduced_shape(self._array.shape, dim, keepdim),
                                                       np.dtype(np.bool_)))


_truth("any", np.logical_or)
_truth("all", np.logical_and)
