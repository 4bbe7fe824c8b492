"""Weight normalization: a weight as a direction and a length."""

from __future__ import annotations

import numpy as np

from ..._core.threads import threads
from ..._dispatch.registry import aten, composite, op
from .._support.half import in_float32


def _others(ndim, dim):
    return tuple(i for i in range(ndim) if i != dim)


@composite("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", samples=lambda make: [(make(3, 4), 2, 1)])
def norm_except_dim(v, pow, dim):
    """The norm over all dims but one.

    >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0]]), 2, 0)
    tensor([[5.]])
    """
    shape = v._array.shape
    if dim == -1:
        return aten.norm(v, pow)
    if dim == 0:
        flat = aten.view(v.contiguous(), (shape[0], -1))
        return aten.view(aten.norm(flat, pow, (1,)), (shape[0], *(1,) * (len(shape) - 1)))
    if dim == len(shape) - 1:
        flat = aten.view(v.contiguous(), (-1, shape[-1]))
        return aten.view(aten.norm(flat, pow, (0,)), (*(1,) * (len(shape) - 1), shape[-1]))
    return aten.transpose(aten.norm_except_dim(aten.transpose(v, 0, dim), pow, 0), 0, dim)


@composite("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", samples=lambda make: [(make(3, 4), make(3, 1))])
def weight_norm(v, g, dim):
    if dim in (0, v._array.ndim - 1):
        return aten._weight_norm_interface(v, g, dim)[0]
    return aten.mul(v, aten.div(g, aten.norm_except_dim(v, 2, dim)))


@op(
    "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
    shape=lambda v, g, dim: [(v._array.shape, v._array.dtype), (g._array.shape, g._array.dtype)],
    samples=lambda make: [(make(3, 4), make(3, 1)), (make(3, 4), make(1, 4), 1)],
)
@in_float32
def weight_norm_interface(v, g, dim):
    norms = np.sqrt(np.add.reduce(np.multiply(v, v), _others(v.ndim, dim % v.ndim), None, None, True))
    return v * (g / norms), norms


@weight_norm_interface.not_differentiable("result1").vjp
def _(grad, v, g, dim, result1):
    if threads.state.grad_enabled:
        return aten._weight_norm_differentiable_backward(grad, v, g, result1, dim)
    return aten._weight_norm_interface_backward(grad, v, g, result1, dim)


@op(
    "_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) "
    "-> (Tensor, Tensor)",
    samples=lambda make: [],
    shape=lambda grad_w, saved_v, saved_g, *_: [
        (saved_v._array.shape, saved_v._array.dtype),
        (saved_g._array.shape, saved_g._array.dtype),
    ],
)
@in_float32
def weight_norm_interface_backward(grad_w, saved_v, saved_g, saved_norms, dim):
    along = np.add.reduce(np.multiply(grad_w, saved_v), _others(saved_v.ndim, dim % saved_v.ndim), None, None, True)
    along /= saved_norms
    return (saved_g / saved_norms) * (grad_w - saved_v * (along / saved_norms)), along


@composite(
    "_weight_norm_differentiable_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, "
    "int dim) -> (Tensor, Tensor)",
    samples=lambda make: [],
)
def weight_norm_differentiable_backward(grad_w, saved_v, saved_g, saved_norms, dim):
    """The backward pass composed of ops. The norms are computed again, since the saved ones have no history to v."""
    dims = _others(saved_v._array.ndim, dim % saved_v._array.ndim)
    norms = aten.sqrt(aten.sum(saved_v * saved_v, dims, True))
    along = aten.sum(grad_w * saved_v, dims, True) / norms
    return (saved_g / norms) * (grad_w - saved_v * (along / norms)), along
