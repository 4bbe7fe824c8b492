"""Channels as pixels: pixel_shuffle of images without elements, and of images whose channels come last in memory."""

from __future__ import annotations

import re

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F


@pytest.mark.parametrize("kind", [torch.float32, torch.int64, torch.bool, torch.complex64, torch.bfloat16])
@pytest.mark.parametrize(
    ("shape", "shuffled", "unshuffled"),
    [
        ((1, 0, 2, 2), (1, 0, 4, 4), (1, 0, 1, 1)),
        ((1, 4, 0, 2), (1, 1, 0, 4), (1, 16, 0, 1)),
        ((1, 4, 2, 0), (1, 1, 4, 0), (1, 16, 1, 0)),
        ((0, 4, 2, 2), (0, 1, 4, 4), (0, 16, 1, 1)),
    ],
)
def test_images_of_nothing(kind, shape, shuffled, unshuffled):
    x = torch.zeros(shape, dtype=kind)
    assert F.pixel_shuffle(x, 2).shape == shuffled
    assert F.pixel_unshuffle(x, 2).shape == unshuffled


def test_channels_stay_next_to_each_other():
    x = torch.arange(256.0).view(2, 8, 4, 4)
    last = x.contiguous(memory_format=torch.channels_last)
    for made, again, strides in (
        (F.pixel_shuffle(x, 2), F.pixel_shuffle(last, 2), (128, 1, 16, 2)),
        (F.pixel_unshuffle(x, 2), F.pixel_unshuffle(last, 2), (128, 1, 64, 32)),
    ):
        assert torch.equal(made, again) and again.stride() == strides


@pytest.mark.parametrize(
    ("options", "shape", "message"),
    [
        (
            {"kernel_size": 2, "dilation": 8},
            (1, 12, 12),
            "sliding blocks as (-4, -3), which is too small (non-positive)",
        ),
        (
            {"kernel_size": 2, "padding": -1},
            (1, 12, 12),
            "should be non-negative, but got pad_height: -1 pad_width: -1",
        ),
        ({"kernel_size": 0}, (1, 12, 12), "kernel size should be greater than zero, but got kernel_height: 0 kernel_width: 0"),
    ],
)
def test_windows_that_fold_refuses(options, shape, message):
    with pytest.raises(RuntimeError, match=re.escape(message)):
        torch.nn.Fold((4, 5), **options)(torch.zeros(shape))
