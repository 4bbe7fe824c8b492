"""Sorting, selection and search."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch


@pytest.mark.like_torch("sort", "gradient_sort")
def test_like_torch(compare, section, expression):
    compare(section, expression)


@pytest.mark.parametrize("k", [1, 5, 120, 300])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, 1])
def test_topk_of_long_lines(k, largest, dim):
    """From some length on the few are found before they are sorted: the result is that of a full sort."""
    array = np.random.default_rng(0).integers(0, 1000, (300, 300)).astype(np.float32)
    values, indices = torch.from_numpy(array).topk(k, dim, largest)
    ordered = np.sort(array, dim)
    expected = np.flip(ordered, dim).take(range(k), dim) if largest else ordered.take(range(k), dim)
    assert np.array_equal(values.numpy(), expected)
    assert np.array_equal(np.take_along_axis(array, indices.numpy(), dim), expected)


@pytest.mark.parametrize("kind", ["numbers", "ties", "nan", "integers"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, -1])
def test_the_few_of_long_lines(kind, largest, dim):
    array = _lines(kind)
    for k in (1, 5, 30):
        values, places = torch.from_numpy(array).topk(k, dim, largest)
        ordered = np.sort(array, dim)
        expected = (np.flip(ordered, dim) if largest else ordered).take(range(k), dim)
        assert np.array_equal(values.numpy(), expected, equal_nan=kind == "nan")
        assert np.array_equal(np.take_along_axis(array, places.numpy(), dim), expected, equal_nan=kind == "nan")
        assert all(len(set(line)) == k for line in np.moveaxis(places.numpy(), dim, -1).tolist())


def _lines(kind):
    rng = np.random.default_rng(0)
    if kind == "ties":
        return rng.integers(0, 9, (150, 160)).astype(np.float32)
    array = rng.standard_normal((150, 160)).astype(np.float32)
    if kind == "nan":
        array[rng.random(array.shape) < 0.01] = np.nan
        array[3] = array[:, 5] = np.nan
    return (array * 1000).astype(np.int64) if kind == "integers" else array


@pytest.mark.parametrize("kind", ["numbers", "ties", "nan", "integers"])
@pytest.mark.parametrize("dim", [0, -1])
def test_ranks_of_long_lines(kind, dim):
    """What is found without sorting is what a stable sort has there, the place included."""
    array = _lines(kind)
    order = np.argsort(array, dim, kind="stable")
    n = array.shape[dim]
    for x in (torch.from_numpy(array), torch.from_numpy(np.repeat(array, 2, 1))[:, ::2]):
        for k in (1, 7, 80, n - 1, n):
            values, places = x.kthvalue(k, dim, True)
            expected = order.take([k - 1], dim)
            assert np.array_equal(places.numpy(), expected)
            assert np.array_equal(values.numpy(), np.take_along_axis(array, expected, dim), equal_nan=kind != "integers")
        nan = np.isnan(array)
        count = nan.sum(dim, keepdims=True)
        for name, rank in (
            ("median", np.where(count > 0, n - count, (n - 1) // 2)),
            ("nanmedian", np.maximum(n - count - 1, 0) // 2),
        ):
            values, places = getattr(x, name)(dim, True)
            assert np.array_equal(places.numpy(), np.take_along_axis(order, rank, dim))


def test_a_line_of_nan_does_not_hide_the_ties_of_another():
    lines = torch.rand(2, 200)
    lines[0, 50:] = torch.nan
    lines[1, :2] = 0.5
    rank = int((lines[1] < 0.5).sum()) + 2
    assert rank > 50
    assert lines.kthvalue(rank, 1).indices.tolist() == [rank - 1, 1]


def test_sorting_is_stable_both_ways():
    x = torch.tensor([1, 0, 1, 0] * 20)
    assert x.sort().indices.tolist() == [*range(1, 80, 2), *range(0, 80, 2)]
    assert x.sort(descending=True).indices.tolist() == [*range(0, 80, 2), *range(1, 80, 2)]


def test_results_have_names():
    made = torch.tensor([2, 1]).sort()
    assert type(made).__name__ == "sort" and made._fields == ("values", "indices")


def test_unique_has_no_derivative():
    x = torch.ones(3, requires_grad=True)
    for made in (x.unique(), x.unique_consecutive(), x.unique(dim=0)):
        with pytest.raises(NotImplementedError, match="is not implemented"):
            made.sum().backward()


def test_the_gradient_of_median_is_shared_by_equals():
    x = torch.tensor([1.0, 2.0, 2.0, 3.0], requires_grad=True)
    x.median().backward()
    assert x.grad.tolist() == [0, 0.5, 0.5, 0]


def test_searchsorted_asks_for_what_it_can_do():
    edges, values = torch.zeros(2, 3), torch.zeros(3, 1)
    with pytest.raises(RuntimeError, match="first N-1 dimensions"):
        torch.searchsorted(edges, values)
    with pytest.raises(RuntimeError, match="side can only be"):
        torch.searchsorted(edges[0], values, side="up")
    with pytest.raises(RuntimeError, match="opposites"):
        torch.searchsorted(edges[0], values, right=True, side="left")
    with pytest.raises(RuntimeError, match="boundaries tensor must be 1 dimension"):
        torch.bucketize(values, edges)
