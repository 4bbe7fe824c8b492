"""Multi-head attention."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..._core import dtype as dt
from ..._dispatch.registry import aten
from .activation import dropout, softmax
from .pad import pad

__all__ = ["multi_head_attention_forward"]


def _canonical_mask(
    mask: Any, mask_name: str, other_type: Any, other_name: str, target_type: Any, check_other: bool = True
) -> Any:
    """A mask as numbers to add to scores: -inf where a bool mask says True."""
    if mask is None:
        return None
    if mask.dtype != dt.bool_ and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=3
        )
    if not mask.is_floating_point():
        mask = aten.masked_fill_(aten.zeros_like(mask, dtype=target_type), mask, float("-inf"))
    return mask


def _none_or_dtype(input: Any) -> Any:
    return None if input is None else input.dtype


def _in_projection_packed(q: Any, k: Any, v: Any, w: Any, b: Any = None) -> list[Any]:
    """Queries, keys and values from one matrix that holds the three projections."""
    size = q.size(-1)
    if k is v:
        if q is k:
            return _split_projection(aten.linear(q, w, b), 3, size)
        w_q, w_kv = aten.split_with_sizes(w, [size, size * 2])
        b_q, b_kv = (None, None) if b is None else aten.split_with_sizes(b, [size, size * 2])
        query = aten.linear(q, w_q, b_q)
        return [query, *_split_projection(aten.linear(k, w_kv, b_kv), 2, size)]
    w_q, w_k, w_v = aten.chunk(w, 3)
    b_q, b_k, b_v = (None, None, None) if b is None else aten.chunk(b, 3)
    return [aten.linear(q, w_q, b_q), aten.linear(k, w_k, b_k), aten.linear(v, w_v, b_v)]


def _split_projection(projected: Any, parts: int, size: int) -> list[Any]:
    """(..., parts * size) as `parts` tensors, each in memory of its own order."""
    split = aten.unsqueeze(aten.unflatten(projected, -1, (parts, size)), 0)
    split = aten.squeeze(aten.transpose(split, 0, -2), -2).contiguous()
    return [split[i] for i in range(parts)]


def _in_projection(
    q: Any, k: Any, v: Any, w_q: Any, w_k: Any, w_v: Any, b_q: Any = None, b_k: Any = None, b_v: Any = None
) -> tuple[Any, Any, Any]:
    """Queries, keys and values from matrices of their own, for inputs of different widths."""
    e_q, e_k, e_v = q.size(-1), k.size(-1), v.size(-1)
    for weight, width, name in ((w_q, e_q, "query"), (w_k, e_k, "key"), (w_v, e_v, "value")):
        if tuple(weight.shape) != (e_q, width):
            raise AssertionError(f"expecting {name} weights shape of {(e_q, width)}, but got {weight.shape}")
    for bias, name in ((b_q, "query"), (b_k, "key"), (b_v, "value")):
        if bias is not None and tuple(bias.shape) != (e_q,):
            raise AssertionError(f"expecting {name} bias shape of {(e_q,)}, but got {bias.shape}")
    return aten.linear(q, w_q, b_q), aten.linear(k, w_k, b_k), aten.linear(v, w_v, b_v)


def _mha_shape_check(query: Any, key: Any, value: Any, key_padding_mask: Any, attn_mask: Any, num_heads: int) -> bool:
    """Whether the inputs are batched; AssertionError if they do not fit each other."""
    if query.dim() not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor")
    batched = query.dim() == 3
    word = "batched (3-D)" if batched else "unbatched (2-D)"
    dims = 3 if batched else 2
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {word} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D "
            f"and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"For {word} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {word} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        expected = (num_heads, query.shape[0], key.shape[0])
        if not batched and attn_mask.dim() == 3 and tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _checked_attn_mask(attn_mask: Any, tgt_len: int, src_len: int, bsz: int, num_heads: int) -> Any:
    """The mask with three dims."""
    if attn_mask is None:
        return None
    if attn_mask.dim() == 2:
        if tuple(attn_mask.shape) != (tgt_len, src_len):
            raise RuntimeError(f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {(tgt_len, src_len)}.")
        return aten.unsqueeze(attn_mask, 0)
    if attn_mask.dim() == 3:
        wanted = (bsz * num_heads, tgt_len, src_len)
        if tuple(attn_mask.shape) != wanted:
            raise RuntimeError(f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be {wanted}.")
        return attn_mask
    raise RuntimeError(f"attn_mask's dimension {attn_mask.dim()} is not supported")


def _heads_of(projected: Any, static: Any, name: str, bsz: int, num_heads: int, head_dim: int) -> Any:
    """(length, batch, width) as (batch * heads, length, head width); or what was given instead of it."""
    if static is None:
        return aten.transpose(aten.view(projected, (projected.shape[0], bsz * num_heads, head_dim)), 0, 1)
    if static.size(0) != bsz * num_heads:
        raise AssertionError(f"expecting {name}.size(0) of {bsz * num_heads}, but got {static.size(0)}")
    if static.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {static.size(2)}")
    return static


def multi_head_attention_forward(  # noqa: C901  torch's options, one after another
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """Attention of `query` to `key` and `value`, (length, batch, width) or (length, width); see MultiheadAttention."""
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        shared_kv, shared_q = value is key, key is query
        query = aten.unsqueeze(query, 1)
        key = query if shared_q else aten.unsqueeze(key, 1)
        value = key if shared_kv else aten.unsqueeze(value, 1)
        if key_padding_mask is not None:
            key_padding_mask = aten.unsqueeze(key_padding_mask, 0)
    tgt_len, bsz, embed_dim = query.shape
    src_len = key.shape[0]
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the kernel masks by itself
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        if key_padding_mask is not None:
            is_causal = False  # the mask is merged with the padding and no longer only causal
    if embed_dim != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}")
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if tuple(key.shape[:2]) != tuple(value.shape[:2]):
            raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
        for weight, name in ((q_proj_weight, "q"), (k_proj_weight, "k"), (v_proj_weight, "v")):
            if weight is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        b_q, b_k, b_v = (None, None, None) if in_proj_bias is None else aten.chunk(in_proj_bias, 3)
        q, k, v = _in_projection(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, b_q, b_k, b_v)
    else:
        if tuple(key.shape) != tuple(value.shape):
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    attn_mask = _checked_attn_mask(attn_mask, tgt_len, src_len, bsz, num_heads)
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = aten.cat((k, aten.repeat(bias_k, (1, bsz, 1))))
        v = aten.cat((v, aten.repeat(bias_v, (1, bsz, 1))))
        attn_mask, key_padding_mask = _one_longer(attn_mask), _one_longer(key_padding_mask)
    elif bias_k is not None or bias_v is not None:
        raise AssertionError("bias_k and bias_v must be given together")
    q = aten.transpose(aten.view(q, (tgt_len, bsz * num_heads, head_dim)), 0, 1)
    k = _heads_of(k, static_k, "static_k", bsz, num_heads, head_dim)
    v = _heads_of(v, static_v, "static_v", bsz, num_heads, head_dim)
    if add_zero_attn:
        shape = (bsz * num_heads, 1, head_dim)
        k = aten.cat((k, aten.zeros(shape, dtype=k.dtype, device=k.device)), 1)
        v = aten.cat((v, aten.zeros(shape, dtype=v.dtype, device=v.device)), 1)
        attn_mask, key_padding_mask = _one_longer(attn_mask), _one_longer(key_padding_mask)
    src_len = k.size(1)
    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (bsz, src_len):
            raise AssertionError(f"expecting key_padding_mask shape of {(bsz, src_len)}, but got {key_padding_mask.shape}")
        spread = aten.expand(aten.view(key_padding_mask, (bsz, 1, 1, src_len)), (-1, num_heads, -1, -1))
        spread = aten.reshape(spread, (bsz * num_heads, 1, src_len))
        attn_mask = spread if attn_mask is None else aten.add(attn_mask, spread)
    if not training:
        dropout_p = 0.0
    sizes = (bsz, num_heads, tgt_len, src_len, head_dim, embed_dim)
    attend = _attend_with_weights if need_weights else _attend
    return attend(
        q, k, v, attn_mask, is_causal, dropout_p, out_proj_weight, out_proj_bias, sizes, batched, average_attn_weights
    )


def _one_longer(mask: Any) -> Any:
    return None if mask is None else pad(mask, (0, 1))


def _attend_with_weights(
    q: Any,
    k: Any,
    v: Any,
    attn_mask: Any,
    is_causal: bool,
    dropout_p: float,
    out_weight: Any,
    out_bias: Any,
    sizes: tuple[int, ...],
    batched: bool,
    average: bool,
) -> tuple[Any, Any]:
    """Scores, softmax and product spelled out, since the caller wants to see the weights."""
    bsz, num_heads, tgt_len, src_len, _, embed_dim = sizes
    scaled = aten.mul(q, math.sqrt(1.0 / float(q.shape[-1])))
    keys = aten.transpose(k, -2, -1)
    scores = aten.bmm(scaled, keys) if attn_mask is None else aten.baddbmm(attn_mask, scaled, keys)
    weights = softmax(scores, dim=-1)
    if dropout_p > 0.0:
        weights = dropout(weights, p=dropout_p)
    output = aten.reshape(aten.transpose(aten.bmm(weights, v), 0, 1), (tgt_len * bsz, embed_dim))
    output = aten.linear(output, out_weight, out_bias)
    output = aten.view(output, (tgt_len, bsz, output.size(1)))
    weights = aten.view(weights, (bsz, num_heads, tgt_len, src_len))
    if average:
        weights = aten.mean(weights, 1)
    if not batched:
        output, weights = aten.squeeze(output, 1), aten.squeeze(weights, 0)
    return output, weights


def _attend(
    q: Any,
    k: Any,
    v: Any,
    attn_mask: Any,
    is_causal: bool,
    dropout_p: float,
    out_weight: Any,
    out_bias: Any,
    sizes: tuple[int, ...],
    batched: bool,
    average: bool,
) -> tuple[Any, Any]:
    """The same in one op."""
    bsz, num_heads, tgt_len, src_len, head_dim, embed_dim = sizes
    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = aten.unsqueeze(attn_mask, 0)
        else:
            attn_mask = aten.view(attn_mask, (bsz, num_heads, -1, src_len))
    q = aten.view(q, (bsz, num_heads, tgt_len, head_dim))
    k = aten.view(k, (bsz, num_heads, src_len, head_dim))
    v = aten.view(v, (bsz, num_heads, src_len, head_dim))
    output = aten.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    output = aten.reshape(aten.permute(output, (2, 0, 1, 3)), (bsz * tgt_len, embed_dim))
    output = aten.linear(output, out_weight, out_bias)
    output = aten.view(output, (tgt_len, bsz, output.size(1)))
    return (output if batched else aten.squeeze(output, 1)), None
