"""Causal masks of attention by name: figures are PyTorch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left


@pytest.mark.parametrize(
    ("make", "first_row"),
    [(causal_upper_left, [0.3704, 1.4565, 0.9398, 0.7748]), (causal_lower_right, [0.2734, 1.3518, -0.2719, -0.0759])],
)
def test_attention_is_masked(make, first_row):
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 1, 2, 4), torch.randn(1, 1, 3, 4), torch.randn(1, 1, 3, 4)
    for result in (
        F.scaled_dot_product_attention(q, k, v, attn_mask=make(2, 3)),
        F.scaled_dot_product_attention(q, k, v, make(2, 3)),
    ):
        assert type(result) is torch.Tensor
        torch.testing.assert_close(result[0, 0, 0], torch.tensor(first_row), atol=1e-4, rtol=0)


def test_masks():
    assert causal_upper_left(2, 3)._materialize().tolist() == [[True, False, False], [True, True, False]]
    assert causal_lower_right(2, 4)._materialize().tolist() == [[True, True, True, False], [True, True, True, True]]
    with pytest.warns(UserWarning, match="will produce NaNs"):
        causal_lower_right(3, 2)
    assert repr(causal_upper_left(1, 2)) == "tensor([[ True, False]])"


def test_refusals():
    x = torch.randn(1, 1, 2, 4)
    with pytest.raises(ValueError, match="^CausalBias should not be used with causal=True$"):
        F.scaled_dot_product_attention(x, x, x, attn_mask=causal_upper_left(2, 2), is_causal=True)
    with pytest.raises(AssertionError, match="^causal_upper_left only supports 2D tensors$"):
        causal_upper_left(2)
    with pytest.raises(AssertionError, match="^causal_lower_right only supports 2D tensors$"):
        causal_lower_right(2, 2, 2)
    with pytest.raises(TypeError, match="invalid combination"):
        CausalBias("left", 1, 2)
    assert CausalBias(CausalVariant.UPPER_LEFT, 1, 2).shape == (1, 1, 2)
