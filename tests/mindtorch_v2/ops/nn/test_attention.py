"""Attention: values, derivatives and errors as torch has them."""

from __future__ import annotations

import network
import pytest

import mindtorch_v2 as torch

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("attention"))
def test_attention_like_torch(expression):
    network.check("attention", expression)


@pytest.mark.parametrize("expression", network.expressions("attention_error"))
def test_attention_error_like_torch(expression):
    network.check("attention_error", expression)


def test_the_result_lies_in_memory_as_the_query_does():
    q = torch.ones(2, 5, 3, 4).transpose(1, 2)
    assert torch.nn.functional.scaled_dot_product_attention(q, q, q).transpose(1, 2).is_contiguous()


def test_a_row_that_may_see_nothing_is_zero():
    q = torch.ones(1, 1, 2, 3)
    mask = torch.tensor([[True, True], [False, False]])
    made = torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert made[0, 0].tolist() == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]


def test_fused_and_composed_attention_agree():
    q, k, v = (torch.sin(torch.arange(96.0) * s).view(2, 3, 4, 4) for s in (1, 2, 3))
    fused = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    composed = torch.ops.aten._scaled_dot_product_attention_math(q, k, v, None, 0.0, True)[0]
    assert torch.allclose(fused, composed, atol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (
            torch.bfloat16,
            [
                0.42578125,
                -0.8359375,
                1.234375,
                -1.609375,
                1.921875,
                -2.21875,
                2.484375,
                -2.703125,
                0.482421875,
                -0.88671875,
                1.2734375,
                -1.640625,
            ],
        ),
        (
            torch.float16,
            [
                0.42333984375,
                -0.837890625,
                1.236328125,
                -1.609375,
                1.92578125,
                -2.23046875,
                2.48828125,
                -2.697265625,
                0.480712890625,
                -0.8876953125,
                1.2783203125,
                -1.6416015625,
            ],
        ),
    ],
)
def test_composed_attention_widens_half_precision(dtype, expected):
    q, k, v = (torch.sin(torch.arange(12.0) * s + s).view(1, 3, 4).to(dtype) * 3 for s in (1, 2, 3))
    made = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert made.dtype == dtype and made.flatten().tolist() == expected


def test_keys_and_values_may_have_different_numbers_of_heads():
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 4, 5, 8)
    grouped = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    repeated = torch.nn.functional.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), v)
    torch.testing.assert_close(grouped, repeated)
