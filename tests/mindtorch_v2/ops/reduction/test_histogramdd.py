"""`histogramdd`: what PyTorch 2.13 answered."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

import mindtorch_v2 as torch

POINTS = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
WEIGHT = torch.tensor([1.0, 2.0, 4.0, 8.0])
EDGES = (torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 0.5, 2.0]))
THIRDS = [0.0, 2 / 3, 4 / 3, 2.0]


@pytest.mark.parametrize(
    ("bins", "kwargs", "hist", "edges"),
    [
        ([3, 3], {}, [[0, 1, 0], [1, 0, 0], [1, 0, 1]], [THIRDS, THIRDS]),
        (3, {}, [[0, 1, 0], [1, 0, 0], [1, 0, 1]], [THIRDS, THIRDS]),
        ([3, 2], {"weight": WEIGHT}, [[0, 1], [2, 0], [4, 8]], [THIRDS, [0, 1, 2]]),
        ([2, 2], {"range": [0.0, 1.0, 0.0, 1.0], "density": True}, [[0, 2], [2, 0]], [[0, 0.5, 1], [0, 0.5, 1]]),
        ([2, 2], {"weight": WEIGHT, "density": True}, [[0, 1 / 15], [0.4, 8 / 15]], [[0, 1, 2], [0, 1, 2]]),
        ([2, 2], {"range": [0, 1, 0, 0]}, [[0, 0], [0, 1]], [[0, 0.5, 1], [-0.5, 0, 0.5]]),
        (EDGES, {}, [[0, 1], [2, 1]], [[0, 1, 2], [0, 0.5, 2]]),
        (EDGES, {"weight": WEIGHT}, [[0, 1], [6, 8]], [[0, 1, 2], [0, 0.5, 2]]),
        ((torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])), {}, [[0]], [[1, 0], [0, 1]]),
    ],
)
def test_values(bins: Any, kwargs: dict[str, Any], hist: list[Any], edges: list[Any]) -> None:
    made = torch.histogramdd(POINTS, bins, **kwargs)
    assert type(made) is torch.return_types.histogramdd and type(made.bin_edges) is tuple
    assert made.hist.dtype is torch.float32
    for got, wanted in zip((made.hist, *made.bin_edges), (hist, *edges), strict=True):
        assert torch.allclose(got, torch.tensor(wanted, dtype=torch.float32))


@pytest.mark.parametrize(
    ("points", "hist", "edges"),
    [
        (torch.empty(0, 2), [[0, 0], [0, 0]], [0, 0.5, 1]),
        (torch.ones(3, 2), [[0, 0], [0, 3]], [0.5, 1, 1.5]),
        (POINTS.reshape(2, 2, 2), [[0, 1], [2, 1]], [0, 1, 2]),
        (POINTS.double(), [[0, 1], [2, 1]], [0, 1, 2]),
    ],
)
def test_inputs(points: torch.Tensor, hist: list[Any], edges: list[Any]) -> None:
    made = torch.histogramdd(points, [2, 2])
    assert made.hist.dtype is points.dtype
    assert made.hist.tolist() == hist and [e.tolist() for e in made.bin_edges] == [edges, edges]


def test_what_is_no_number_counts_nowhere() -> None:
    points = torch.tensor([[nan, 1.0], [1.0, 1.0]])
    assert torch.histogramdd(points, [2, 2], range=[0, 2, 0, 2]).hist.tolist() == [[0, 0], [0, 1]]


def test_no_dims() -> None:
    made = torch.histogramdd(torch.ones(3, 0), [])
    assert made.hist.item() == 0 and made.bin_edges == ()


@pytest.mark.parametrize(
    ("points", "bins", "kwargs", "error", "message"),
    [
        (POINTS, [3], {}, RuntimeError, "The size of bins must be equal to the innermost dimension of the input."),
        (POINTS, [0, 1], {}, RuntimeError, "bins must be > 0, but got 0 for dimension 0"),
        (POINTS, [-1, 1], {}, RuntimeError, "bins tensor should have at least 1 element, but got 0 elements"),
        (
            POINTS,
            [2, 2],
            {"range": [0.0, 1.0]},
            RuntimeError,
            "2-dimensional histogram range should have 4 elements, but got 2",
        ),
        (POINTS, [2, 2], {"range": [1.0, 0.0, 0.0, 1.0]}, RuntimeError, "but got min 1 max 0 for dimension 0"),
        (POINTS, [2, 2], {"range": [0.0, inf, 0.0, 1.0]}, RuntimeError, r"dimension 0's range \[0, inf\] is not finite"),
        (torch.tensor([[nan, 1.0]]), [2, 2], {}, RuntimeError, r"dimension 0's range \[nan, nan\] is not finite"),
        (POINTS.long(), [2, 2], {}, NotImplementedError, "\"histogramdd\" not implemented for 'Long'"),
        (POINTS.half(), [2, 2], {}, NotImplementedError, "\"histogramdd\" not implemented for 'Half'"),
        (POINTS, [2, 2], {"weight": torch.ones(3)}, RuntimeError, r"shape \[4, 2\] and weight with shape \[3\]"),
        (POINTS, [2, 2], {"weight": WEIGHT.double()}, RuntimeError, r"got input\(float\), and weight\(double\)"),
        (torch.ones(2), [2], {}, RuntimeError, "input tensor should have at least 2 dimensions"),
        (torch.tensor(1.0), [2], {}, RuntimeError, "input tensor should have at least 2 dimensions"),
        (torch.tensor(1.0), 2, {}, IndexError, "Dimension specified as -1 but tensor has no dimensions"),
        (POINTS, EDGES[:1], {}, RuntimeError, "expected 2 sequences of bin edges for a 2-dimensional histogram but got 1"),
        (POINTS, (EDGES[0], EDGES[1].double()), {}, RuntimeError, "bins for dimension 1 with dtype double"),
        (POINTS, (EDGES[0], EDGES[1][None]), {}, RuntimeError, "but got 2 dimensions in the bins tensor for dimension 1"),
        (POINTS, (EDGES[0], EDGES[1][:1]), {}, RuntimeError, "bins must be > 0, but got 0 for dimension 1"),
        (POINTS, 2.5, {}, TypeError, r"got \(Tensor, float\)"),
    ],
)
def test_refusals(points: torch.Tensor, bins: Any, kwargs: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        torch.histogramdd(points, bins, **kwargs)


def test_there_is_no_derivative() -> None:
    made = torch.histogramdd(POINTS.clone().requires_grad_(), [2, 2])
    with pytest.raises(RuntimeError, match="derivative for aten::_histogramdd_from_bin_cts is not implemented"):
        made.hist.sum().backward()
