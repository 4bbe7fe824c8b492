"""Pooling: values, derivatives and errors as torch has them."""

from __future__ import annotations

import network
import pytest

import mindtorch_v2 as torch

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("pool"))
def test_pool_like_torch(expression):
    network.check("pool", expression)


@pytest.mark.parametrize("expression", network.expressions("pool_error"))
def test_pool_error_like_torch(expression):
    network.check("pool_error", expression)


def test_windows_that_overlap_share_a_maximum():
    x = torch.zeros(1, 1, 3, 3)
    x[0, 0, 1, 1] = 1.0
    x.requires_grad_()
    torch.nn.functional.max_pool2d(x, 2, stride=1).sum().backward()
    assert x.grad[0, 0].tolist() == [[0.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 0.0]]


def test_the_first_of_equal_maxima_is_taken():
    _, indices = torch.nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), 2, return_indices=True)
    assert indices.flatten().tolist() == [0, 2, 8, 10]


def test_max_pool1d_without_history_needs_no_indices():
    x = torch.arange(6.0).view(1, 1, 6)
    assert torch.nn.functional.max_pool1d(x, 3).tolist() == [[[2.0, 5.0]]]
    assert torch.nn.functional.max_pool1d(x.requires_grad_(), 3).tolist() == [[[2.0, 5.0]]]


@pytest.mark.parametrize(("kind", "places"), [(torch.float32, [30, 32, 33, 35]), (torch.bfloat16, [30, 32, 34, 35])])
def test_random_places_are_counted_in_the_precision_of_the_input(kind, places):
    x = torch.arange(81.0).view(1, 1, 9, 9).to(kind)
    samples = torch.tensor([[[0.3984375, 0.5]]], dtype=kind)
    _, indices = torch.nn.functional.fractional_max_pool2d(x, 4, 4, _random_samples=samples, return_indices=True)
    assert indices[0, 0, 0].tolist() == places


def test_channels_stay_next_to_each_other():
    x = torch.arange(36.0).view(1, 2, 3, 6)
    pooled, indices = torch.nn.functional.max_pool2d(x, (1, 2), return_indices=True)
    plain = torch.nn.functional.max_unpool2d(pooled, indices, (1, 2))
    last = torch.nn.functional.max_unpool2d(pooled.contiguous(memory_format=torch.channels_last), indices, (1, 2))
    assert plain.stride() == (36, 18, 6, 1) and last.stride() == (36, 1, 12, 2) and torch.equal(plain, last)
    averaged = torch.nn.functional.adaptive_avg_pool2d(x.contiguous(memory_format=torch.channels_last), (2, 4))
    assert averaged.stride() == (16, 1, 8, 2)
    assert torch.equal(averaged, torch.nn.functional.adaptive_avg_pool2d(x, (2, 4)))


@pytest.mark.parametrize(
    ("device", "strides"), [("cpu", [(1, 12, 6, 3), (24, 1, 12, 6, 3)]), ("meta", [(8, 4, 2, 1), (24, 1, 12, 6, 3)])]
)
def test_channels_of_volumes_stay_next_to_each_other(device, strides):
    volumes = torch.randn(2, 3, 4, 4, 4, device=device).contiguous(memory_format=torch.channels_last_3d)
    for volume, stride in zip((volumes[0], volumes), strides, strict=True):
        results = torch.nn.functional.max_pool3d(volume, 2, return_indices=True)
        assert [result.stride() for result in results] == [stride, stride]
        plain = torch.nn.functional.max_pool3d(volume.contiguous(), 2)
        assert device == "meta" or torch.equal(results[0], plain)
