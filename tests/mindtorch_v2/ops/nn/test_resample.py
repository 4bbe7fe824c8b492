"""Resizing and sampling images: values, derivatives and errors as torch has them."""

from __future__ import annotations

import network
import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("resample"))
def test_resample_like_torch(expression):
    network.check("resample", expression)


@pytest.mark.parametrize("expression", network.expressions("resample_error"))
def test_resample_error_like_torch(expression):
    network.check("resample_error", expression)


def test_resizing_bytes_rounds_to_the_nearest():
    x = torch.tensor([[[[0, 255]]]], dtype=torch.uint8)
    made = torch.nn.functional.interpolate(x, size=(1, 4), mode="bilinear")
    assert made.dtype == torch.uint8 and made.flatten().tolist() == [0, 64, 191, 255]


# Bytes are resized with whole numbers for weights and rounded between the dims: (size, mode, further settings, result).
BYTES = [
    ((2, 6), "bilinear", {}, [37, 56, 80, 105, 98, 84, 67, 86, 110, 135, 128, 114]),
    ((2, 6), "bicubic", {}, [37, 52, 83, 109, 100, 83, 67, 85, 116, 141, 132, 115]),
    ((5, 3), "bilinear", {"align_corners": True}, [0, 56, 111, 74, 130, 57, 148, 204, 3, 94, 150, 77, 40, 96, 151]),
    ((5, 3), "bicubic", {"align_corners": True}, [0, 56, 111, 84, 154, 43, 148, 228, 3, 108, 178, 67, 40, 96, 151]),
    ((2, 3), "bilinear", {"antialias": True}, [67, 112, 88, 92, 137, 113]),
    ((2, 3), "bicubic", {"antialias": True}, [63, 116, 85, 91, 143, 112]),
    ((3, 4), "bilinear", {}, [0, 37, 74, 111, 148, 185, 222, 3, 40, 77, 114, 151]),
]


@pytest.mark.parametrize(("size", "mode", "settings", "expected"), BYTES)
def test_resizing_bytes_like_torch(size, mode, settings, expected):
    x = torch.tensor([0, 37, 74, 111, 148, 185, 222, 3, 40, 77, 114, 151], dtype=torch.uint8).view(1, 1, 3, 4)
    made = torch.nn.functional.interpolate(x, size=size, mode=mode, **settings)
    assert made.dtype == torch.uint8 and made.flatten().tolist() == expected


NOT_RESIZED = [
    (torch.int64, 1, "nearest", "\"compute_indices_weights_nearest\" not implemented for 'Long'"),
    (torch.bool, 3, "nearest-exact", "\"compute_indices_weights_nearest\" not implemented for 'Bool'"),
    (torch.complex64, 2, "bicubic", "\"compute_indices_weights_cubic\" not implemented for 'ComplexFloat'"),
    (torch.uint8, 1, "linear", "\"compute_indices_weights_linear\" not implemented for 'Byte'"),
    (torch.uint8, 3, "trilinear", "\"compute_indices_weights_linear\" not implemented for 'Byte'"),
]


@pytest.mark.parametrize(("dtype", "dims", "mode", "words"), NOT_RESIZED)
def test_dtypes_that_cannot_be_resized(dtype, dims, mode, words):
    with pytest.raises(NotImplementedError) as error:
        torch.nn.functional.interpolate(torch.ones(1, 2, *(3,) * dims, dtype=dtype), scale_factor=2, mode=mode)
    assert str(error.value) == words


@pytest.mark.parametrize(
    ("dims", "mode", "dtype"),
    [
        (2, "nearest", torch.float32),
        (2, "bilinear", torch.float32),
        (2, "bicubic", torch.bfloat16),
        (2, "bilinear", torch.uint8),
        (3, "nearest", torch.float32),
        (3, "trilinear", torch.float32),
    ],
)
def test_channels_that_lie_next_to_each_other_stay_so(dims, mode, dtype):
    layout = torch.channels_last if dims == 2 else torch.channels_last_3d
    x = torch.arange(2 * 3 * 4**dims).remainder(200).to(dtype).view(2, 3, *(4,) * dims)
    made = torch.nn.functional.interpolate(x.contiguous(memory_format=layout), size=(5,) * dims, mode=mode)
    assert made.is_contiguous(memory_format=layout)
    assert made.equal(torch.nn.functional.interpolate(x, size=(5,) * dims, mode=mode))


