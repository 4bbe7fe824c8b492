"""What pooling refuses and in which words, and pooling of nothing: what PyTorch 2.13 answered."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F

_LONG = torch.int64
zeros = torch.zeros


def leaf(*shape):
    return torch.zeros(*shape, requires_grad=True)


_EXPECTED_1D = "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
_EXPECTED_2D = "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:"
_TWO = "must either be a single int, or a tuple of two ints"
_DIMENSIONS = "Expected 2 to 3 dimensions, but got 1-dimensional tensor for argument #1 'self' (while checking arguments for "
_EMPTY = "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "

REFUSED = [
    # In one dim, with and without history.
    (lambda: F.max_pool1d(zeros(3, 3, 3), 1, 0), "max_pool1d() stride must be greater than zero, but got 0"),
    (lambda: F.max_pool1d(leaf(3, 3, 3), 1, 0), "max_pool1d() stride must be greater than zero, but got 0"),
    (lambda: F.max_pool1d(zeros(3, 3, 3), 0), "max_pool1d() kernel_size must be greater than zero, but got 0"),
    (lambda: F.max_pool1d(zeros(3, 3, 3), 1, 1, -1), "max_pool1d() padding must be non-negative, but got -1"),
    (
        lambda: F.max_pool1d(zeros(3, 3, 3), 2, 1, 2, 3),
        "max_pool1d() padding should be at most half of kernel size, but got padding=2 and kernel_size=2",
    ),
    (lambda: F.max_pool1d(zeros(3, 3, 3), 1, 1, 0, 0), "max_pool1d() dilation must be greater than zero, but got 0"),
    (lambda: F.max_pool1d(zeros(2, 2, 2), 5, 1), "max_pool1d() Invalid computed output size: -2"),
    (lambda: F.max_pool1d(leaf(2, 4), 5), "max_pool1d() Invalid computed output size: 0"),
    (lambda: F.max_pool1d(zeros(0, 10), 1), _EXPECTED_1D + "[0, 10]"),
    (lambda: F.max_pool1d(leaf(0, 10), 1), _EXPECTED_1D + "[0, 10]"),
    (lambda: F.max_pool1d(zeros(1, 0, 10), 1), _EXPECTED_1D + "[1, 0, 10]"),
    (lambda: F.max_pool1d(zeros(()), 1), _EXPECTED_1D + "[]"),
    (
        lambda: F.max_pool1d(zeros(2, 4), (2, 2)),
        "max_pool1d() kernel_size must be an int, list of ints or tuple of ints of size 1 but got size 2",
    ),
    (
        lambda: F.max_pool1d(zeros(2, 4), 2, (2, 2)),
        "max_pool1d() stride must be None, an int, list of ints, or tuple of ints of size 1 but got size 2",
    ),
    (
        lambda: F.max_pool1d(zeros(2, 4), 2, 2, []),
        "max_pool1d() padding must be an int, list of ints, or tuple of ints of size 1 but got size 0",
    ),
    (
        lambda: F.max_pool1d(zeros(2, 4), (2, 2), return_indices=True),
        "max_pool1d() argument 'kernel_size' should contain one int (got 2)",
    ),
    (lambda: F.max_pool1d(zeros(4), 2, return_indices=True), _DIMENSIONS + "max_pool1d)"),
    (
        lambda: F.max_pool1d(zeros(0, 1, 49), 2, 50, 4, return_indices=True),
        "pad should be at most half of effective kernel size, but got pad=4, kernel_size=2 and dilation=1",
    ),
    (
        lambda: F.avg_pool1d(zeros(0, 1, 49), 2, 50, 4),
        "pad should be at most half of effective kernel size, but got pad=4, kernel_size=2 and dilation=1",
    ),
    (lambda: F.avg_pool1d(zeros(4), 2), _DIMENSIONS + "avg_pool1d)"),
    (lambda: F.avg_pool1d(zeros(2, 4), 2, 2, (2, 2)), "avg_pool1d() argument 'padding' should contain one int (got 2)"),
    # In two.
    (lambda: F.max_pool2d(zeros(1, 0, 10), 1), _EXPECTED_2D + "[1, 0, 10]"),
    (lambda: F.max_pool2d(zeros(0, 0, 10, 10), 1), _EXPECTED_2D + "[0, 0, 10, 10]"),
    (lambda: F.max_pool2d(zeros(10, 10), 1), "non-empty 3D or 4D (batch mode) tensor expected for input"),
    (lambda: F.max_pool2d(zeros(1, 4, 4), 2, (1, 0)), "stride should not be zero"),
    (lambda: F.max_pool2d(zeros(1, 4, 4), 0, 1), "kernel size should be greater than zero, but got kH: 0 kW: 0"),
    (lambda: F.max_pool2d(zeros(1, 4, 4), 1, -1), "stride should be greater than zero, but got dH: -1 dW: -1"),
    (
        lambda: F.max_pool2d(zeros(1, 4, 4), 2, 1, 0, (1, -1)),
        "dilation should be greater than zero, but got dilationH: 1 dilationW: -1",
    ),
    (
        lambda: F.max_pool2d(zeros(1, 4, 4), 2, 1, (0, 2)),
        "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and dilation=1",
    ),
    (
        lambda: F.max_pool2d(zeros(1, 4, 4), 2, 1, 2, 3),
        "pad should be smaller than or equal to half of kernel size, but got padW = 2, padH = 2, kW = 2, kH = 2",
    ),
    (
        lambda: F.max_pool2d(zeros(1, 4, 4), 5),
        "Given input size: (1x4x4). Calculated output size: (1x0x0). Output size is too small",
    ),
    (lambda: F.max_pool2d(zeros(1, 4, 4), (2, 2, 2)), "max_pool2d: kernel_size " + _TWO),
    (
        lambda: F.max_pool2d(zeros(1, 4, 4), 2, 2, 1, (2, 2, 2)),
        "max_pool2d: dilation must be either a single int, or a tuple of two ints",
    ),
    (lambda: F.avg_pool2d(zeros(1, 4, 4), 2, 2, (2, 2, 2)), "avg_pool2d: padding " + _TWO),
    (lambda: F.avg_pool2d(zeros(1, 1, 1, 4, 4), 1), _EXPECTED_2D + "[1, 1, 1, 4, 4]"),
    # In three.
    (
        lambda: F.max_pool3d(zeros(0, 1, 2, 10), 1),
        "max_pool3d_with_indices_out_cpu_template(): Expected input's non-batch dimensions to have positive "
        "length, but input has "
        "a shape of [0, 1, 2, 10] and non-batch dimension 0 has length zero!",
    ),
    (
        lambda: F.max_pool3d(zeros(1, 4, 4, 4), 2, 1, (1, 2, 1), 3),
        "pad should be smaller than or equal to half of kernel size, but got kT: 2 kW: 2 kH: 2 padT: 1 padW: 1 padH: 2",
    ),
    (lambda: F.avg_pool3d(zeros(0, 1, 49), 2), "non-empty 4D or 5D (batch mode) tensor expected for input"),
    (
        lambda: F.avg_pool3d(zeros(1, 4, 4, 4), 5, 1, 2),
        "input image (T: 4 H: 4 W: 4) smaller than kernel size (kT: 5 kH: 5 kW: 5)",
    ),
    (
        lambda: F.avg_pool3d(zeros(1, 4, 4, 4), 2, (2, 2)),
        "avg_pool3d: stride must be omitted, a single int, or a tuple of three ints",
    ),
    # To a given size.
    (
        lambda: F.adaptive_avg_pool1d(zeros(1, 2, 3), []),
        "adaptive_avg_pool1d() argument 'output_size' should contain one int (got 0)",
    ),
    (
        lambda: F.adaptive_avg_pool1d(zeros(1, 1, 1), -1),
        "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received {1, -1}",
    ),
    (lambda: F.adaptive_avg_pool2d(zeros(1, 2, 3, 4), []), "adaptive_avg_pool2d: output_size must be 2"),
    (lambda: F.adaptive_avg_pool2d(zeros(1, 2, 3, 4), (1,)), "adaptive_avg_pool2d: output_size must be 2"),
    (
        lambda: F.adaptive_avg_pool2d(zeros(1, 1, 0, 3), 2),
        "adaptive_avg_pool2d" + _EMPTY + "[1, 1, 0, 3] with dimension 2 being empty",
    ),
    (
        lambda: F.adaptive_avg_pool3d(zeros(1, 1, 1, 1, 1), (-1, 0, 2)),
        "adaptive_avg_pool3d: elements of output_size must be greater than or equal to 0 but received {-1, 0,2}",
    ),
    (
        lambda: F.adaptive_avg_pool3d(zeros(1, 0, 2, 8, 8), 2),
        "adaptive_avg_pool3d" + _EMPTY + "[1, 0, 2, 8, 8] with dimension 1 being empty",
    ),
    (
        lambda: F.adaptive_max_pool1d(zeros(2, 0, 4), 2),
        "adaptive_max_pool1d" + _EMPTY + "[2, 0, 4] with dimension 1 being empty",
    ),
    (
        lambda: F.adaptive_max_pool2d(zeros(1, 2, 3, 4), []),
        "adaptive_max_pool2d(): internal error: output_size.size() must be 2",
    ),
    (lambda: F.adaptive_max_pool2d(zeros(1, 1, 1), (0, -2)), "Trying to create tensor with negative dimension -2: [1, 0, -2]"),
    (lambda: F.adaptive_max_pool2d(zeros(2, 2), 2), "adaptive_max_pool2d(): Expected 3D or 4D tensor, but got: [2, 2]"),
    # At random places, and back.
    (
        lambda: F.fractional_max_pool2d(zeros(1, 4, 4), 2, (4, 2)),
        "fractional_max_pool2d(): pool height 2 too large relative to input height 4",
    ),
    (
        lambda: F.fractional_max_pool3d(zeros(1, 4, 4, 4), 2, (4, 2, 2)),
        "fractional_max_pool3d_out(): pool time 2 too large relative to input time 4",
    ),
    (
        lambda: F.fractional_max_pool2d(zeros(2, 2, 4, 4), 2, 2, _random_samples=zeros(1, 2, 2)),
        "Expect _random_samples.size(0) no less then input batch size.",
    ),
    (
        lambda: F.fractional_max_pool2d(zeros(2, 4, 4), 2, 2, _random_samples=zeros(1, 2, 2, dtype=torch.float64)),
        "Expect _random_samples to have the same dtype as input",
    ),
    (
        lambda: F.fractional_max_pool2d(zeros(1, 4, 4), 2, (2, 2, 2)),
        "fractional_max_pool2d: output_size must either be a single Int or tuple of Ints",
    ),
    (
        lambda: F.max_unpool2d(zeros(1, 1, 2, 2), zeros(1, 1, 2, 2), 2),
        "elements in indices should be type int64 but got: Float",
    ),
    (
        lambda: F.max_unpool2d(zeros(1, 1, 2, 2), zeros(1, 1, 2, 2, dtype=_LONG) + 99, 2),
        "Found an invalid max index: 99 (output volumes are of size 4x4)",
    ),
    (
        lambda: F.max_unpool2d(zeros(2, 2), zeros(2, 2, dtype=_LONG), 2),
        "Input to max_unpooling2d should be a 3d or 4d Tensor, but got a tensor with 2 dimensions.",
    ),
    (
        lambda: F.max_unpool2d(zeros(1, 1, 0, 2), zeros(1, 1, 0, 2, dtype=_LONG), 2),
        "max_unpooling2d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, but got "
        "[1, 1, 0, 2] with dimension 2 being empty.",
    ),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words[:60] + f" {i}" for i, (_, words) in enumerate(REFUSED)])
def test_refused(call, words):
    with pytest.raises(RuntimeError) as raised:
        call()
    assert str(raised.value).split("\n")[0] == words


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: F.avg_pool2d(zeros(4, 4), 1), "Dimension out of range (expected to be in range of [-2, 1], but got -3)"),
        (
            lambda: F.adaptive_avg_pool3d(zeros(2, 2), 1),
            "Dimension out of range (expected to be in range of [-2, 1], but got -3)",
        ),
    ],
)
def test_too_few_dims(call, words):
    with pytest.raises(IndexError) as raised:
        call()
    assert str(raised.value) == words


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: F.max_pool1d(zeros(2, 4, dtype=torch.int32), 2), "\"max_pool1d_impl\" not implemented for 'Int'"),
        (
            lambda: F.max_pool1d(zeros(2, 4, dtype=torch.bool), 2, return_indices=True),
            "\"max_pool2d\" not implemented for 'Bool'",
        ),
        (lambda: F.max_pool2d(zeros(1, 4, 4, dtype=torch.uint16), 2), "\"max_pool2d\" not implemented for 'UInt16'"),
        (
            lambda: F.max_pool3d(zeros(1, 4, 4, 4, dtype=torch.complex64), 2),
            "\"max_pool3d\" not implemented for 'ComplexFloat'",
        ),
    ],
)
def test_types_without_a_largest_element(call, words):
    with pytest.raises(NotImplementedError) as raised:
        call()
    assert str(raised.value).startswith(words)


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda x: F.max_pool2d(x, 2), (0, 1, 2, 3)),
        (lambda x: F.avg_pool2d(x, 2), (0, 1, 2, 3)),
        (lambda x: F.adaptive_avg_pool2d(x, (2, 5)), (0, 1, 2, 5)),
        (lambda x: F.adaptive_max_pool2d(x, (2, 5)), (0, 1, 2, 5)),
        (lambda x: F.adaptive_avg_pool3d(x[..., None], (3, 5, 1)), (0, 1, 3, 5, 1)),
        (lambda x: F.adaptive_max_pool3d(x[..., None], (3, 5, 1)), (0, 1, 3, 5, 1)),
        (lambda x: F.fractional_max_pool2d(x, 2, 2), (0, 1, 2, 2)),
        (lambda x: F.max_unpool2d(x, torch.zeros(0, 1, 4, 6, dtype=_LONG), 2), (0, 1, 8, 12)),
    ],
)
def test_batches_of_nothing(call, shape):
    x = torch.zeros(0, 1, 4, 6, requires_grad=True)
    made = call(x)
    assert made.shape == shape
    made.sum().backward()
    assert x.grad.shape == x.shape


def test_the_mean_of_everything_asks_for_no_number_of_dims():
    assert F.adaptive_avg_pool2d(torch.ones(2, 2), 1).tolist() == [[1.0]]
    assert F.adaptive_avg_pool2d(torch.ones(1, 1, 0, 1), (1, 1)).isnan().tolist() == [[[[True]]]]
    assert F.adaptive_avg_pool3d(torch.ones(1, 2, 1, 1, 3, 3), 1).shape == (1, 2, 1, 1, 1, 1)


def test_a_fraction_of_nothing():
    assert F.fractional_max_pool2d(torch.zeros(1, 4, 4), 2, output_ratio=(0.0, 0.5)).shape == (1, 0, 2)


def test_a_volume_must_be_larger_than_what_its_fractional_windows_cover():
    pool = torch.nn.functional.fractional_max_pool3d
    with pytest.raises(RuntimeError, match="pool time 3 too large relative to input time 4"):
        pool(torch.ones(1, 1, 4, 4, 4), 3, output_size=2)
    assert pool(torch.ones(1, 1, 4, 4, 4), 3, output_size=1).shape == (1, 1, 1, 1, 1)
    assert torch.nn.functional.fractional_max_pool2d(torch.ones(1, 1, 4, 4), 3, output_size=2).shape == (1, 1, 2, 2)


@pytest.mark.parametrize("argument", ["kernel_size", "output_size"])
@pytest.mark.parametrize(("dims", "words"), [(2, "Ints"), (3, "three Ints")])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_fractional_pools_want_one_number_for_each_dim(argument: str, dims: int, words: str, count: int) -> None:
    arguments = {"kernel_size": (2,) * dims, "output_size": (3,) * dims, argument: (1,) * count}
    pool = getattr(torch.nn.functional, f"fractional_max_pool{dims}d")
    message = f"^fractional_max_pool{dims}d: {argument} must either be a single Int or tuple of {words}$"
    with pytest.raises(RuntimeError, match=message):
        pool(torch.ones(2, *(7,) * dims), **arguments, _random_samples=torch.rand(1, 2, dims))


def test_fractional_pools_want_one_ratio_for_each_dim() -> None:
    pool = torch.nn.FractionalMaxPool2d([2, 1], output_ratio=[0.5, 0.5, 0.6])
    with pytest.raises(ValueError, match="^fractional_max_pool2d requires output_ratio to either be a single Int"):
        pool(torch.ones(1, 1, 5, 5))
