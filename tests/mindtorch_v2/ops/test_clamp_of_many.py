"""Bounds of many float32 elements, which NumPy's clip applies, against those of a few, which are a maximum and a minimum."""

from __future__ import annotations

import math

import pytest

import mindtorch_v2 as torch

FEW = [-math.inf, -2.0, -0.0, 0.0, 1e-45, 0.5, 1.0, 3.0, math.inf, math.nan]
BOUNDS = [-math.inf, -1, -0.0, 0, 0.5, 2, math.inf, math.nan]


def same(many, few):
    assert torch.equal(many.isnan(), few.isnan()) and torch.equal(many.nan_to_num(), few.nan_to_num())


@pytest.mark.parametrize("bound", BOUNDS)
def test_one_bound(bound):
    few, many = torch.tensor(FEW), torch.tensor(FEW * 300)
    for call in (
        lambda x: x.clamp_min(bound),
        lambda x: x.clamp_max(bound),
        lambda x: x.clamp(bound),
        lambda x: x.clamp(max=bound),
        lambda x: x.clone().clamp_min_(bound),
        lambda x: x.clone().clamp_max_(bound),
        lambda x: x.clone().clamp_(max=bound),
        lambda x: torch.clamp_min(x, bound, out=torch.empty_like(x)),
    ):
        same(call(many), call(few).repeat(300))


@pytest.mark.parametrize("low", BOUNDS)
@pytest.mark.parametrize("high", BOUNDS)
def test_two_bounds(low, high):
    few, many = torch.tensor(FEW), torch.tensor(FEW * 300)
    same(many.clamp(low, high), few.clamp(low, high).repeat(300))


def test_what_is_within_the_bounds_stays_to_the_bit():
    """As torch: -0.0 is not below 0."""
    many = torch.tensor([-0.0, 0.0] * 2000)
    for clamped in (many.clamp_min(0), many.clamp_max(0), many.clamp(0, 1), many.clamp(-0.0, -0.0), many.relu()):
        assert torch.equal(clamped.signbit(), many.signbit())
