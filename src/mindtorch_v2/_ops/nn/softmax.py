"""Softmax, log_softmax and their derivatives."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._core import parallel
from ..._dispatch.facts import Batching, Layout
from ..._dispatch.registry import aten, composite, op
from .._support.blas_sums import row_dots, spread_row_sums
from .._support.common import like_first, normal_dim, np_dtype
from .._support.elementwise import exp_is_safe, need_float
from .._support.flops import per_element
from .._support.half import in_float32

# Rows of up to so many elements are summed faster all together than one by one.
_SHORT = 64
# Up to here BLAS computes on one thread by itself.
_FEW = 8192


def _has_rows(array, dim):
    """Whether an array of float32 or float64 has contiguous rows along `dim`."""
    last = array.ndim - 1
    return (dim == last or dim == -1) and last >= 0 and array.dtype.char in "fd" and array.flags.c_contiguous and array.size > 0


def _by_rows(kernel, *arrays):
    """The result of a kernel that takes (n, m) arrays and `out`, on arrays of one shape, block by block."""
    first = arrays[0]
    if first.ndim == 2 and first.size <= _FEW:
        return kernel(*arrays)
    out = np.empty(first.shape, first.dtype)
    width = first.shape[-1]
    rows = [a.reshape(-1, width) for a in (*arrays, out)]
    step = max(parallel.elements_of_block(first.size) // width, 1)
    parallel.blocks(len(rows[0]), step, lambda part: kernel(*[r[part] for r in rows]))
    return out


def _softmax_rows(rows, out=None):
    if not exp_is_safe(rows):
        rows = out = np.subtract(rows, np.maximum.reduce(rows, 1, None, None, True), out)
    powers = np.exp(rows, out)
    totals = spread_row_sums(powers)
    return np.divide(powers, totals, powers)


@op(
    "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    layout=Layout.ROW_MAJOR,
    shape=like_first,
    node="SoftmaxBackward0",
    samples=lambda make: [(make(3, 4), 1, False), (make(3, 4), 0, False)],
    batching=Batching.ALONG_DIM,
    flops=per_element(4),
)
def softmax_kernel(self, dim, half_to_float):
    return _by_rows(_softmax_rows, self) if _has_rows(self, dim) else _softmax_along(self, dim)


@in_float32
def _softmax_along(self, dim):
    dim = normal_dim(dim, self.ndim)
    if not self.size:
        return self.copy()
    need_float("softmax_lastdim_kernel_impl", self)
    axis = dim if self.ndim else None
    powers = np.asarray(np.subtract(self, np.maximum.reduce(self, axis, None, None, True)))
    np.exp(powers, powers)
    return np.divide(powers, np.add.reduce(powers, axis, None, None, True), powers)


softmax_kernel.vjp(self=lambda g, result, dim, self_dtype: aten._softmax_backward_data(g, result, dim, self_dtype))


def _softmax_backward_rows(grads, outputs, out=None):
    if grads.shape[1] > _SHORT:
        out = np.subtract(grads, row_dots(grads, outputs), out)
    else:
        out = np.multiply(outputs, grads, out)
        np.subtract(grads, spread_row_sums(out), out)
    return np.multiply(out, outputs, out)


@op(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    layout=Layout.ROW_MAJOR,
    shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4), 1, dt.float64)],
    flops=per_element(4),
)
def softmax_backward_data(grad_output, output, dim, input_dtype):
    if _has_rows(output, dim):
        return _by_rows(_softmax_backward_rows, grad_output, output)
    return _softmax_backward_along(grad_output, output, dim)


@in_float32
def _softmax_backward_along(grad_output, output, dim):
    dim = normal_dim(dim, output.ndim)
    grad = np.asarray(grad_output * output)
    total = np.add.reduce(grad, dim if output.ndim else None, None, None, True)
    return np.subtract(grad, output * total, grad)


def _softmax_double(g, grad_output, output, dim):
    return g * (grad_output - (grad_output * output).sum(dim, True)) - grad_output * (g * output).sum(dim, True)


softmax_backward_data.vjp(
    grad_output=lambda g, output, dim, input_dtype: aten._softmax_backward_data(g, output, dim, input_dtype),
    output=_softmax_double,
)


def _log_softmax_rows(rows, out=None):
    if not exp_is_safe(rows):
        rows = np.subtract(rows, np.maximum.reduce(rows, 1, None, None, True), out)
    totals = spread_row_sums(np.exp(rows))
    return np.subtract(rows, np.log(totals, totals), out)


@op(
    "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    layout=Layout.ROW_MAJOR,
    shape=like_first,
    node="LogSoftmaxBackward0",
    samples=lambda make: [(make(3, 4), 1, False), (make(3, 4), 0, False)],
    batching=Batching.ALONG_DIM,
    flops=per_element(4),
)
def log_softmax_kernel(self, dim, half_to_float):
    return _by_rows(_log_softmax_rows, self) if _has_rows(self, dim) else _log_softmax_along(self, dim)


@in_float32
def _log_softmax_along(self, dim):
    dim = normal_dim(dim, self.ndim)
    if not self.size:
        return self.copy()
    need_float("log_softmax_lastdim_kernel_impl", self)
    axis = dim if self.ndim else None
    centered = np.asarray(np.subtract(self, np.maximum.reduce(self, axis, None, None, True)))
    return np.subtract(centered, np.log(np.add.reduce(np.exp(centered), axis, None, None, True)), centered)


log_softmax_kernel.vjp(self=lambda g, result, dim, self_dtype: aten._log_softmax_backward_data(g, result, dim, self_dtype))


def _log_softmax_backward_rows(grads, outputs, out=None):
    out = np.exp(outputs, out)
    np.multiply(out, spread_row_sums(grads), out)
    return np.subtract(grads, out, out)


@op(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    layout=Layout.ROW_MAJOR,
    shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4), 1, dt.float64)],
    flops=per_element(4),
)
def log_softmax_backward_data(grad_output, output, dim, input_dtype):
    if _has_rows(output, dim):
        return _by_rows(_log_softmax_backward_rows, grad_output, output)
    return _log_softmax_backward_along(grad_output, output, dim)


@in_float32
def _log_softmax_backward_along(grad_output, output, dim):
    dim = normal_dim(dim, output.ndim)
    grad = np.asarray(np.exp(output))
    np.multiply(grad, np.add.reduce(grad_output, dim if output.ndim else None, None, None, True), grad)
    return np.subtract(grad_output, grad, grad)


log_softmax_backward_data.vjp(
    grad_output=lambda g, output, dim: g - (g * output.exp()).sum(dim, True),
    output=lambda g, grad_output, output, dim: -(g * output.exp() * grad_output.sum(dim, True)),
)


def _as(self, dtype):
    return self if np_dtype(dtype) == self._array.dtype else aten.to(self, dtype=dtype)


def _softmax_samples(make):
    return [(make(3, 4), 1), (make(2, 3, 4), 1)]


_softmax, _log_softmax = softmax_kernel.call, log_softmax_kernel.call


@composite("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", samples=_softmax_samples, out=True)
def softmax(self, dim, dtype):
    """Exponentials divided by their sum along `dim`: positive numbers that add up to 1.

    >>> torch.softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.0900, 0.2447, 0.6652])
    """
    return _softmax(self if dtype is None else _as(self, dtype), dim, False)


@composite("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", samples=_softmax_samples, out=True)
def log_softmax(self, dim, dtype):
    """The logarithm of the softmax along `dim`, without overflow.

    >>> torch.log_softmax(torch.tensor([1.0, 1.0]), 0)
    tensor([-0.6931, -0.6931])
    """
    return _log_softmax(self if dtype is None else _as(self, dtype), dim, False)
