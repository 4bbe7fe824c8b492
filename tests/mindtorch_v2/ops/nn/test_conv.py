"""Convolutions: values, derivatives and errors as torch has them; all ways to compute them agree."""

from __future__ import annotations

import network
import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._ops.nn.convolution import _blocks
from mindtorch_v2._ops.nn.convolution import _kernels as kernels

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
    # Some groups at a time, the last block with fewer.
    ((2, 9, 18, 9), (40, 40), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((2, 9, 9, 9), (80, 80), (3, 3), (2, 2), (1, 0), (1, 1)),
    ((3, 10, 5, 5), (90, 30), (5, 4), (1, 1), (0, 2), (1, 1)),
    # One kernel per channel of a wide image: tiles of rows, whole ones and a rest, in one block and several.
    ((2, 6, 6, 6), (10, 25), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((3, 4, 4, 4), (8, 60), (3, 2), (2, 3), (4, 2), (1, 1)),
    ((2, 5, 5, 5), (3, 40), (3, 4), (1, 1), (0, 9), (1, 1)),
    ((5, 30, 30, 30), (41, 40), (2, 3), (1, 1), (0, 1), (1, 1)),
    ((2, 3, 3, 3), (30, 30), (1, 1), (1, 1), (0, 0), (1, 1)),
    ((2, 3, 3, 3), (30, 30), (3, 3), (1, 1), (2, 2), (2, 2)),
    # Three rows in the kernel, many channels: pairs of rows, an odd number, in one block and several of samples and rows.
    ((2, 24, 25, 1), (19, 14), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((1, 26, 24, 1), (21, 17), (3, 4), (1, 1), (0, 2), (1, 1)),
    ((2, 24, 24, 1), (18, 16), (3, 1), (1, 1), (4, 0), (1, 1)),
    ((1, 24, 24, 1), (1, 300), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((30, 24, 24, 1), (5, 5), (3, 3), (1, 1), (2, 1), (1, 1)),
    ((1, 24, 24, 1), (201, 90), (3, 2), (1, 1), (1, 0), (1, 1)),
    # Weights larger than what they meet: 1x1 with all samples in one product, and many channels in a group, in one block,
    # several and by groups.
    ((3, 20, 30, 1), (3, 3), (1, 1), (1, 1), (0, 0), (1, 1)),
    ((3, 20, 30, 1), (5, 4), (1, 1), (2, 2), (0, 0), (1, 1)),
    ((2, 10, 80, 1), (9, 7), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((40, 10, 80, 1), (30, 30), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((2, 4, 140, 2), (9, 7), (3, 3), (2, 2), (1, 1), (1, 1)),
    # One long kernel per channel: banded matrices, in one tile and several.
    ((2, 3, 3, 3), (4, 90), (2, 17), (1, 1), (1, 3), (1, 1)),
    ((3, 2, 2, 2), (300,), (20,), (3,), (5,), (2,)),
    ((2, 1, 1, 1), (3, 5, 40), (1, 2, 16), (1, 2, 1), (0, 1, 0), (2, 1, 1)),
]


def written_out(input, weight, stride, padding, dilation, groups):
    """The convolution as its definition says: a sum over kernel positions."""
    padded = np.pad(input, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    out = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(padded.shape[2:], weight.shape[2:], stride, dilation, strict=True)
    ]
    total = np.zeros((len(input), len(weight), *out))
    each = weight.shape[1]
    for position in np.ndindex(weight.shape[2:]):
        index = [slice(i * d, i * d + s * (o - 1) + 1, s) for i, d, s, o in zip(position, dilation, stride, out, strict=True)]
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
    for groups in (1, 2, 8):
        images = np.zeros((512, 8, 16, 16), np.float32)
        geometry = kernels._Geometry(images, groups, (3, 3), (16, 16), (1, 1), (1, 1), (1, 1))
        assert max(geometry.columns(block).size for block in geometry.blocks) <= _blocks._LARGEST


def test_a_large_image_is_taken_in_several_blocks_of_rows(monkeypatch):
    monkeypatch.setattr(_blocks, "_SMALLEST", 500)
    monkeypatch.setattr(_blocks, "_LARGEST", 500)  # fewer elements than the columns of an image have
    x, w = torch.randn(2, 4, 9, 7).double(), torch.randn(6, 2, 3, 2).double()
    for options in ({"padding": (1, 0)}, {"stride": (2, 1), "padding": (2, 1), "dilation": (2, 1)}, {"padding": (3, 1)}):
        options = {"stride": 1, "padding": 0, "dilation": 1, "groups": 2, **options}
        with monkeypatch.context() as whole:
            whole.setattr(_blocks, "_SMALLEST", 1 << 20)
            whole.setattr(_blocks, "_LARGEST", 1 << 20)
            expected = _conv_with_gradients(x, w, options)
        for part, reference in zip(_conv_with_gradients(x, w, options), expected, strict=True):
            torch.testing.assert_close(part, reference)


def _conv_with_gradients(x, w, options):
    leaves = [t.clone().requires_grad_() for t in (x, w)]
    result = torch.nn.functional.conv2d(*leaves, **options)
    result.square().sum().backward()
    return [result.detach(), *[leaf.grad for leaf in leaves]]


def test_short_kernels_over_narrow_outputs_agree_with_columns(monkeypatch):
    x, w = torch.randn(2, 3, 8, 6).double(), torch.randn(3, 1, 3, 5).double()
    for options in ({"padding": 2, "groups": 3}, {"stride": 2, "padding": 2, "groups": 3}):
        banded = _conv_with_gradients(x, w, options)
        with monkeypatch.context() as columns:
            columns.setattr(kernels._banded, "is_banded", lambda *_: False)
            expected = _conv_with_gradients(x, w, options)
        for part, reference in zip(banded, expected, strict=True):
            torch.testing.assert_close(part, reference)


@pytest.mark.parametrize("channels, groups", [(3, 3), (24, 1)])
def test_infinite_numbers_stay_in_their_windows(channels, groups):
    x, w = torch.randn(2, channels, 9, 30), torch.ones(channels, channels // groups, 3, 3, requires_grad=True)
    x[0, 1, 4, 12] = float("inf")
    result = torch.nn.functional.conv2d(x, w, padding=1, groups=groups)
    where = [tuple(place) for place in result.isinf().nonzero().tolist()]
    reached = [1] if groups > 1 else range(channels)
    assert where == [(0, channel, row, column) for channel in reached for row in (3, 4, 5) for column in (11, 12, 13)]
    assert not result.isnan().any()
    result.backward(torch.ones(result.shape))
    assert w.grad[:, 0 if groups > 1 else 1].isinf().sum() == (9 if groups > 1 else 9 * channels)
    assert not w.grad.isnan().any()


def test_kernels_of_three_rows_are_computed_by_pairs_of_rows_exactly_for_whole_numbers(monkeypatch):
    x, w = (torch.randint(-8, 9, shape).float() for shape in ((2, 24, 13, 14), (30, 24, 3, 3)))
    calls = []
    for name in ("forward", "weight_grad"):
        plain = getattr(kernels._winograd, name)
        monkeypatch.setattr(kernels._winograd, name, lambda *args, plain=plain, name=name: calls.append(name) or plain(*args))
    by_pairs = _conv_with_gradients(x, w, {"padding": 1})
    assert calls == ["forward", "forward", "weight_grad"]
    monkeypatch.setattr(kernels._winograd, "is_winograd", lambda *_: False)
    assert all(map(torch.equal, by_pairs[:1], _conv_with_gradients(x, w, {"padding": 1})))


def test_named_padding_keeps_the_size():
    x = torch.zeros(1, 2, 7, 8)
    assert torch.nn.functional.conv2d(x, torch.zeros(3, 2, 4, 3), padding="same").shape == (1, 3, 7, 8)


F = torch.nn.functional


def ones(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype)


# What is wrong in several ways is refused for what torch looks at first.
REFUSED = [
    (lambda: F.conv2d(ones(1, 1, 4, 4), ones(1, 2), ones(1), groups=0), "weight should have at least three dimensions"),
    (lambda: F.conv2d(ones(1, 1, 4, 4), ones(1, 2, 2, 3), dilation=-1, groups=0), "non-positive groups is not supported"),
    (lambda: F.conv2d(ones(1, 1, 4, 4), ones(1, 2, 2, 3), stride=-1, padding=-1), "negative padding is not supported"),
    (lambda: F.conv2d(ones(1, 1, 4, 4), ones(1, 2, 2, 3), stride=-1, dilation=-1), "non-positive stride is not supported"),
    (lambda: F.conv2d(ones(1, 1, 4, 4), ones(1, 2, 2, 3), dilation=-1), "dilation should be greater than zero"),
    (
        lambda: F.conv1d(ones(1, 1, 4), ones(1, 2, 2, 2)),
        "Expected 4-dimensional input for 4-dimensional weight [1, 2, 2, 2], "
        "but got 3-dimensional input of size [1, 1, 4] instead",
    ),
    (
        lambda: F.conv2d(ones(1, 1, 4, 3), ones(1, 2, 2), padding="same"),
        "Expected 3-dimensional input for 3-dimensional "
        "weight[1, 2, 2], but got 4-dimensional input of size [1, 1, 4, 3] instead",
    ),
    (
        lambda: F.conv2d(ones(1, 1, 4, 3), ones(1, 1, 2, 2), padding="same", stride=(2, 2, 2)),
        "stride cannot broadcast to 2 dimensions",
    ),
    (
        lambda: F.conv2d(ones(4, 3), ones(1, 1, 2, 2), padding="same"),
        "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [4, 3]",
    ),
    (
        lambda: F.conv2d(ones(1, 1, 4, 3), ones(1, 2, 2, 2, dtype=torch.float64)),
        "Given groups=1, weight of size [1, 2, 2, 2], "
        "expected input[1, 1, 4, 3] to have 2 channels, but got 1 channels instead",
    ),
    (
        lambda: F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 3), dilation=(0, 1)),
        "dilation should be greater than zero, but got [0, 1]",
    ),
    (
        lambda: F.conv2d(ones(1, 2, 0, 4), ones(4, 2, 2, 2), padding=1),
        "Only zero batch or zero channel inputs are supported, but got input shape: [1, 2, 0, 4]",
    ),
    (
        lambda: F.conv2d(ones(1, 2, 4, 4), ones(1, 2, 0, 2)),
        "kernel size should be greater than zero, but got kernel_height: 0 kernel_width: 2",
    ),
    (
        lambda: F.conv3d(ones(1, 1, 4, 4, 4), ones(1, 1, 0, 2, 2)),
        "kernel size should be greater than zero, but got: 0 x 2 x 2 (TxHxW)",
    ),
    (
        lambda: F.conv_transpose1d(ones(4), ones(1, 1, 2)),
        "Expected 2D (unbatched) or 3D (batched) input to conv_transpose1d, but got input of size: [4]",
    ),
    (
        lambda: F.conv_transpose1d(ones(1, 1, 4), ones(1, 1, 2), output_padding=-1, stride=-1),
        "negative output_padding is not supported",
    ),
    (
        lambda: F.conv_transpose1d(ones(1, 1, 4), ones(1, 1, 2), padding=3),
        "Given input size per channel: (1 x 4). Calculated output size per channel: (1 x -1). Output size is too small",
    ),
    (
        lambda: F.conv_transpose1d(ones(1, 1, 4), ones(1, 1, 2), output_padding=3),
        "output padding must be smaller than either "
        "stride or dilation, but got output_padding_height: 0 output_padding_width: 3 stride_height: 1 stride_width: 1 "
        "dilation_height: 1 dilation_width: 1",
    ),
    (
        lambda: F.conv_transpose2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), dilation=0),
        "dilation should be greater than zero, but got dilation_height: 0, dilation_width: 0",
    ),
    (
        lambda: F.conv_transpose2d(ones(1, 4, 4, 4), ones(4, 1, 2, 2), ones(2, dtype=torch.float64), groups=2),
        "Input type (torch.FloatTensor) and bias type (torch.DoubleTensor) should be the same or input should "
        "be a MKLDNN tensor "
        "and bias is a dense tensor",
    ),
    (
        lambda: F.conv_transpose2d(ones(1, 1, 4, 4, dtype=torch.int64), ones(1, 1, 2, 2, dtype=torch.int64), ones(1)),
        "result type Float can't be cast to the desired output type Long",
    ),
    (
        lambda: F.conv2d(ones(1, 1, 4, 4, dtype=torch.bool), ones(1, 1, 2, 2, dtype=torch.bool)),
        "\"slow_conv2d_cpu\" not implemented for 'Bool'",
    ),
    (
        lambda: F.conv_transpose3d(ones(1, 1, 4, 4, 4, dtype=torch.uint8), ones(1, 1, 2, 2, 2, dtype=torch.uint8)),
        "\"slow_conv_transpose3d_out_cpu\" not implemented for 'Byte'",
    ),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=range(len(REFUSED)))
def test_refusals_come_in_the_order_of_torch(call, words):
    with pytest.raises((RuntimeError, NotImplementedError)) as error:
        call()
    assert str(error.value) == words
