"""Softmax and its kin."""

from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .._dispatch.registry import aten, composite, op
from ._common import like_first, normal_dim, np_dtype
from ._elementwise import need_float
from ._half import in_float32
from ._rows import FEW, row_sums, small_square

_F32 = np.dtype(np.float32)
# Sums of squares up to here mean that no exponential overflows or vanishes, so that rows need not be centred first.
_TAME = 6400.0
# Rows are taken in blocks of about this many elements, which stay in the cache from one pass to the next.
_BLOCK = 1 << 18


def _by_rows(kernel, out, *arrays):
    """Run a kernel on blocks of rows; it writes to the rows of `out`."""
    width = out.shape[-1]
    rows = [a.reshape(-1, width) for a in arrays]
    target = out.reshape(-1, width)
    step = max(_BLOCK // width, 1)
    if len(target) <= step:
        kernel(target, *rows)
    else:
        for start in range(0, len(target), step):
            kernel(target[start:start + step], *[r[start:start + step] for r in rows])
    return out


def _over_last(dim, *arrays):
    """Whether a reduction over `dim` goes along contiguous rows."""
    return dim == arrays[0].ndim - 1 and all(a.flags.c_contiguous for a in arrays) and arrays[0].size > 0


def _small(array, dim):
    """A matrix of ones that sums the rows of a small matrix over its last dim; None for anything else."""
    if array.dtype is _F32 and array.ndim == 2 and (dim == -1 or dim == 1) and array.size <= FEW:
        return small_square(array.shape[1])
    return None


def _softmax_rows(out, rows):
    np.subtract(rows, np.maximum.reduce(rows, 1, None, None, True), out)
    np.exp(out, out)
    np.multiply(out, np.reciprocal(row_sums(out)), out)


@op("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", shape=like_first, node="SoftmaxBackward0",
    samples=lambda make: [(make(3, 4), 1, False), (make(3, 4), 0, False)])
def softmax_kernel(self, dim, half_to_float):
    ones = _small(self, dim)
    if ones is not None and (flat := self.reshape(-1)).dot(flat) < _TAME:
        made = np.exp(self)
        return np.divide(made, made.dot(ones), made)
    return _softmax(self, dim)


@in_float32
def _softmax(self, dim):
    dim = normal_dim(dim, self.ndim)
    need_float("softmax_lastdim_kernel_impl", self)
    if _over_last(dim, self):
        return _by_rows(_softmax_rows, np.empty(self.shape, self.dtype), self)
    if not self.size:
        return self.copy()
    axis = dim if self.ndim else None
    made = np.asarray(np.subtract(self, np.maximum.reduce(self, axis, None, None, True)))
    np.exp(made, made)
    return np.divide(made, np.add.reduce(made, axis, None, None, True), made)


softmax_kernel.vjp(self=lambda g, result, dim, self_dtype: aten._softmax_backward_data(g, result, dim, self_dtype))


def _softmax_backward_rows(out, grads, outputs):
    np.multiply(grads, outputs, out)
    total = row_sums(out)
    np.subtract(grads, total, out)
    np.multiply(out, outputs, out)


@op("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    shape=like_first, samples=lambda make: [(make(3, 4), make(3, 4), 1, dt.float64)])
def softmax_backward_data(grad_output, output, dim, input_dtype):
    ones = _small(output, dim)
    if ones is not None and grad_output.dtype is _F32:
        made = np.multiply(grad_output, output).dot(ones)
        np.subtract(grad_output, made, made)
        return np.multiply(made, output, made)
    return _softmax_backward(grad_output, output, dim)


@in_float32
def _softmax_backward(grad_output, output, dim):
    dim = normal_dim(dim, output.ndim)
    if _over_last(dim, output, grad_output):
        return _by_rows(_softmax_backward_rows, np.empty(output.shape, output.dtype), grad_output, output)
    made = np.asarray(grad_output * output)
    total = np.add.reduce(made, dim if output.ndim else None, None, None, True)
    return np.subtract(made, output * total, made)


def _softmax_double(g, grad_output, output, dim):
    return g * (grad_output - (grad_output * output).sum(dim, True)) - grad_output * (g * output).sum(dim, True)


softmax_backward_data.vjp(
    grad_output=lambda g, output, dim, input_dtype: aten._softmax_backward_data(g, output, dim, input_dtype),
    output=lambda g, grad_output, output, dim: _softmax_double(g, grad_output, output, dim))


def _log_softmax_rows(out, rows):
    np.subtract(rows, np.maximum.reduce(rows, 1, None, None, True), out)
    np.subtract(out, np.log(row_sums(np.exp(out))), out)


@op("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", shape=like_first, node="LogSoftmaxBackward0",
    samples=lambda make: [(make(3, 4), 1, False), (make(3, 4), 0, False)])
def log_softmax_kernel(self, dim, half_to_float):
    ones = _small(self, dim)
    if ones is not None and (flat := self.reshape(-1)).dot(flat) < _TAME:
        made = np.exp(self).dot(ones)
        np.log(made, made)
        return np.subtract(self, made, made)
    return _log_softmax(self, dim)


@in_float32
def _log_softmax(self, dim):
    dim = normal_dim(dim, self.ndim)
    need_float("log_softmax_lastdim_kernel_impl", self)
    if _over_last(dim, self):
        return _by_rows(_log_softmax_rows, np.empty(self.shape, self.dtype), self)
    if not self.size:
        return self.copy()
    axis = dim if self.ndim else None
    made = np.asarray(np.subtract(self, np.maximum.reduce(self, axis, None, None, True)))
    return np.subtract(made, np.log(np.add.reduce(np.exp(made), axis, None, None, True)), made)


log_softmax_kernel.vjp(self=lambda g, result, dim, self_dtype:
                       aten._log_softmax_backward_data(g, result, dim, self_dtype))


def _log_softmax_backward_rows(out, grads, outputs):
    np.exp(outputs, out)
    np.multiply(out, row_sums(grads), out)
    np.subtract(grads, out, out)


@op("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    shape=like_first, samples=lambda make: [(make(3, 4), make(3, 4), 1, dt.float64)])
def log_softmax_backward_data(grad_output, output, dim, input_dtype):
    ones = _small(output, dim)
    if ones is not None and grad_output.dtype is _F32:
        made = np.exp(output)
        np.multiply(made, grad_output.dot(ones), made)
        return np.subtract(grad_output, made, made)
    return _log_softmax_backward(grad_output, output, dim)


@in_float32
def _log_softmax_backward(grad_output, output, dim):
    dim = normal_dim(dim, output.ndim)
    if _over_last(dim, output, grad_output):
        return _by_rows(_log_softmax_backward_rows, np.empty(output.shape, output.dtype), grad_output, output)
    made = np.asarray(np.exp(output))
    np.multiply(made, np.add.reduce(grad_output, dim if output.ndim else None, None, None, True), made)
    return np.subtract(grad_output, made, made)


log_softmax_backward_data.vjp(
    grad_output=lambda g, output, dim: g - (g * output.exp()).sum(dim, True),
    output=lambda g, grad_output, output, dim: -(g * output.exp() * grad_output.sum(dim, True)))


def _softmax_input(self, dtype):
    """The input in the dtype asked for."""
    return self if dtype is None or np_dtype(dtype) == self._array.dtype else aten.to(self, dtype=dtype)


def _softmax_samples(make):
    return [(make(3, 4), 1), (make(2, 3, 4), 1)]


composite("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
          lambda self, dim, dtype: aten._softmax(_softmax_input(self, dtype), dim, False), samples=_softmax_samples)
composite("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
          lambda self, dim, dtype: aten._log_softmax(_softmax_input(self, dtype), dim, False), samples=_softmax_samples)
