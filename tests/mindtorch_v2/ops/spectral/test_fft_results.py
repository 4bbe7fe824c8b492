"""Fourier transforms: how results lie in memory, and what is refused, as torch has it."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.fft

fft = mindtorch_v2.fft

# (transform, dims) of a (2, 3, 4) tensor: the strides of the result. The dims transformed become the innermost.
STRIDES = [
    ("fftn", [2], (12, 4, 1)),
    ("fftn", [1], (12, 1, 3)),
    ("fftn", [0], (1, 8, 2)),
    ("fftn", [0, 2], (4, 8, 1)),
    ("fftn", [1, 0], (3, 1, 6)),
    ("fftn", [0, 1, 2], (12, 4, 1)),
    ("rfftn", [0, 2], (3, 6, 1)),
    ("rfftn", [2, 0], (1, 8, 2)),
    ("irfftn", [0, 2], (6, 12, 1)),
    ("irfftn", [2, 1], (16, 1, 4)),
    ("hfftn", [1, 0], (1, 2, 6)),
    ("ihfftn", [1, 2], (9, 1, 3)),
]


@pytest.mark.parametrize(("name", "dims", "strides"), STRIDES)
def test_strides(name, dims, strides):
    x = torch.arange(24.0).view(2, 3, 4)
    made = getattr(fft, name)(x, dim=dims)
    assert made.stride() == strides
    front = getattr(fft, name)(x.movedim(dims, list(range(-len(dims), 0))).contiguous(), dim=list(range(-len(dims), 0)))
    assert torch.allclose(made, front.movedim(list(range(-len(dims), 0)), dims), atol=1e-4)


def test_the_transform_of_a_transposed_matrix_is_contiguous():
    assert fft.fft(torch.ones(3, 4).t()).is_contiguous()


REFUSED = [
    (lambda: fft.fft(torch.tensor(1.0)), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
    (lambda: fft.fft2(torch.tensor(1.0), dim=[0]), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    (lambda: fft.irfftn(torch.ones(3), dim=[]), RuntimeError, "irfftn must transform at least one axis"),
    (lambda: fft.ihfftn(torch.ones(3), dim=[]), RuntimeError, "ihfftn must transform at least one axis"),
    (
        lambda: fft.fftn(torch.ones(3, 4), s=[3, 4, 5]),
        RuntimeError,
        "Got shape with 3 values but input tensor only has 2 dimensions.",
    ),
    (
        lambda: fft.fftn(torch.ones(3, 4), s=[3], dim=[0, 1]),
        RuntimeError,
        "When given, dim and shape arguments must have the same length",
    ),
    (lambda: fft.fftn(torch.ones(3, 4), s=[-2, 6]), RuntimeError, "Invalid number of data points (-2) specified"),
    (lambda: fft.rfftn(torch.ones(3, 0)), RuntimeError, "Invalid number of data points (0) specified"),
    (
        lambda: fft.rfftn(torch.ones(3, dtype=torch.complex64)),
        RuntimeError,
        "rfftn expects a real-valued input tensor, but got ComplexFloat",
    ),
    (
        lambda: fft.ihfftn(torch.ones(3, dtype=torch.complex64)),
        RuntimeError,
        "Only supports floating-point dtypes, but found: ComplexFloat",
    ),
    (
        lambda: fft.ihfft(torch.ones(3, dtype=torch.complex64), dim=4),
        RuntimeError,
        "ihfft expects a real input tensor, but got ComplexFloat",
    ),
    (lambda: fft.fft(torch.ones(4, dtype=torch.bfloat16)), RuntimeError, "Unsupported dtype BFloat16"),
    (lambda: fft.fftfreq(5, dtype=torch.int64), RuntimeError, "fftfreq requires a floating point or complex dtype"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=range(len(REFUSED)))
def test_refusal(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == words


def test_no_dims_are_a_copy():
    x = torch.tensor([1j, 2.0])
    made = fft.fftn(x, dim=[])
    assert made.equal(x) and made.data_ptr() != x.data_ptr()


def test_frequencies_of_no_points_and_of_no_distance():
    assert fft.fftfreq(0).tolist() == [] and fft.fftfreq(4).tolist() == [0.0, 0.25, -0.5, -0.25]
    far = fft.rfftfreq(4, 0.0)
    assert far[0].isnan() and far[1:].isinf().all()


@pytest.mark.parametrize("shape", [(90, 64), (90, 65), (5000, 2), (5000, 1), (8, 20, 30)])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_the_whole_transform_of_many_real_numbers(shape, norm):
    """Made from its first half, it has the bits and the strides of that of complex numbers."""
    torch.manual_seed(0)
    for x in (torch.randn(shape), torch.randn(shape).double(), torch.randn(shape[::-1]).permute(*range(len(shape))[::-1])):
        for dim in range(len(shape)):
            found, expected = torch.fft.fft(x, dim=dim, norm=norm), torch.fft.fft(x + 0j, dim=dim, norm=norm)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
            assert found.dtype == expected.dtype
            if 1 not in shape:  # a dim of one element has any stride
                assert found.stride() == expected.stride()
