"""Images read at arbitrary places, beside a loop over the points."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F


def _loop(images, grid, mode):
    """Bilinear or nearest reading with zeros around, align_corners, point by point."""
    batch, channels, height, width = images.shape
    output = np.zeros((batch, channels, *grid.shape[1:-1]))
    for n in range(batch):
        for at in np.ndindex(*grid.shape[1:-1]):
            x, y = (grid[n][at] + 1) * (np.array([width, height]) - 1) / 2
            if mode == "nearest":
                taps = [(round(y), round(x), 1.0)]
            else:
                top, left = math.floor(y), math.floor(x)
                down, right = y - top, x - left
                taps = [
                    (top, left, (1 - down) * (1 - right)),
                    (top, left + 1, (1 - down) * right),
                    (top + 1, left, down * (1 - right)),
                    (top + 1, left + 1, down * right),
                ]
            for i, j, weight in taps:
                if 0 <= i < height and 0 <= j < width:
                    output[(n, slice(None), *at)] += images[n, :, i, j] * weight
    return output


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("channels", [1, 9, 400])
def test_points_inside_and_outside(mode, channels):
    torch.manual_seed(0)
    images = torch.randn(3, channels, 6, 7).double()
    grid = torch.rand(3, 20, 15, 2).double() * 2.6 - 1.3
    result = F.grid_sample(images, grid, mode=mode, align_corners=True)
    np.testing.assert_allclose(result.numpy(), _loop(images.numpy(), grid.numpy(), mode), atol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_gradients_are_those_of_the_sums(mode):
    """The result is linear in the image: its gradient, times an image, is what that image gives."""
    torch.manual_seed(0)
    images = torch.randn(3, 5, 6, 7).double().requires_grad_()
    grid = torch.rand(3, 40, 15, 2).double() * 2.6 - 1.3
    result = F.grid_sample(images, grid, mode=mode, align_corners=False)
    weights = torch.randn(result.shape).double()
    (result * weights).sum().backward()
    other = torch.randn(images.shape).double()
    expected = (F.grid_sample(other, grid, mode=mode, align_corners=False) * weights).sum()
    torch.testing.assert_close((images.grad * other).sum(), expected)


def test_what_is_no_number_is_read_only_where_it_is():
    images = torch.ones(1, 2, 4, 4)
    images[..., 0, 0] = torch.nan
    images[..., 3, 3] = torch.inf
    grid = torch.tensor([[[[-3.0, -3.0], [3.0, 3.0], [0.0, 0.0], [-1.0, -1.0]]]])
    result = F.grid_sample(images, grid, align_corners=True)[0, :, 0]
    assert (result[:, :2] == 0).all() and (result[:, 2] == 1).all() and result[:, 3].isnan().all()


@pytest.mark.parametrize("shape", [(0, 2, 4, 4), (2, 3, 4, 4)])
def test_no_points(shape):
    images = torch.ones(shape, requires_grad=True)
    result = F.grid_sample(images, torch.zeros(shape[0], 0, 5, 2), align_corners=True)
    assert result.shape == (*shape[:2], 0, 5)
    result.sum().backward()
    assert not images.grad.any()
