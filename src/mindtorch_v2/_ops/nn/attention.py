"""Scaled dot product attention: one fused kernel, or composed of other ops where torch composes it."""

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._core.keys import AUTOGRAD, NPU
from ..._dispatch.facts import Autocast
from ..._dispatch.registry import aten, composite, op
from .._support.common import like_first
from .._support.half import in_float32
from ..pointwise.scalar_forms import mul_number
from ._attention_blocks import attend, attend_backward

# Which kinds of kernels may be used. Of the fused ones the CPU has flash.
ALLOWED = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def _scale(width, scale):
    if scale is None:
        return 1 / math.sqrt(width) if width else math.inf
    return scale


def _laid_out(batch, heads, length, width, dtype):
    """An empty (N, heads, length, width) array whose memory is (N, length, heads, width), as projections make it."""
    return np.empty((batch, length, heads, width), dtype).transpose(0, 2, 1, 3)


def _flops(query, key, value, *rest):
    """Scores and their product with the values, and the softmax in between."""
    scores = math.prod(query[:-1]) * key[-2]
    return int(scores * (2 * query[-1] + 2 * value[-1] + 4))


def _sdpa_samples(make):
    return [
        (make(1, 2, 3, 4), make(1, 2, 3, 4), make(1, 2, 3, 4)),
        (make(1, 2, 3, 4), make(1, 2, 3, 4), make(1, 2, 3, 4), 0.0, True),
    ]


@op(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, "
    "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
    node="ScaledDotProductFlashAttentionForCpuBackward0",
    samples=_sdpa_samples,
    shape=lambda query, key, value, *_: [
        ((*query._array.shape[:-1], value._array.shape[-1]), query._array.dtype),
        (query._array.shape[:-1], query._array.dtype),
    ],
    flops=_flops,
)
@in_float32
def flash_attention(query, key, value, dropout_p, is_causal, attn_mask, scale):
    if dropout_p:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    output = np.empty_like(query)
    logsumexp = np.empty(query.shape[:3], query.dtype)
    attend(query, key, value, is_causal, attn_mask, _scale(query.shape[-1], scale), output, logsumexp)
    return output, logsumexp


@flash_attention.not_differentiable("attn_mask", "result1").vjp
def _(g, query, key, value, dropout_p, is_causal, attn_mask, scale, result0, result1):
    return tuple(
        aten._scaled_dot_product_flash_attention_for_cpu_backward(
            g, query, key, value, result0, result1, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
        )
    )


@op(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
    "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) "
    "-> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    samples=lambda make: [],
    shape=lambda grad_out, query, key, value, *_: [like_first(query), like_first(key), like_first(value)],
    # The scores once more, and four products of their size.
    flops=lambda grad_out, query, key, value, *rest: 5 * _flops(query, key, value) // 2,
)
@in_float32
def flash_attention_backward(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale):
    grads = [_laid_out(*array.shape, query.dtype) for array in (query, key, value)]
    factor = _scale(query.shape[-1], scale)
    attend_backward(grad_out, query, key, value, out, logsumexp, is_causal, attn_mask, factor, *grads)
    return tuple(grads)


# ---------------------------------------------------------------- composed


def _as_bias(mask, query):
    """A boolean mask as numbers to add: 0 where attention is allowed, -inf where not."""
    if mask is None or mask._array.dtype != np.bool_:
        return mask
    return aten.where(mask, 0.0, aten.scalar_tensor(-math.inf, dtype=query.dtype))


@composite("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", samples=lambda make: [(make(3, 4), 1)])
def safe_softmax(self, dim, dtype):
    """Softmax with zeros for rows that are -inf throughout."""
    weights = aten.softmax(self, dim, dtype)
    masked = aten.all(aten.isneginf(self), dim, True)
    return aten.where(masked, 0.0, weights)


safe_softmax.vjp(self=lambda g, result, dim, self_dtype: aten._softmax_backward_data(g, result, dim, self_dtype))


