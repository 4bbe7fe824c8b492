"""Adaptive averages of what is not finite, and of integers: what PyTorch 2.13 answered."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F

nan, inf = float("nan"), float("inf")


def plane():
    x = torch.arange(24.0).reshape(1, 1, 4, 6)
    x[0, 0, 0, 1] = nan
    x[0, 0, 3, 5] = inf
    return x


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: F.adaptive_avg_pool1d(torch.tensor([[[1.0, nan, 3.0, 4.0, 5.0, 6.0]]]), 3), [nan, 3.5, 5.5]),
        (lambda: F.adaptive_avg_pool1d(torch.tensor([[[1.0, inf, 3.0, -inf, 5.0, 6.0]]]), 4), [inf, inf, -inf, 5.5]),
        (lambda: F.adaptive_avg_pool2d(plane(), (2, 3)), [nan, 5.5, 7.5, 15.5, 17.5, inf]),
        (lambda: F.adaptive_avg_pool2d(plane(), (3, 4)), [nan, nan, 6.5, 7.5, 9.5, 10.5, 12.5, 13.5, 15.5, 16.5, 18.5, inf]),
        (lambda: F.adaptive_avg_pool2d(plane().half(), (2, 3)), [nan, 5.5, 7.5, 15.5, 17.5, inf]),
        (lambda: F.adaptive_avg_pool2d(torch.full((1, 1, 4, 4), 3e38), (2, 2)), [inf] * 4),
        (lambda: F.adaptive_avg_pool3d(plane().reshape(1, 2, 2, 6), (2, 1, 4)), [nan, nan, 6.5, 7.5, 15.5, 16.5, 18.5, inf]),
        (lambda: F.interpolate(plane(), size=(2, 2), mode="area"), [nan, 7.0, 16.0, inf]),
        (lambda: F.adaptive_avg_pool2d(plane()[..., 2:4], (1, 2)), [11.0, 12.0]),
    ],
)
def test_only_the_windows_that_hold_it_are_not_finite(call, expected):
    assert call().flatten().tolist() == pytest.approx(expected, nan_ok=True)


def test_gradients_that_are_not_finite_stay_in_their_windows():
    y = torch.ones(1, 1, 4, 6, requires_grad=True)
    F.adaptive_avg_pool2d(y, (2, 3)).backward(torch.tensor([[[[1.0, nan, 2.0], [inf, 4.0, 5.0]]]]))
    above, below = [0.25, 0.25, nan, nan, 0.5, 0.5], [inf, inf, 1.0, 1.0, 1.25, 1.25]
    assert y.grad.flatten().tolist() == pytest.approx([*above, *above, *below, *below], nan_ok=True)


def test_a_long_row_is_pooled_window_by_window():
    x = torch.arange(3000.0).reshape(1, 1, -1).requires_grad_()
    made = F.adaptive_avg_pool1d(x, 700)
    assert made[0, 0, [0, 1, 350, 699]].tolist() == [2.0, 6.0, 1502.0, 2997.0]
    made.sum().backward()
    # The 5th number belongs to the first two windows, which have five each.
    assert x.grad[0, 0, :6].tolist() == pytest.approx([0.2, 0.2, 0.2, 0.2, 0.4, 0.2])


def zeros(kind):
    return torch.zeros(1, 2, 4, 4, dtype=kind)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: F.adaptive_avg_pool1d(torch.tensor([[[1, 2, 3, 4]]]), 2),
            "\"adaptive_avg_pool2d\" not implemented for 'Long'",
        ),
        (lambda: F.adaptive_avg_pool2d(zeros(torch.bool), 2), "\"adaptive_avg_pool2d\" not implemented for 'Bool'"),
        (
            lambda: F.adaptive_avg_pool2d(zeros(torch.complex64), 2),
            "\"adaptive_avg_pool2d\" not implemented for 'ComplexFloat'",
        ),
        (lambda: F.adaptive_avg_pool3d(zeros(torch.int32), 2), "\"adaptive_avg_pool3d_cpu\" not implemented for 'Int'"),
        (lambda: F.adaptive_max_pool2d(zeros(torch.int64), 2), "\"adaptive_max_pool2d\" not implemented for 'Long'"),
        (lambda: F.adaptive_max_pool3d(zeros(torch.int64), 2), "\"adaptive_max_pool3d_cpu\" not implemented for 'Long'"),
        (lambda: F.avg_pool1d(zeros(torch.int32)[0], 2), "\"avg_pool2d\" not implemented for 'Int'"),
        (lambda: F.avg_pool2d(zeros(torch.bool), 2), "\"avg_pool2d\" not implemented for 'Bool'"),
        (lambda: F.avg_pool3d(zeros(torch.complex64), 2), "\"avg_pool3d_out_frame\" not implemented for 'ComplexFloat'"),
    ],
)
def test_types_that_are_not_pooled(call, words):
    with pytest.raises(NotImplementedError) as raised:
        call()
    assert str(raised.value).startswith(words)


def test_averages_of_longs_are_cut_off():
    z = torch.arange(8).reshape(1, 1, 2, 4)
    assert F.avg_pool1d(torch.tensor([[[1, 2, 3, 4]]]), 2).tolist() == [[[1, 3]]]
    assert F.avg_pool2d(z, 2).tolist() == [[[[2, 4]]]]
    assert F.avg_pool3d(z, (1, 2, 2)).tolist() == [[[[2, 4]]]]
    assert F.avg_pool1d(z[0] - 5, 3, 2, 1).tolist() == [[[-3, -3], [0, 1]]]
    assert F.avg_pool2d(z - 5, 3, 2, 1, count_include_pad=False).tolist() == [[[[-2, -1]]]]
    assert F.avg_pool2d(z, 2, divisor_override=3).tolist() == [[[[3, 6]]]]
    assert F.avg_pool2d(z, (2, 3), 1, (1, 1), True).tolist() == [[[[0, 0, 1, 0], [1, 3, 4, 3], [1, 2, 3, 2]]]]