def test_enlarging_and_shrinking_back_keeps_the_image():
    x = torch.arange(12.0).view(1, 1, 3, 4)
    large = torch.nn.functional.interpolate(x, scale_factor=3, mode="nearest")
    assert large[..., ::3, ::3].equal(x)
    assert torch.nn.functional.interpolate(large, scale_factor=1 / 3, mode="area").allclose(x)


def test_the_grid_of_the_identity_reads_the_image():
    x = torch.arange(12.0).view(1, 1, 3, 4)
    grid = torch.nn.functional.affine_grid(torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), x.shape, align_corners=False)
    assert torch.nn.functional.grid_sample(x, grid, align_corners=False).allclose(x, atol=1e-5)


# Half precision rounds after every step: the place, the weights, the sum.
HALF = [
    (torch.bfloat16, "bilinear", "zeros", [0.0634765625, 1.921875, 0.87890625, 0.0]),
    (torch.bfloat16, "bilinear", "border", [0.1826171875, 2.453125, 1.34375, 2.796875]),
    (torch.bfloat16, "bilinear", "reflection", [0.1826171875, 2.453125, 1.34375, 2.5]),
    (torch.bfloat16, "nearest", "zeros", [0.0, 2.0, 1.3359375, 0.0]),
    (torch.bfloat16, "bicubic", "zeros", [-0.234375, 2.390625, 0.7421875, 0.04833984375]),
    (torch.bfloat16, "bicubic", "reflection", [-0.361328125, 2.640625, 0.9921875, 2.828125]),
    (torch.float16, "bilinear", "zeros", [0.0643310546875, 1.919921875, 0.86669921875, 0.0]),
    (torch.float16, "bicubic", "border", [0.012298583984375, 2.650390625, 1.23046875, 3.04296875]),
]


@pytest.mark.parametrize(("dtype", "mode", "padding", "expected"), HALF)
def test_sampling_in_half_precision_like_torch(dtype, mode, padding, expected):
    image = torch.arange(9).mul(7).remainder(10).to(dtype).view(1, 1, 3, 3) / 3
    grid = torch.tensor([[-1.1, -0.3], [0.37, 0.81], [0.9, -0.66], [0.13, 1.9]]).view(1, 2, 2, 2).to(dtype)
    made = torch.nn.functional.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=False)
    assert made.dtype == dtype and made.flatten().tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "align_corners", "padding", "expected"),
    [
        (torch.bfloat16, False, "zeros", [0.51953125, 0.8203125]),
        (torch.bfloat16, True, "border", [1.4375, 1.296875]),
        (torch.float16, False, "zeros", [0.5205078125, 0.81689453125]),
    ],
)
def test_sampling_volumes_in_half_precision_like_torch(dtype, align_corners, padding, expected):
    image = torch.arange(27).mul(7).remainder(10).to(dtype).view(1, 1, 3, 3, 3) / 3
    grid = torch.tensor([[-1.1, -0.3, 0.2], [0.37, 0.81, 0.71]]).view(1, 1, 1, 2, 3).to(dtype)
    made = torch.nn.functional.grid_sample(image, grid, padding_mode=padding, align_corners=align_corners)
    assert made.flatten().tolist() == expected


def test_places_that_are_no_number_read_as_none_in_a_plane_and_as_zero_in_space():
    sample = torch.nn.functional.grid_sample
    plane = sample(torch.ones(1, 1, 2, 2), torch.full((1, 1, 1, 2), float("nan")), align_corners=False)
    space = sample(torch.ones(1, 1, 2, 2, 2), torch.full((1, 1, 1, 1, 3), float("nan")), align_corners=False)
    assert plane.isnan().all() and space.item() == 0


def test_what_is_no_number_in_the_image_does_not_reach_places_outside():
    made = torch.nn.functional.grid_sample(
        torch.full((1, 1, 3, 3), float("nan")), torch.full((1, 1, 1, 2), 5.0), align_corners=False
    )
    assert made.item() == 0


