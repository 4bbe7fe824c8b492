"""Sums and means of large arrays along any dims, which BLAS adds up where they come first or last."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mindtorch_v2 as torch

# Dims of one element, rows too long for BLAS, one dim.
SHAPES = [
    *[(170, 180), (3, 150, 40), (4, 8, 36, 16), (20000,), (1, 20000), (20000, 1), (2, 1, 100, 100), (2, 1 << 15), (1200, 30)],
    (30, 0, 700),
]
CASES = [
    (shape, dims, keepdim)
    for shape in SHAPES
    for count in range(1, len(shape) + 1)
    for dims in itertools.combinations(range(len(shape)), count)
    for keepdim in (False, True)
]


@pytest.mark.parametrize(("shape", "dims", "keepdim"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_sums_agree_with_those_in_double_precision(shape, dims, keepdim):
    x = torch.randn(shape)
    kept = x.clone()
    wide = x.numpy().astype(np.float64)
    backwards = [dim - len(shape) for dim in reversed(dims)]
    for order in (dims, backwards):
        total, mean = x.sum(order, keepdim), x.mean(order, keepdim)
        assert total.dtype is torch.float32 and total.is_contiguous()
        np.testing.assert_allclose(total.numpy(), wide.sum(dims, keepdims=keepdim), rtol=1e-5, atol=2e-3)
        np.testing.assert_allclose(mean.numpy(), wide.mean(dims, keepdims=keepdim), rtol=1e-5, atol=1e-5)
    assert total.untyped_storage().data_ptr() != x.untyped_storage().data_ptr() and x.equal(kept)


def test_long_sums_do_not_drift():
    """One after another, a tenth added a million times comes to 100958."""
    for shape, dim in (((2, 1 << 20), 1), ((1 << 20, 2), 0), ((2, 1 << 10, 1 << 10), (1, 2)), ((1 << 10, 1 << 10, 2), (0, 1))):
        total = torch.full(shape, 0.1).sum(dim)
        torch.testing.assert_close(total, torch.full((2,), 104857.6), rtol=5e-6, atol=0)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_infinite_numbers_stay_in_their_sums(value):
    x = torch.ones(150, 160)
    x[3, 5] = value
    for dim, at in ((0, 5), (1, 3)):
        total = x.sum(dim)
        assert total[at].isnan().item() if value != value else total[at].item() == value
        assert total.isfinite().sum().item() == len(total) - 1


def test_wrong_dims_are_refused_as_for_small_tensors():
    x = torch.ones(150, 160)
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
        x.sum((0, -2))
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.sum(2)