@composite(
    "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, "
    "bool enable_gqa=False) -> (Tensor, Tensor)",
    samples=lambda make: [(make(2, 3, 4), make(2, 3, 4), make(2, 3, 4))],
)
def attention_math(query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale, enable_gqa):
    if dropout_mask is not None:
        raise NotImplementedError("_scaled_dot_product_attention_math: dropout_mask")
    kind = query.dtype
    if kind.itemsize == 2:  # half precision is widened: sums of products and the softmax would lose too much
        query, key, value = (aten.to(t, dtype=dt.float32) for t in (query, key, value))
    # Both operands get the root of the factor, which keeps the products small.
    root = math.sqrt(_scale(query._array.shape[-1], scale))
    scaled = mul_number(query, root)
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
        shape = (query._array.shape[-2], key._array.shape[-2])
        attn_mask = aten.tril(aten.ones(shape, dtype=dt.bool_, device=query.device if query._keys & NPU else None))
    attn_mask = _as_bias(attn_mask, query)
    if enable_gqa:
        key, value = (_with_heads(t, query._array.shape[-3]) for t in (key, value))
    scores = aten.matmul(scaled, mul_number(aten.transpose(key, -2, -1), root))
    if attn_mask is not None:
        scores = aten.add_(scores, attn_mask)
    weights = aten._safe_softmax(scores, -1)
    if dropout_p > 0:
        weights = aten.dropout(weights, dropout_p, True)
    output = aten.matmul(weights, value)
    return (aten.to(output, dtype=kind), aten.to(weights, dtype=kind)) if kind.itemsize == 2 else (output, weights)


def _check(query, key, value):
    q, k, v = query._array, key._array, value._array
    if not q.dtype == k.dtype == v.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise RuntimeError(
            "scaled_dot_product_attention: Expected query, key, and value to all be  at least 2 "
            f"dimensional, but got query.dim: {q.ndim}, key.dim: {k.ndim} and value.dim: {v.ndim} "
            "instead."
        )


def _with_heads(tensor, heads):
    """Keys or values with as many heads as the queries: each stands for a group of those."""
    own = tensor._array.shape[-3]
    return tensor if own == heads else aten.repeat_interleave(tensor, heads // own, -3)


def _fits_kernel(q, k, v, attn_mask, dropout_p, enable_gqa):
    """Whether the fused kernel takes these arguments; if not, attention is composed of ops."""
    if not (q.ndim == k.ndim == v.ndim == 4 and dropout_p == 0 and q.size and k.size):
        return False
    if not (q.shape[0] == k.shape[0] and q.shape[3] == k.shape[3] and k.shape == v.shape):
        return False
    if q.shape[1] != k.shape[1] and not (enable_gqa and q.shape[1] % k.shape[1] == 0):
        return False
    return attn_mask is None or (not attn_mask._keys & AUTOGRAD and attn_mask._array.ndim in (2, 4))


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    samples=lambda make: [(make(2, 3, 4), make(2, 3, 4), make(2, 3, 4))],
    autocast=Autocast.LOWER,
)
def scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """Attention: values weighted by the softmax of the products of queries and keys.

    >>> F.scaled_dot_product_attention(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 2, 2), torch.arange(4.0).view(1, 1, 2, 2))
    tensor([[[[1., 2.]]]])
    """
    _check(query, key, value)
    bias = _as_bias(attn_mask, query)
    if (
        ALLOWED["flash"]
        and not query._keys & NPU
        and _fits_kernel(query._array, key._array, value._array, bias, dropout_p, enable_gqa)
    ):
        return aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, is_causal, attn_mask=bias, scale=scale)[
            0
        ]
    if not ALLOWED["math"]:
        raise RuntimeError(
            "No available kernel.  Aborting execution."
            if ALLOWED["flash"]
            else "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off "
            "both the math kernel and the fused kernels."
        )
    return aten._scaled_dot_product_attention_math(
        query, key, value, bias, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]
