"""Reflected and replicated borders of large images beside NumPy's, and their gradients beside those of single pixels."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

CASES = [
    ((4, 8, 30, 40), (1, 2, 3, 4)),
    ((4, 8, 30, 40), (0, 5, 29, 0)),
    ((4, 8, 30, 40), (0, 0, 0, 1)),
    ((4, 8, 600), (7, 9)),
    ((2, 3, 16, 17, 18), (1, 2, 3, 4, 5, 6)),
]


@pytest.mark.parametrize(("shape", "padding"), CASES)
@pytest.mark.parametrize(("mode", "name"), [("reflect", "reflect"), ("replicate", "edge")])
def test_borders(shape, padding, mode, name):
    torch.manual_seed(0)
    widths = [(0, 0)] * (len(shape) - len(padding) // 2) + list(zip(padding[-2::-2], padding[::-2], strict=True))
    images = torch.randn(shape).requires_grad_()
    padded = F.pad(images, padding, mode)
    assert np.array_equal(padded.detach().numpy(), np.pad(images.detach().numpy(), widths, name))
    turned = images.detach().transpose(-1, -2).contiguous().transpose(-1, -2)
    assert torch.equal(F.pad(turned, padding, mode), padded)
    # Every pixel's number, padded, says where a gradient goes.
    grad = torch.randint(0, 9, padded.shape).float()
    places = np.pad(np.arange(images.numel()).reshape(shape), widths, name).reshape(-1)
    expected = np.bincount(places, grad.numpy().reshape(-1), images.numel()).reshape(shape)
    assert np.array_equal(torch.autograd.grad(padded, images, grad)[0].numpy(), expected)


def test_what_is_cut_off_is_no_part_of_a_border_that_mirrors_it():
    images = torch.randn(4, 8, 30, 40).requires_grad_()
    padded = F.pad(images, (-2, 5, 3, -4), "reflect")
    expected = np.pad(images.detach().numpy(), ((0, 0), (0, 0), (3, 0), (0, 5)), "reflect")[:, :, :-4, 2:]
    assert np.array_equal(padded.detach().numpy(), expected)
    padded.sum().backward()
    assert (images.grad[..., :2] == 0).all() and images.grad.sum() == padded.numel()
