"""`nn.MultiheadAttention` in inference: one fused op, with what torch 2.13 gives."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile

_PADDING = [[False, False, True], [False, True, False]]
_ATTENTION = [[False, True, False]] * 3

# (masks and options, torch's sums of the absolute values of output and weights, the weights' shape)
CASES = [
    ({}, 33.4003, 6.0, (2, 3, 3)),
    ({"need_weights": False}, 33.4003, None, None),
    ({"key_padding_mask": _PADDING, "average_attn_weights": False}, 34.3752, 12.0, (2, 2, 3, 3)),
    ({"attn_mask": _ATTENTION}, 29.1088, 6.0, (2, 3, 3)),
    ({"attn_mask": _ATTENTION, "key_padding_mask": _PADDING}, 30.4933, 6.0, (2, 3, 3)),
    ({"attn_mask": [_ATTENTION] * 4}, 29.1088, 6.0, (2, 3, 3)),
]


def _layer():
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    nn.init.normal_(layer.in_proj_bias)
    return layer, torch.randn(2, 3, 8)


def _names(run):
    with profile() as recording:
        run()
    return [event.name for event in recording.events()]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("options", "output", "weights", "shape"), CASES)
def test_both_ways_give_torchs_numbers(options, output, weights, shape, fused):
    layer, x = _layer()
    options = {name: torch.tensor(value) if "mask" in name else value for name, value in options.items()}
    torch.backends.mha.set_fastpath_enabled(fused)
    try:
        with torch.no_grad():
            got, got_weights = layer(x, x, x, **options)
            names = _names(lambda: layer(x, x, x, **options))
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert ("aten::_native_multi_head_attention" in names) is fused
    assert got.abs().sum().item() == pytest.approx(output, abs=1e-4)
    assert got.stride() == ((24, 8, 1) if fused else (8, 16, 1))
    if weights is None:
        assert got_weights is None
    else:
        assert got_weights.shape == shape
        assert got_weights.sum().item() == pytest.approx(weights, abs=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        lambda layer, x: (layer.train(), x, x),
        lambda layer, x: (layer, x, x.clone()),
        lambda layer, x: (layer.double(), x.double().requires_grad_(), None),
        lambda layer, x: (nn.MultiheadAttention(9, 3, batch_first=True).eval(), torch.randn(2, 3, 9), None),
        lambda layer, x: (nn.MultiheadAttention(8, 2).eval(), x, None),
        lambda layer, x: (nn.MultiheadAttention(8, 2, batch_first=True, bias=False).eval(), x, None),
        lambda layer, x: (nn.MultiheadAttention(8, 2, batch_first=True, add_zero_attn=True).eval(), x, None),
    ],
    ids=["training", "other values", "gradients", "odd heads", "length first", "no bias", "zero attention"],
)
def test_what_the_fused_op_is_not_used_for(change):
    layer, x, value = change(*_layer())
    with torch.set_grad_enabled(x.requires_grad):
        names = _names(lambda: layer(x, x, x if value is None else value))
    assert "aten::_native_multi_head_attention" not in names


def test_not_under_autocast():
    layer, x = _layer()
    with torch.no_grad(), torch.autocast("cpu"):
        assert layer(x, x, x)[0].dtype is torch.bfloat16


def test_three_inputs_are_projected_each():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 8) for _ in range(3))
    weights = torch.randn(24, 8), torch.randn(24), torch.randn(8, 8), torch.randn(8)
    for key, value in ((k, v), (k, k), (q, v)):
        got, _ = torch._native_multi_head_attention(q, key, value, 8, 2, *weights)
        wanted, _ = nn.functional.multi_head_attention_forward(
            *(t.transpose(0, 1) for t in (q, key, value)), 8, 2, *weights[:2], None, None, False, 0.0, *weights[2:]
        )
        torch.testing.assert_close(got, wanted.transpose(0, 1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: (3, 8)}, "expected 3-D `query`, got 2-D tensor"),
        ({3: 7}, "passed-in embed_dim 7 didn't match last dim of query 8"),
        ({4: 3}, "`embed_dim` must divide evenly by `num_heads`"),
        ({1: (2, 2, 8)}, "expected `query`/`key`/`value` shapes to match"),
        ({5: (10, 8)}, "expected `qkv_weight` first dim to be 3x embed_dim"),
        ({5: (24, 7)}, "expected `qkv_weight` second dim to be embed_Dim"),
        ({5: (8,)}, "expected 2-D `qkv_weight`, got 1-D tensor"),
        ({6: (3,)}, "expected `qkv_bias` first dim and first dim of query to be equal"),
        ({6: (1, 24)}, "expected 1-D `qkv_bias`, got 2-D tensor"),
        ({9: (2, 3)}, "Mask Type should be defined"),
    ],
)
def test_bad_input_is_refused_in_torchs_words(change, message):
    args = [(2, 3, 8), (2, 3, 8), (2, 3, 8), 8, 2, (24, 8), (24,), (8, 8), (8,), None]
    for place, value in change.items():
        args[place] = value
    made = [torch.ones(*value) if isinstance(value, tuple) else value for value in args]
    with pytest.raises(RuntimeError) as caught:
        torch._native_multi_head_attention(*made)
    assert message in str(caught.value)


def test_an_empty_batch():
    layer, x = _layer()
    with torch.no_grad():
        empty = x[:0]
        output, weights = layer(empty, empty, empty)
    assert (output.shape, weights.shape) == ((0, 3, 8), (0, 3, 3))


@pytest.mark.parametrize("heads", [0, -1, 5])
def test_features_that_do_not_split_into_heads(heads):
    with pytest.raises(RuntimeError, match="do not split into 3 parts"):
        torch.ops.aten._transform_bias_rescale_qkv(torch.ones(2, 3, 12), torch.ones(12), heads)
