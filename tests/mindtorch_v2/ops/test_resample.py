"""Resizing and sampling images: values, derivatives and errors as torch has them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import mindtorch_v2 as torch

_found = importlib.util.spec_from_file_location("network", Path(__file__).with_name("network.py"))
assert _found is not None and _found.loader is not None
network = importlib.util.module_from_spec(_found)
_found.loader.exec_module(network)

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


def test_enlarging_and_shrinking_back_keeps_the_image():
    x = torch.arange(12.0).view(1, 1, 3, 4)
    large = torch.nn.functional.interpolate(x, scale_factor=3, mode="nearest")
    assert large[..., ::3, ::3].equal(x)
    assert torch.nn.functional.interpolate(large, scale_factor=1 / 3, mode="area").allclose(x)


def test_the_grid_of_the_identity_reads_the_image():
    x = torch.arange(12.0).view(1, 1, 3, 4)
    grid = torch.nn.functional.affine_grid(torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), x.shape, align_corners=False)
    assert torch.nn.functional.grid_sample(x, grid, align_corners=False).allclose(x, atol=1e-5)


def test_places_that_are_nowhere_read_as_zero():
    grid = torch.full((1, 1, 1, 2), float("nan"))
    assert torch.nn.functional.grid_sample(torch.ones(1, 1, 2, 2), grid, align_corners=False).item() == 0