@pytest.mark.parametrize(
    ("image", "grid"), [((0, 1, 3, 3), (0, 2, 2, 2)), ((1, 0, 3, 3), (1, 2, 2, 2)), ((1, 1, 3, 3), (1, 0, 2, 2))]
)
def test_sampling_nothing(image, grid):
    x, at = torch.ones(image, requires_grad=True), torch.zeros(grid, requires_grad=True)
    made = torch.nn.functional.grid_sample(x, at, align_corners=False)
    made.sum().backward()
    assert made.shape == (*image[:2], *grid[1:3]) and x.grad.shape == image and at.grad.shape == grid


@pytest.mark.parametrize(
    ("image", "grid", "error", "words"),
    [
        (torch.float32, torch.float64, RuntimeError, "expected scalar type Float but found Double"),
        (torch.int64, torch.int64, NotImplementedError, "\"grid_sampler_2d_cpu_kernel_impl\" not implemented for 'Long'"),
    ],
)
def test_dtypes_that_cannot_be_sampled(image, grid, error, words):
    with pytest.raises(error) as caught:
        torch.nn.functional.grid_sample(torch.ones(1, 1, 3, 3, dtype=image), torch.zeros(1, 2, 2, 2, dtype=grid))
    assert str(caught.value) == words


@pytest.mark.parametrize("factors", [(1, 1), (2, 2), (3, 1), (1, 4), (3, 5)])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_nearest_by_whole_factors_repeats_elements_and_adds_up_their_gradients(factors, memory_format):
    rows, columns = factors
    image = torch.randn(2, 3, 4, 5).to(memory_format=memory_format).requires_grad_()
    enlarged = F.interpolate(image, scale_factor=factors, mode="nearest")
    given = image.detach().numpy()
    np.testing.assert_array_equal(enlarged.detach().numpy(), given.repeat(rows, 2).repeat(columns, 3))
    assert enlarged.is_contiguous(memory_format=memory_format)
    grad = torch.randn(*enlarged.shape)
    enlarged.backward(grad)
    sums = grad.numpy().reshape(2, 3, 4, rows, 5, columns).sum((3, 5))
    np.testing.assert_allclose(image.grad.numpy(), sums, rtol=1e-5, atol=1e-6)


def test_a_size_that_stays_gives_memory_of_its_own():
    image = torch.ones(1, 1, 2, 2, requires_grad=True)
    with torch.no_grad():
        torch.ops.aten.upsample_nearest2d(image, [2, 2]).zero_()
    grad = torch.ones(1, 1, 2, 2)
    torch.ops.aten.upsample_nearest2d_backward(grad, [2, 2], [1, 1, 2, 2]).zero_()
    assert image.sum() == grad.sum() == 4


_MODES = [("nearest", {}), ("nearest-exact", {})] + [
    (mode, options) for mode in ("bilinear", "bicubic") for options in ({}, {"align_corners": True}, {"antialias": True})
]


@pytest.mark.parametrize(("mode", "options"), _MODES)
@pytest.mark.parametrize("size", [(4, 5), (9, 13), (2, 3), (7, 2), (1, 1)])
def test_the_gradient_is_the_transpose(mode, options, size):
    image = torch.randn(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    resized = F.interpolate(image, size=size, mode=mode, **options)
    grad = torch.randn(*resized.shape, dtype=torch.float64)
    resized.backward(grad)
    assert (resized * grad).sum().item() == pytest.approx((image * image.grad).sum().item(), rel=1e-9, abs=1e-9)


def test_an_infinite_gradient_stays_with_its_inputs():
    image = torch.zeros(1, 1, 6, 6, requires_grad=True)
    resized = F.interpolate(image, size=(9, 3), mode="bilinear")
    grad = torch.ones(1, 1, 9, 3)
    grad[0, 0, 4, 1] = torch.inf  # between rows and columns 2 and 3
    resized.backward(grad)
    infinite = image.grad.isinf()
    assert infinite.sum().item() == 4 and infinite[0, 0, 2:4, 2:4].all() and not image.grad.isnan().any()
