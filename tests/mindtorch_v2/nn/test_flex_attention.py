"""flex_attention: scores that a function changes, masks by blocks. Figures are PyTorch 2.13's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F
from mindtorch_v2.nn.attention import flex_attention as fa


def values(*shape):
    return (torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) * 0.37).sin()


Q, K, V = values(2, 4, 5, 8), values(2, 4, 7, 8).cos(), values(2, 4, 7, 8)
BIAS = values(4, 5, 7)


def causal(b, h, q, k):
    return q >= k


def sampled(tensor):
    return [round(float(v), 4) for v in tensor.flatten()[::53]]


CASES = {
    "plain": ({}, [-0.0727, 0.0732, -0.0769, -0.0928, -0.097, 0.0632, 0.0938]),
    "distance": (
        dict(score_mod=lambda s, b, h, q, k: s + (q - k) * 0.1 * (h + 1)),
        [-0.0475, 0.0408, -0.0621, -0.0571, -0.1526, 0.1469, 0.2379],
    ),
    "looked up": (
        dict(score_mod=lambda s, b, h, q, k: s + BIAS[h, q, k]),
        [-0.0714, 0.0655, -0.0847, -0.1672, -0.0562, 0.1197, 0.2076],
    ),
    "scale": (dict(scale=0.5), [-0.0784, 0.0724, -0.0731, -0.0956, -0.101, 0.059, 0.102]),
}


@pytest.mark.parametrize("name", CASES)
def test_attention_as_in_torch(name):
    options, expected = CASES[name]
    result = fa.flex_attention(Q, K, V, **options).flatten()[::17]
    assert [round(float(v), 4) for v in result[::3]] == expected


def test_causal_mask_is_that_of_scaled_dot_product_attention():
    block_mask = fa.create_block_mask(causal, 2, 4, 5, 7, device="cpu")
    result, lse = fa.flex_attention(Q, K, V, block_mask=block_mask, return_lse=True)
    torch.testing.assert_close(result, F.scaled_dot_product_attention(Q, K, V, is_causal=True))
    assert [round(float(v), 4) for v in lse.flatten()[::17]] == [1.2471, 2.5677, 3.1708]


def test_queries_without_keys_give_zeros():
    block_mask = fa.create_block_mask(lambda b, h, q, k: (q > 2) & (k < 3), None, None, 5, 7)
    result, lse = fa.flex_attention(Q, K, V, block_mask=block_mask, return_lse=True)
    assert not result[:, :, :3].any() and result[:, :, 3:].any()
    assert torch.isneginf(lse[:, :, :3]).all()


def test_gradients():
    query = Q.double().requires_grad_()
    mask = fa.create_block_mask(lambda b, h, q, k: (q > 0) & (q >= k), None, None, 5, 7)

    def attend(q):
        return fa.flex_attention(q, K.double(), V.double(), score_mod=lambda s, b, h, i, j: s * s, block_mask=mask)

    assert torch.autograd.gradcheck(attend, (query,))


def test_groups_of_queries():
    key, value = K[:, :2], V[:, :2]
    grouped = fa.flex_attention(Q, key, value, enable_gqa=True)
    torch.testing.assert_close(grouped, F.scaled_dot_product_attention(Q, key, value, enable_gqa=True))


def test_blocks_as_in_torch():
    mask = fa.create_block_mask(causal, None, None, 300, 300)
    assert mask.shape == (1, 1, 300, 300) and mask.BLOCK_SIZE == (128, 128) and mask.numel() == 90000
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 3]]] and mask.kv_indices.tolist() == [[[[0, 1, 2], [1, 0, 2], [0, 1, 2]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 0]]] and mask.q_num_blocks.tolist() == [[[2, 2, 1]]]
    assert mask.q_indices.tolist() == [[[[0, 2, 1], [1, 2, 0], [2, 0, 1]]]] and mask.kv_indices.dtype is torch.int32
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    assert round(mask.sparsity(), 4) == -9.2267
    assert str(mask) == "BlockMask(shape=(1, 1, 300, 300), sparsity=-9.23%, \n(0, 0)\n██    \n████  \n██████\n)"
    assert "    sparsity=-9.23%,\n    mask_mod=causal\n)" in repr(mask)


def test_parts_of_a_mask():
    mask = fa.create_block_mask(lambda b, h, q, k: (q >= k) & (b > 0), 2, 1, 300, 200, BLOCK_SIZE=64)
    assert mask.kv_num_blocks.tolist() == [[[0] * 5], [[1, 1, 1, 1, 4]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0] * 5], [[0, 1, 2, 3, 0]]]
    assert mask[0].shape == (1, 1, 300, 200) and mask[:, :, 1].kv_num_blocks.tolist() == [[[0]], [[1]]]
    assert mask._adjust(100, 64).shape == (2, 1, 100, 64) and mask.to("cpu").sparsity() == mask.sparsity()
    one = fa.create_block_mask(causal, 1, 1, 5, 5, BLOCK_SIZE=(2, 4), separate_full_blocks=False)
    assert one.kv_num_blocks.tolist() == [[[1, 1, 2]]] and one.full_kv_indices is None
    assert one.as_tuple()[:2] == (5, 5)


def test_masks_of_places():
    assert fa.create_mask(fa.and_masks(causal, lambda b, h, q, k: k > 0), 1, 1, 3, 3).int().tolist() == [
        [[[0, 0, 0], [0, 1, 0], [0, 1, 1]]]
    ]
    assert fa.create_mask(fa.or_masks(causal, lambda b, h, q, k: k > 1), 1, 1, 3, 3).int().tolist() == [
        [[[1, 0, 1], [1, 1, 1], [1, 1, 1]]]
    ]
    assert fa.create_mask(fa.noop_mask, None, None, 2, 2).all()
    assert fa.create_mask(lambda s, b, h, q, k: torch.where(q >= k, s, float("-inf")), 1, 1, 2, 2).int().tolist() == [
        [[[1, 0], [1, 1]]]
    ]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: fa.flex_attention(Q, K[:, :2], V[:, :2]), ValueError, "Try setting enable_gqa=True"),
        (lambda: fa.flex_attention(Q, K[:, :3], V[:, :3], enable_gqa=True), ValueError, "multiple of kv heads"),
        (lambda: fa.flex_attention(Q[0], K, V), NotImplementedError, "must be 4D tensors"),
        (lambda: fa.flex_attention(Q[..., :4], K, V), ValueError, "same embedding dimension but got E=4 and E=8"),
        (
            lambda: fa.flex_attention(Q, K, V, block_mask=fa.create_block_mask(causal, None, None, 300, 300)),
            ValueError,
            "block_mask was created for block_mask.shape=(1, 1, 300, 300) but got q_len=5 and kv_len=7. As the block mask",
        ),
        (
            lambda: fa.flex_attention(Q, K, V, return_aux=fa.AuxRequest(max_scores=True)),
            NotImplementedError,
            "Returning max scores",
        ),
        (lambda: fa.flex_attention(Q, K, V, return_lse=True, return_aux=fa.AuxRequest()), ValueError, "cannot both"),
        (lambda: fa.and_masks(3), RuntimeError, "should be callable"),
        (lambda: fa.create_block_mask(lambda s, b, h, q, k: s, 1, 1, 2, 2), AssertionError, "requires a mask_mod"),
        (lambda: fa.create_mask(lambda a: a, 1, 1, 2, 2), AssertionError, "Expected 4 or 5 positional arguments, got 1"),
    ],
)
def test_refusals(call, kind, text):
    with pytest.raises(kind) as raised:
        call()
    assert text in str(raised.value)


def test_what_is_asked_for_beside_the_result():
    result, beside = fa.flex_attention(Q, K, V, return_aux=fa.AuxRequest(lse=True))
    assert torch.equal(beside.lse, fa.flex_attention(Q, K, V, return_lse=True)[1]) and beside.max_scores is None
    assert result.shape == Q.shape
