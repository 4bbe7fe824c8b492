"""The fused self-attention of encoders: what `nn.MultiheadAttention` calls in inference."""

from __future__ import annotations

import math

from ..._core import dtype as dt
from ..._dispatch.registry import aten, composite
from ..pointwise.scalar_forms import mul_number


@composite(
    "_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)",
    samples=lambda make: [(make(2, 3, 12), make(12), 2)],
)
def _transform_bias_rescale_qkv(qkv, qkv_bias, num_heads):
    """Queries, keys and values by head, (batch, heads, length, width), of one projection; queries scaled for the softmax."""
    batch, length, width = qkv._array.shape
    if num_heads <= 0 or width % 3 or (width // 3) % num_heads:
        raise RuntimeError(f"_transform_bias_rescale_qkv: {width} features do not split into 3 parts of {num_heads} heads")
    head = width // 3 // num_heads
    split = aten.view(aten.add(qkv, qkv_bias), (batch, length, 3, num_heads, head))
    query, key, value = aten.unbind(aten.contiguous(aten.permute(split, (2, 0, 3, 1, 4))), 0)
    return mul_number(query, 1 / math.sqrt(head) if head else math.inf), key, value


def _check(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias):
    shapes = {"query": query._array.shape, "key": key._array.shape, "value": value._array.shape}
    for name, shape in shapes.items():
        if len(shape) != 3:
            raise RuntimeError(f"expected 3-D `{name}`, got {len(shape)}-D tensor")
    if shapes["query"][2] != embed_dim:
        raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {shapes['query'][2]}")
    if len(set(shapes.values())) != 1:
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    if num_head <= 0 or embed_dim % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")
    if qkv_weight._array.ndim != 2:
        raise RuntimeError(f"expected 2-D `qkv_weight`, got {qkv_weight._array.ndim}-D tensor")
    if qkv_weight._array.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
    if qkv_weight._array.shape[1] != embed_dim:
        raise RuntimeError("expected `qkv_weight` second dim to be embed_Dim")
    if qkv_bias._array.ndim != 1:
        raise RuntimeError(f"expected 1-D `qkv_bias`, got {qkv_bias._array.ndim}-D tensor")
    if qkv_bias._array.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_bias` first dim and first dim of query to be equal")


def _product(rows, weight):
    """`rows @ weight.T`, as one product of matrices."""
    turned = aten.t(weight)
    batch, length, width = rows._array.shape
    return aten._unsafe_view(
        aten.mm(aten.reshape(rows, (batch * length, width)), turned), (batch, length, weight._array.shape[0])
    )


def _projected(query, key, value, embed_dim, weight):
    """The three projections side by side, in one product for each input that is a tensor of its own."""
    if query is key and key is value:
        return _product(query, weight)
    if key is value:
        parts = zip((query, key), aten.split(weight, [embed_dim, 2 * embed_dim]), strict=True)
    else:
        parts = zip((query, key, value), aten.chunk(weight, 3), strict=True)
    return aten.cat([_product(tensor, rows) for tensor, rows in parts], 2)


@composite(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, "
    "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, "
    "bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
    samples=lambda make: [
        (make(2, 3, 4), make(2, 3, 4), make(2, 3, 4), 4, 2, make(12, 4), make(12), make(4, 4), make(4)),
    ],
)
def _native_multi_head_attention(
    query,
    key,
    value,
    embed_dim,
    num_head,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    mask,
    need_weights,
    average_attn_weights,
    mask_type,
):
    """Attention of `num_head` heads with its projections: (output, weights); the weights are None unless asked for."""
    _check(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias)
    batch, length, _ = query._array.shape
    head = embed_dim // num_head
    together = _projected(query, key, value, embed_dim, qkv_weight)
    q, k, v = (
        aten.view(part, (batch * num_head, length, head))
        for part in aten._transform_bias_rescale_qkv(together, qkv_bias, num_head)
    )
    scores = aten.view(aten.bmm(q, aten.transpose(k, 1, 2)), (batch, num_head, length, length))
    if mask is None:
        weights = aten._softmax(scores, -1, False)
    else:
        weights = aten._masked_softmax(scores, aten.to(mask, dtype=dt.bool_), 3, mask_type)
    heads = aten.view(aten.bmm(aten.view(weights, (batch * num_head, length, length)), v), (batch, num_head, length, head))
    joined = aten.view(aten.contiguous(aten.permute(heads, (0, 2, 1, 3))), (batch * length, embed_dim))
    output = aten.view(aten.addmm(proj_bias, joined, aten.t(proj_weight)), (batch, length, embed_dim))
    if not need_weights:
        return output, None
    return output, aten.div(aten.sum(weights, 1), num_head) if average_attn_weights else weights
