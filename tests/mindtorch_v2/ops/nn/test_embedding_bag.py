"""Bags of embeddings beside a loop over the bags: few rows and many, bags of one size and of many, weights, padding, nan."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

# Rows of the table, their width, bags, indices for each: a product of matrices, bags of taken rows, reduceat.
SIZES = [(40, 64, 30, 100), (5000, 64, 60, 9), (5000, 96, 3, 2000), (3000, 5, 40, 7), (4000, 32, 900, 30)]


def _loop(weight, indices, offsets, mode, scales, padding):
    ends = [*offsets[1:], len(indices)]
    rows = []
    for start, end in zip(offsets, ends, strict=True):
        kept = [k for k in range(start, end) if indices[k] != padding]
        if not kept:
            rows.append(torch.zeros(weight.shape[1], dtype=weight.dtype))
            continue
        bag = weight[indices[kept]] * (1 if scales is None else scales[kept][:, None])
        rows.append(bag.max(0).values if mode == "max" else bag.sum(0) / (len(kept) if mode == "mean" else 1))
    return torch.stack(rows)


def _offsets(rng, bags, total, is_even):
    if is_even:
        return list(range(0, total, total // bags))
    return [0, *sorted(rng.integers(0, total, bags - 1).tolist())]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("mode", ["sum", "mean", "max", "scaled"])
def test_bags_and_gradients(size, is_even, mode):
    count, width, bags, each = size
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    indices = torch.randint(0, count, (bags * each,))
    offsets = _offsets(rng, bags, bags * each, is_even)
    scales = torch.rand(bags * each, dtype=torch.float64).requires_grad_() if mode == "scaled" else None
    mode = "sum" if mode == "scaled" else mode
    padding = int(indices[0])
    for kind in (torch.float64, torch.float32):
        weight = torch.randn(count, width, dtype=torch.float64).requires_grad_()
        narrow = None if scales is None else scales.detach().to(kind).requires_grad_()
        leaf = weight.detach().to(kind).requires_grad_()
        expected = _loop(weight, indices, offsets, mode, scales, padding)
        result = F.embedding_bag(
            indices, leaf, torch.tensor(offsets), mode=mode, per_sample_weights=narrow, padding_idx=padding
        )
        close = {"rtol": 1e-4, "atol": 1e-4} if kind is torch.float32 else {"rtol": 1e-9, "atol": 1e-9}
        torch.testing.assert_close(result.double(), expected, **close)
        grad = torch.randn(expected.shape, dtype=torch.float64)
        wanted = torch.autograd.grad(expected, weight, grad)[0]
        got = torch.autograd.grad(result, leaf, grad.to(kind))[0]
        if mode != "max" or kind is torch.float64:  # rounded, two may be the largest
            torch.testing.assert_close(got.double(), wanted, **close)


@pytest.mark.parametrize("size", [*SIZES, (10, 3, 2, 4)])
@pytest.mark.parametrize("is_even", [True, False])
def test_what_is_no_number_stays_in_its_bags(size, is_even):
    count, width, bags, each = size
    torch.manual_seed(0)
    weight = torch.randn(count, width)
    weight[::7, ::2] = torch.nan
    weight[1::9, 1] = torch.inf
    indices = torch.randint(0, count, (bags * each,))
    offsets = _offsets(np.random.default_rng(1), bags, bags * each, is_even)
    sums = F.embedding_bag(indices, weight, torch.tensor(offsets), mode="sum")
    expected = _loop(weight, indices, offsets, "sum", None, -1)
    torch.testing.assert_close(sums, expected, equal_nan=True, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("width", [1, 9000])
def test_a_nan_is_the_largest_only_as_the_first(width):
    weight = torch.tensor([1.0, torch.nan, 3.0, 3.0])[:, None].repeat(1, width).requires_grad_()
    maxima = F.embedding_bag(torch.tensor([0, 1, 2, 3, 1, 3, 0, 0]), weight, torch.tensor([0, 4, 4, 7]), mode="max")
    torch.testing.assert_close(maxima[:, 0], torch.tensor([3, 0, torch.nan, 1]), equal_nan=True)
    maxima.sum().backward()
    assert weight.grad[:, -1].tolist() == [1, 1, 1, 0]


def test_gradients_scaled_by_frequency():
    weight = torch.ones(50, 40, requires_grad=True)
    indices = torch.arange(2000) % 30
    out = F.embedding_bag(indices, weight, torch.arange(0, 2000, 100), mode="mean", scale_grad_by_freq=True)
    out.sum().backward()
    torch.testing.assert_close(weight.grad[:30], torch.full((30, 40), 0.01))
    assert (weight.grad[30:] == 0).all()
