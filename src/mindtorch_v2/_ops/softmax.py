"""Softmax and its kin."""

from __future__ import annotations

import numpy as np

from .._dispatch.registry import aten, composite, op
from ._common import like_first, normal_dim, np_dtype


@op("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", shape=like_first, node="SoftmaxBackward0")
def softmax_kernel(self, dim, half_to_float):
    dim = normal_dim(dim, self.ndim)
    if not self.size:
        return self.copy()
    axis = dim if self.ndim else None
    made = np.subtract(self, np.maximum.reduce(self, axis, None, None, True))
    np.exp(made, made)
    return np.divide(made, np.add.reduce(made, axis, None, None, True), made)


softmax_kernel.vjp(self=lambda g, result, dim, self_dtype: aten._softmax_backward_data(g, result, dim, self_dtype))


@op("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    shape=like_first)
def softmax_backward_data(grad_output, output, dim, input_dtype):
    dim = normal_dim(dim, output.ndim)
    made = grad_output * output
    total = np.add.reduce(made, dim if output.ndim else None, None, None, True)
    return np.subtract(made, output * total, made)


def _softmax_double(g, grad_output, output, dim):
    return g * (grad_output - (grad_output * output).sum(dim, True)) - grad_output * (g * output).sum(dim, True)


softmax_backward_data.vjp(
    grad_output=lambda g, output, dim, input_dtype: aten._softmax_backward_data(g, output, dim, input_dtype),
    output=lambda g, grad_output, output, dim: _softmax_double(g, grad_output, output, dim))


@op("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", shape=like_first, node="LogSoftmaxBackward0")
def log_softmax_kernel(self, dim, half_to_float):
    dim = normal_dim(dim, self.ndim)
    if not self.size:
        return self.copy()
    axis = dim if self.ndim else None
    made = np.subtract(self, np.maximum.reduce(self, axis, None, None, True))
    return np.subtract(made, np.log(np.add.reduce(np.exp(made), axis, None, None, True)), made)


log_softmax_kernel.vjp(self=lambda g, result, dim, self_dtype: aten._log_softmax_backward_data(g, result, dim, self_dtype))


@op("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    shape=like_first)
def log_softmax_backward_data(grad_output, output, dim, input_dtype):
    dim = normal_dim(dim, output.ndim)
    made = np.exp(output)
    made *= np.add.reduce(grad_output, dim if output.ndim else None, None, None, True)
    return np.subtract(grad_output, made, made)


log_softmax_backward_data.vjp(
    grad_output=lambda g, output, dim: g - (g * output.exp()).sum(dim, True),
    output=lambda g, grad_output, output, dim: -(g * output.exp() * grad_output.sum(dim, True)))


def _softmax_input(self, dtype):
    """The input in the dtype asked for; integers become floats."""
    return self if dtype is None or np_dtype(dtype) == self._array.dtype else aten.to(self, dtype=dtype)


composite("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
          lambda self, dim, dtype: aten._softmax(_softmax_input(self, dtype), dim, False))
composite("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
          lambda self, dim, dtype: aten._log_softmax(_softmax_input(self, dtype), dim, False))
