"""Scaled dot product attention: one fused kernel, or composed of other ops where torch composes it."""

from __future__ import annotations

import math

import numpy as np

from .._core import dtype as dt
from .._core.keys import AUTOGRAD
from .._dispatch.registry import aten, composite, op
from ._common import like_first


def _scale(query, scale):
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


def _causal_bias(length, width, dtype):
    """0 on and below the diagonal, -inf above it."""
    return np.triu(np.full((length, width), -np.inf, dtype), 1)


def _probabilities(query, key, is_causal, attn_mask, scale):
    scores = np.matmul(query * query.dtype.type(_scale(query, scale)), key.swapaxes(-1, -2))
    if attn_mask is not None:
        scores += attn_mask
    if is_causal:
        scores += _causal_bias(*scores.shape[-2:], scores.dtype)
    most = np.maximum.reduce(scores, -1, None, None, True)
    # A row that is masked out altogether has no maximum; its probabilities are 0, not nan.
    most = np.where(np.isneginf(most), 0, most)
    np.subtract(scores, most, scores)
    np.exp(scores, scores)
    total = np.add.reduce(scores, -1, None, None, True)
    np.divide(scores, np.where(total == 0, 1, total), scores)
    return scores, (most + np.log(total))[..., 0]


def _sdpa_samples(make):
    return [(make(1, 2, 3, 4), make(1, 2, 3, 4), make(1, 2, 3, 4)),
            (make(1, 2, 3, 4), make(1, 2, 3, 4), make(1, 2, 3, 4), 0.0, True)]


@op("_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, "
    "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
    node="ScaledDotProductFlashAttentionForCpuBackward0", samples=_sdpa_samples,
    shape=lambda query, key, value, *_: [((*query._array.shape[:-1], value._array.shape[-1]), query._array.dtype),
                                         (query._array.shape[:-1], query._array.dtype)])
def flash_attention(query, key, value, dropout_p, is_causal, attn_mask, scale):
    probabilities, logsumexp = _probabilities(query, key, is_causal, attn_mask, scale)
    return np.matmul(probabilities, value), logsumexp


@flash_attention.vjp
def _(g, query, key, value, dropout_p, is_causal, attn_mask, scale, result0, result1):
    made = aten._scaled_dot_product_flash_attention_for_cpu_backward(
        g, query, key, value, result0, result1, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)
    return *made, None


@op("_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
    "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) "
    "-> (Tensor grad_query, Tensor grad_key, Tensor grad_value)", samples=lambda make: [],
    shape=lambda grad_out, query, key, value, *_: [like_first(query), like_first(key), like_first(value)])
def flash_attention_backward(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale):
    factor = query.dtype.type(_scale(query, scale))
    probabilities = np.matmul(query * factor, key.swapaxes(-1, -2))
    if attn_mask is not None:
        probabilities += attn_mask
    if is_causal:
        probabilities += _causal_bias(*probabilities.shape[-2:], probabilities.dtype)
    probabilities -= np.where(np.isneginf(logsumexp), 0, logsumexp)[..., None]
    np.exp(probabilities, probabilities)
    grad_value = np.matmul(probabilities.swapaxes(-1, -2), grad_out)
    inner = np.matmul(grad_out, value.swapaxes(-1, -2))
    inner -= np.add.reduce(grad_out * out, -1, None, None, True)
    inner *= probabilities
    inner *= factor
    return np.matmul(inner, key), np.matmul(inner.swapaxes(-1, -2), query), grad_value


def _as_bias(mask, query):
    """A boolean mask as numbers to add: 0 where attention is allowed, -inf where not."""
    if mask is None or mask._array.dtype != np.bool_:
        return mask
    return aten.where(mask, 0.0, aten.scalar_tensor(-math.inf, dtype=query.dtype))


@composite("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
def safe_softmax(self, dim, dtype):
    made = aten.softmax(self, dim, dtype)
    masked = aten.all(aten.isneginf(self), dim, True)
    return aten.where(masked, 0.0, made)


@composite("_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
           "float dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, "
           "bool enable_gqa=False) -> (Tensor, Tensor)")
def attention_math(query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale, enable_gqa):
    # Both operands get the root of the factor, which keeps the products small.
    root = math.sqrt(_scale(query, scale))
    if is_causal:
        length, width = query.shape[-2], key.shape[-2]
        attn_mask = aten.ones((length, width), dtype=dt.bool_).tril()
    attn_mask = _as_bias(attn_mask, query)
    scores = aten.matmul(query * root, aten.transpose(key, -2, -1) * root)
    if attn_mask is not None:
        scores = aten.add_(scores, attn_mask) if not (scores._keys | attn_mask._keys) & AUTOGRAD else scores + attn_mask
    weights = aten._safe_softmax(scores, -1)
    if dropout_p > 0:
        weights = aten.dropout(weights, dropout_p, True)
    return aten.matmul(weights, value), weights




@composite("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
           "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor")
def scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    q, k, v = query._array, key._array, value._array
    if not q.dtype == k.dtype == v.dtype:
        raise RuntimeError("Expected query, key, and value to have the same dtype, but got query.dtype: "
                           f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead.")
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if enable_gqa and q.ndim == 4 and q.shape[1] != k.shape[1]:
        times = q.shape[1] // k.shape[1]
        key, value = (aten.repeat_interleave(t, times, 1) for t in (key, value))
    fused = (q.ndim == 4 and k.ndim == 4 and v.ndim == 4 and dropout_p == 0 and q.size and q.shape[:2] == key._array.shape[:2]
             and (attn_mask is None or not attn_mask._keys & AUTOGRAD))
    if fused:
        bias = _as_bias(attn_mask, query)
        return aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, is_causal, attn_mask=bias,
                                                                scale=scale)[0]
    return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale,
                                                   enable_gqa=enable_gqa)[0]
