"""Convolutions: values, derivatives and errors as torch has them; all ways to compute them agree."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._ops import _conv_kernels as kernels

_found = importlib.util.spec_from_file_location("network", Path(__file__).with_name("network.py"))
assert _found is not None and _found.loader is not None
network = importlib.util.module_from_spec(_found)
_found.loader.exec_module(network)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("conv"))
def test_conv_like_torch(expression):
    network.check("conv", expression)


@pytest.mark.parametrize("expression", network.expressions("conv_error"))
def test_conv_error_like_torch(expression):
    network.check("conv_error", expression)


# (N, C, O, groups), size, kernel, stride, padding, dilation: in runs and not, in one block and several, by groups.
SETTINGS = [
    ((2, 3, 4, 1), (9, 8), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((5, 16, 8, 1), (20, 20), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((3, 8, 16, 1), (33, 17), (5, 3), (2, 1), (2, 0), (1, 2)),
    ((4, 6, 9, 3), (12, 11), (3, 2), (1, 1), (0, 1), (2, 1)),
    ((2, 6, 6, 6), (10, 9), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((2, 4, 6, 2), (7, 7), (1, 1), (2, 3), (0, 0), (1, 1)),
    ((40, 6, 16, 1), (14, 14), (5, 5), (1, 1), (0, 0), (1, 1)),
    ((2, 3, 5, 1), (6, 5), (2, 2), (1, 1), (3, 3), (1, 1)),
    ((3, 2, 4, 1), (40,), (5,), (3,), (2,), (2,)),
    ((2, 3, 2, 1), (5, 6, 7), (2, 3, 2), (1, 2, 1), (1, 0, 1), (1, 1, 2)),
]


def written_out(input, weight, stride, padding, dilation, groups):
    """The convolution as its definition says: a sum over kernel positions."""
    padded = np.pad(input, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    out = [(n - d * (k - 1) - 1) // s + 1
           for n, k, s, d in zip(padded.shape[2:], weight.shape[2:], stride, dilation, strict=True)]
    total = np.zeros((len(input), len(weight), *out))
    each = weight.shape[1]
    for position in np.ndindex(weight.shape[2:]):
        index = [slice(i * d, i * d + s * (o - 1) + 1, s)
                 for i, d, s, o in zip(position, dilation, stride, out, strict=True)]
        met = padded[(slice(None), slice(None), *index)]
        for group in range(groups):
            rows = slice(group * len(weight) // groups, (group + 1) * len(weight) // groups)
            columns = slice(group * each, (group + 1) * each)
            total[:, rows] += np.einsum("oc,nc...->no...", weight[(rows, slice(None), *position)], met[:, columns])
    return total


@pytest.mark.parametrize("channels, size, kernel, stride, padding, dilation", SETTINGS)
def test_kernels_agree_with_the_definition(channels, size, kernel, stride, padding, dilation):
    batch, inside, outside, groups = channels
    random = np.random.RandomState(0)
    x, w = random.randn(batch, inside, *size), random.randn(outside, inside // groups, *kernel)
    made = kernels.forward(x, w, None, stride, padding, dilation, groups)
    assert np.allclose(made, written_out(x, w, stride, padding, dilation, groups))
    bias = random.randn(outside)
    shifted = kernels.forward(x, w, bias, stride, padding, dilation, groups)
    assert np.allclose(shifted, made + bias.reshape(-1, *(1,) * len(size)))
    # Both gradients are transposes of the same linear map: <g, x * w> = <gradient for x, x> = <gradient for w, w>.
    g = random.randn(*made.shape)
    inner = (g * made).sum()
    to_input = kernels.input_grad(g, x.shape, w, stride, padding, dilation, groups)
    to_weight = kernels.weight_grad(g, x, w.shape, stride, padding, dilation, groups)
    assert np.isclose((to_input * x).sum(), inner) and np.isclose((to_weight * w).sum(), inner)
    assert np.allclose(to_input, kernels._scattered(g, x.shape, w, stride, padding, dilation, groups))


def test_a_block_is_bounded_however_large_the_batch():
    columns = kernels._Columns(np.zeros((512, 8, 16, 16), np.float32), (3, 3), (16, 16), (1, 1), (1, 1), (1, 1))
    assert columns.step * columns.run * 8 * 9 <= kernels._BLOCK


def test_named_padding_keeps_the_size():
    x = torch.zeros(1, 2, 7, 8)
    assert torch.nn.functional.conv2d(x, torch.zeros(3, 2, 4, 3), padding="same").shape == (1, 3, 7, 8)
