"""Softmax and its kin."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._core.keys import AUTOGRAD
from ..._core.tensor import make_tensor
from ..._dispatch import entry_globals
from ..._dispatch.registry import aten, composite, op
from .._support.blas_sums import exp_safe_sums, row_sums, small_sums
from .._support.common import like_first, normal_dim, np_dtype
from .._support.elementwise import need_float
from .._support.half import in_float32

_F32 = np.dtype(np.float32)
# On small arrays looking a function up is a part of the cost.
_divide, _exp, _log, _multiply, _subtract = np.divide, np.exp, np.log, np.multiply, np.subtract
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
            kernel(target[start : start + step], *[r[start : start + step] for r in rows])
    return out


def _over_last(dim, *arrays):
    """Whether a reduction over `dim` goes along contiguous rows."""
    return dim == arrays[0].ndim - 1 and all(a.flags.c_contiguous for a in arrays) and arrays[0].size > 0


def _softmax_rows(out, rows):
    np.subtract(rows, np.maximum.reduce(rows, 1, None, None, True), out)
    np.exp(out, out)
    np.multiply(out, np.reciprocal(row_sums(out)), out)


@op(
    "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    shape=like_first,
    node="SoftmaxBackward0",
    samples=lambda make: [(make(3, 4), 1, False), (make(3, 4), 0, False)],
)
def softmax_kernel(self, dim, half_to_float):
    if (dim == -1 or dim == 1) and (ones := exp_safe_sums(self)) is not None:
        made = _exp(self)
        return _divide(made, made.dot(ones), made)
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


@op(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4), 1, dt.float64)],
)
def softmax_backward_data(grad_output, output, dim, input_dtype):
    if (dim == -1 or dim == 1) and grad_output.dtype is _F32 and (ones := small_sums(output)) is not None:
        made = _multiply(grad_output, output).dot(ones)
        return _multiply(_subtract(grad_output, made, made), output, made)
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
    output=lambda g, grad_output, output, dim: _softmax_double(g, grad_output, output, dim),
)


def _log_softmax_rows(out, rows):
    np.subtract(rows, np.maximum.reduce(rows, 1, None, None, True), out)
    np.subtract(out, np.log(row_sums(np.exp(out))), out)


@op(
    "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    shape=like_first,
    node="LogSoftmaxBackward0",
    samples=lambda make: [(make(3, 4), 1, False), (make(3, 4), 0, False)],
)
def log_softmax_kernel(self, dim, half_to_float):
    if (dim == -1 or dim == 1) and (ones := exp_safe_sums(self)) is not None:
        made = _exp(self).dot(ones)
        return _subtract(self, _log(made, made), made)
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


log_softmax_kernel.vjp(self=lambda g, result, dim, self_dtype: aten._log_softmax_backward_data(g, result, dim, self_dtype))


def _log_softmax_backward_rows(out, grads, outputs):
    np.exp(outputs, out)
    np.multiply(out, row_sums(grads), out)
    np.subtract(grads, out, out)


@op(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4), 1, dt.float64)],
)
def log_softmax_backward_data(grad_output, output, dim, input_dtype):
    if (dim == -1 or dim == 1) and grad_output.dtype is _F32 and (ones := small_sums(output)) is not None:
        made = _exp(output)
        return _subtract(grad_output, _multiply(made, grad_output.dot(ones), made), made)
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
    output=lambda g, grad_output, output, dim: -(g * output.exp() * grad_output.sum(dim, True)),
)


def _as(self, dtype):
    return self if np_dtype(dtype) == self._array.dtype else aten.to(self, dtype=dtype)


def _softmax_samples(make):
    return [(make(3, 4), 1), (make(2, 3, 4), 1)]


_softmax_call, _softmax_kernel = softmax_kernel.call, softmax_kernel.kernel
_log_softmax_call, _log_softmax_kernel = log_softmax_kernel.call, log_softmax_kernel.kernel


@composite("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", samples=_softmax_samples)
def softmax(self, dim, dtype):
    keys = self._keys
    if dtype is not None or keys > AUTOGRAD or entry_globals.observers_active:
        return _softmax_call(self if dtype is None else _as(self, dtype), dim, False)
    # What the op does, when there is nobody to see it.
    made = make_tensor(_softmax_kernel(self._array, dim, False))
    if keys:
        entry_globals.attach(softmax_kernel, (self, dim, False), made)
    return made


@composite("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", samples=_softmax_samples)
def log_softmax(self, dim, dtype):
    keys = self._keys
    if dtype is not None or keys > AUTOGRAD or entry_globals.observers_active:
        return _log_softmax_call(self if dtype is None else _as(self, dtype), dim, False)
    made = make_tensor(_log_softmax_kernel(self._array, dim, False))
    if keys:
        entry_globals.attach(log_softmax_kernel, (self, dim, False), made)
    return made
