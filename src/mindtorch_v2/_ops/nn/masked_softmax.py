"""Softmax over the elements that a mask leaves, as the fused attention of encoders takes it."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.registry import aten, op
from .._support.common import like_first, normal_dim, unexpected_dtype
from .._support.elementwise import need_float
from .._support.half import in_float32

# The values of mask_type: the mask has the input's last two dims, its first and its last dim, or all of them.
_SOURCE, _PADDING, _WHOLE = range(3)


def _wide_mask(shape, mask, mask_type):
    if mask.dtype != dt.bool_.np:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask.shape == shape:
        return mask
    if mask_type is None and len(shape) == 4 and mask.ndim == 2:
        raise RuntimeError("Mask Type should be defined")
    if mask_type == _SOURCE:
        if len(shape) != 4 or mask.shape != shape[2:]:
            raise RuntimeError("For mask_type == 0 mask shape should be (L, L)")
        return mask[None, None]
    if mask_type == _PADDING:
        if len(shape) != 4 or mask.shape != (shape[0], shape[3]):
            raise RuntimeError("For mask_type == 1 mask shape should be (B, L)")
        return mask[:, None, None]
    if mask_type is None or mask_type == _WHOLE:
        raise RuntimeError("For mask_type == 2 mask shape should match input shape")
    raise RuntimeError("Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)")


def _corner():
    """A mask for samples that leaves some elements of each row."""
    return aten.gt(aten.triu(aten.ones((3, 4)), 2), 0)


@op(
    "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
    shape=like_first,
    node="MaskedSoftmaxBackward0",
    samples=lambda make: [(make(3, 4), _corner(), 1), (make(3, 4), _corner(), 0)],
)
@in_float32
def masked_softmax(self, mask, dim, mask_type):
    """Softmax without the elements where the mask is true; a row without any others is nan."""
    need_float("masked_softmax", self)
    wide = np.broadcast_to(_wide_mask(self.shape, mask, mask_type), self.shape)
    axis = normal_dim(-1 if dim is None else dim, self.ndim)
    with np.errstate(invalid="ignore", divide="ignore"):
        powers = np.where(wide, self.dtype.type(-np.inf), self)
        powers -= np.maximum(np.max(powers, axis, keepdims=True, initial=-np.inf), np.finfo(self.dtype).min)
        np.exp(powers, powers)
        powers /= np.sum(powers, axis, keepdims=True)
    return powers


@op(
    "_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4), _corner(), 1)],
)
def masked_softmax_backward(grad_output, output, mask, dim):
    if mask.shape != grad_output.shape:
        raise RuntimeError("Mask shape should match grad shape")
    if mask.dtype != dt.bool_.np:
        raise RuntimeError("Mask should be a boolean tensor")
    need_float("masked_softmax_backward", grad_output)
    if output.dtype != grad_output.dtype:
        raise unexpected_dtype(grad_output, output)
    return _gradient(grad_output, output, mask, normal_dim(-1 if dim is None else dim, output.ndim))


@in_float32
def _gradient(grad_output, output, hidden, axis):
    product = np.where(hidden, output.dtype.type(0), grad_output * output)
    return product - np.where(hidden, output.dtype.type(0), output) * np.sum(product, axis, keepdims=True)


masked_softmax.vjp(
    self=lambda g, result, mask, dim, self_shape, mask_type: aten._masked_softmax_backward(
        g, result, _as_wide(mask, self_shape, mask_type), dim
    )
)


def _as_wide(mask, shape, mask_type):
    """A mask of the input's shape."""
    if mask._array.ndim == len(shape):
        return mask
    dim = 0 if mask_type == _SOURCE else 1
    return aten.expand(aten.unsqueeze(aten.unsqueeze(mask, dim), dim), shape)


def _masked_softmax_second(g, grad_output, output, mask, dim):
    axis = -1 if dim is None else dim
    hidden = output.masked_fill(mask, 0.0)
    inner = (grad_output * hidden).sum(axis, True)
    return (
        hidden * (g - (g * hidden).sum(axis, True)),
        (g * grad_output - g * inner - grad_output * (g * hidden).sum(axis, True)).masked_fill(mask, 0.0),
    )


masked_softmax_backward.vjp(
    grad_output=lambda g, grad_output, output, mask, dim: _masked_softmax_second(g, grad_output, output, mask, dim)[0],
    output=lambda g, grad_output, output, mask, dim: _masked_softmax_second(g, grad_output, output, mask, dim)[1],
)
