"""segment_reduce: what torch gives for segments of a dim, empty ones among them."""

from __future__ import annotations

import math

import pytest

import mindtorch_v2 as torch

NAN, INF = math.nan, math.inf


def rows():
    return torch.arange(6.0).view(3, 2)


@pytest.mark.parametrize(
    "reduce, options, answer",
    [
        ("sum", {}, [[0, 1], [0, 0], [6, 8]]),
        ("mean", {}, [[0, 1], [NAN, NAN], [3, 4]]),
        ("prod", {}, [[0, 1], [1, 1], [8, 15]]),
        ("max", {}, [[0, 1], [-INF, -INF], [4, 5]]),
        ("min", {}, [[0, 1], [INF, INF], [2, 3]]),
        ("amax", {"initial": 3}, [[3, 3], [3, 3], [4, 5]]),
        ("sum", {"initial": 10}, [[10, 11], [10, 10], [16, 18]]),
        ("mean", {"initial": 10}, [[10, 11], [10, 10], [8, 9]]),
        ("prod", {"initial": 2}, [[0, 2], [2, 2], [16, 30]]),
    ],
)
@pytest.mark.parametrize("how", [{"lengths": [1, 0, 2]}, {"offsets": [0, 1, 1, 3]}], ids=["lengths", "offsets"])
def test_segments_of_rows(reduce, options, answer, how):
    made = torch.segment_reduce(rows(), reduce, **{name: torch.tensor(given) for name, given in how.items()}, **options)
    torch.testing.assert_close(made, torch.tensor(answer, dtype=torch.float32), equal_nan=True)


@pytest.mark.parametrize(
    "options, answer",
    [
        ({"lengths": [[1, 1], [2, 0], [0, 2]], "axis": 1}, [[0, 1], [5, 0], [0, 9]]),
        ({"lengths": [1, 1], "unsafe": True}, [[0, 1], [2, 3]]),
        ({"offsets": [1, 3]}, [[6, 8]]),
        ({"offsets": [0, 1, 9]}, [[0, 1], [6, 8]]),
    ],
)
def test_segments_may_differ_by_row_leave_some_out_and_end_beyond_the_end(options, answer):
    given = {name: torch.tensor(value) if isinstance(value, list) else value for name, value in options.items()}
    assert torch.segment_reduce(rows(), "sum", **given).tolist() == answer


@pytest.mark.parametrize(
    "reduce, numbers, grad",
    [
        ("sum", [1.0, 2.0, 3.0], [1, 10, 10]),
        ("mean", [1.0, 2.0, 3.0], [1, 5, 5]),
        ("max", [1.0, 3.0, 3.0], [1, 5, 5]),
        ("min", [1.0, 2.0, 3.0], [1, 10, 0]),
        ("prod", [4.0, 2.0, 3.0], [1, 30, 20]),
        ("prod", [4.0, 0.0, 3.0], [1, 30, 0]),
    ],
)
def test_gradients_of_segments(reduce, numbers, grad):
    x = torch.tensor(numbers, requires_grad=True)
    made = torch.segment_reduce(x, reduce, lengths=torch.tensor([1, 2]))
    assert made.grad_fn.name() == "SegmentReduceBackward0"
    (made * torch.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == grad


def test_half_precision_and_nothing():
    assert torch.segment_reduce(rows().bfloat16(), "mean", lengths=torch.tensor([1, 2])).tolist() == [[0, 1], [3, 4]]
    assert torch.segment_reduce(torch.zeros(0, 2), "sum", lengths=torch.tensor([0, 0])).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    "kind, reduce, options, message",
    [
        (RuntimeError, "sum", {}, "Either lengths or offsets must be defined"),
        (RuntimeError, "foo", {"lengths": [3]}, "reduce argument must be either sum, prod, mean, amax or amin, got foo"),
        (RuntimeError, "sum", {"indices": [0, 1, 1]}, "indices based reduction is not supported yet"),
        (RuntimeError, "sum", {"lengths": [1, 1]}, "Expected all rows of lengths along axis to sum to"),
        (RuntimeError, "sum", {"lengths": [4, -1]}, "lengths contains negative value!"),
        (RuntimeError, "sum", {"lengths": [1, 2], "axis": 1}, "Expected axis to be the last dimension of lengths but got 1"),
        (RuntimeError, "sum", {"lengths": [[1, 1]], "axis": 1}, "to agree with data of size"),
        (NotImplementedError, "sum", {"lengths": [1.0, 2.0]}, "not implemented for 'Float'"),
    ],
)
def test_what_is_no_segment(kind, reduce, options, message):
    given = {name: torch.tensor(value) if isinstance(value, list) else value for name, value in options.items()}
    with pytest.raises(kind, match=message):
        torch.segment_reduce(rows(), reduce, **given)


def test_whole_numbers_are_not_reduced():
    with pytest.raises(NotImplementedError, match="\"_segment_reduce_cpu\" not implemented for 'Long'"):
        torch.segment_reduce(rows().long(), "sum", lengths=torch.tensor([3]))
