"""Gated linear units: one half of a tensor decides how much of the other passes."""

from __future__ import annotations

import numpy as np

from ..._dispatch.facts import Batching
from ..._dispatch.registry import aten, op
from .._support.common import like_first, normal_dim
from .._support.elementwise import constant, logistic, need_float
from .._support.flops import per_element
from .._support.half import in_float32


def _halves(array, dim):
    """Both halves along a dim; RuntimeError for a dim of odd size."""
    if array.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    dim = normal_dim(dim, array.ndim)
    size = array.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    lead = (slice(None),) * dim
    return array[(*lead, slice(0, size // 2))], array[(*lead, slice(size // 2, size))]


def _half_shape(self, dim):
    shape = list(self._array.shape)
    shape[dim] //= 2
    return tuple(shape), self._array.dtype


@op(
    "glu(Tensor self, int dim=-1) -> Tensor",
    shape=_half_shape,
    samples=lambda make: [(make(3, 4), 1)],
    batching=Batching.ALONG_DIM,
    flops=per_element(3),
)
@in_float32
def glu(self, dim):
    """One half of a dim times the sigmoid of the other half.

    >>> F.glu(torch.tensor([1.0, 0.0]))
    tensor([0.5000])
    """
    need_float("glu_cpu", self)
    a, b = _halves(self, dim)
    gate = logistic(b)
    return np.multiply(a, gate, gate)


glu.vjp(self=lambda g, self, dim: aten.glu_backward(g, self, dim))


@op(
    "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    shape=lambda grad_output, self, dim: like_first(self),
    samples=lambda make: [(make(3, 2), make(3, 4), 1)],
    flops=per_element(5),
)
@in_float32
def glu_backward(grad_output, self, dim):
    a, b = _halves(self, dim)
    grad_input = np.empty(self.shape, self.dtype)
    grad_a, grad_b = _halves(grad_input, dim)
    gate = logistic(b)
    np.multiply(grad_output, gate, grad_a)
    np.multiply(grad_a, a, grad_b)
    np.subtract(constant(1, gate.dtype), gate, gate)
    np.multiply(grad_b, gate, grad_b)
    return grad_input


def _glu_backward_grad(g, self, dim):
    (ga, gb), (a, b) = g.chunk(2, dim), self.chunk(2, dim)
    s = b.sigmoid()
    return ga * s + gb * a * s * (1 - s)


def _glu_backward_self(g, grad_output, self, dim):
    (ga, gb), (a, b) = g.chunk(2, dim), self.chunk(2, dim)
    s = b.sigmoid()
    bend = s * (1 - s)
    return aten.cat([gb * grad_output * bend, ga * grad_output * bend + gb * grad_output * a * bend * (1 - 2 * s)], dim)


glu_backward.vjp(grad_output=_glu_backward_grad, self=_glu_backward_self)
