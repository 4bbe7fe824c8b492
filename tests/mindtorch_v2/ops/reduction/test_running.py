"""Running sums, products and extremes of large tensors, which are computed in parts, beside a loop over the steps."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch

# Along each of their dims: steps of many elements, rows of whole parts and of a few more, short rows, one long row.
SHAPES = [(200, 300), (130, 129), (3000, 9), (16390,), (3, 50, 200), (5000, 4, 3), (16, 1024)]
CASES = [(shape, dim) for shape in SHAPES for dim in range(-1, len(shape) - 1)]


def _loop(ufunc, array, dim):
    steps = np.moveaxis(array, dim, 0)
    results = [steps[0]]
    for step in steps[1:]:
        results.append(ufunc(results[-1], step))
    return np.moveaxis(np.array(results), 0, dim)


@pytest.mark.parametrize(("shape", "dim"), CASES)
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.float16, torch.int32])
def test_totals(shape, dim, kind):
    torch.manual_seed(0)
    numbers = torch.randint(-40, 40, shape).to(kind)
    wide = numbers.double().numpy() if kind.is_floating_point else numbers.long().numpy()
    sums = numbers.cumsum(dim)
    if kind is not torch.float16:
        np.testing.assert_array_equal(sums.numpy(), _loop(np.add, wide, dim))  # whole numbers: exact
    factors = (torch.randint(0, 2, shape) * 2 - 1).to(kind)
    np.testing.assert_array_equal(factors.cumprod(dim).numpy(), _loop(np.multiply, factors.numpy(), dim))


def test_sums_and_products_of_float32_are_close_to_those_in_float64():
    torch.manual_seed(0)
    for shape in ((100, 1003), (1, 1 << 18)):
        numbers = torch.rand(shape)
        torch.testing.assert_close(numbers.cumsum(1), numbers.double().cumsum(1).float(), rtol=2e-7, atol=0)
        factors = 2 ** (numbers * 0.1 - 0.05)
        torch.testing.assert_close(factors.cumprod(1), factors.double().cumprod(1).float(), rtol=2e-7, atol=0)


def test_products_do_not_leave_the_range_inside_of_a_part():
    factors = torch.tensor([1e-30, 1e30, 1e30, 1e-30, 1e-30, 1e30, 1.0, 0.0, 1e38, 1e38]).repeat(400, 10)
    products = factors.cumprod(1)
    torch.testing.assert_close(products[:, :8], torch.tensor([1e-30, 1, 1e30, 1, 1e-30, 1, 1, 0]).expand(400, 8))
    assert (products[:, 7:] == 0).all()


def test_sums_of_what_is_not_finite():
    numbers = torch.ones(400, 100)
    numbers[:, 50] = torch.inf
    numbers[:, 77] = -torch.inf
    sums = numbers.cumsum(1)
    assert (sums[:, :50] == torch.arange(1.0, 51)).all()
    assert (sums[:, 50:77] == torch.inf).all() and sums[:, 77:].isnan().all()


@pytest.mark.parametrize(("shape", "dim"), CASES)
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize(("name", "scale"), [("cummax", 3), ("cummin", 3), ("cummax", 1000)])
def test_extremes(shape, dim, kind, name, scale):
    """The last of equal ones, nan from the first on: each as in a loop over the steps."""
    torch.manual_seed(0)
    numbers = (torch.randn(shape) * scale).abs().to(kind)  # with many ties, or few
    if kind.is_floating_point:
        numbers[torch.rand(shape) < 0.005] = torch.nan
    values, places = getattr(numbers, name)(dim)
    steps = np.moveaxis(numbers.double().numpy(), dim, 0)
    best, at = steps[0], np.zeros(steps.shape[1:], np.int64)
    bests, ats = [], []
    for k, step in enumerate(steps):
        reached = (step >= best if name == "cummax" else step <= best) | np.isnan(step)
        best, at = np.where(reached, step, best), np.where(reached, k, at)
        bests.append(best)
        ats.append(at)
    np.testing.assert_array_equal(np.moveaxis(values.double().numpy(), dim, 0), bests)
    np.testing.assert_array_equal(np.moveaxis(places.numpy(), dim, 0), ats)


def test_places_of_a_row_that_int16_does_not_count():
    numbers = torch.arange(40000) // 7
    values, places = numbers.cummax(0)
    assert (values == numbers).all() and (places == torch.arange(40000)).all()


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), ()])
def test_nothing_to_scan(shape):
    empty = torch.ones(shape)
    assert empty.cumsum(0).shape == empty.cumprod(-1).shape == empty.cummax(0).values.shape == shape


def test_tensors_that_lie_otherwise():
    numbers = torch.randint(-40, 40, (300, 400)).float()
    for other in (numbers.t(), numbers[:, ::2], numbers.flip(0), numbers[:1].expand(200, 400)):
        for dim in (0, 1):
            for name in ("cumsum", "cummax"):
                one, two = getattr(other, name)(dim), getattr(other.clone(memory_format=torch.contiguous_format), name)(dim)
                torch.testing.assert_close(one, two, rtol=0, atol=0)
                assert (one if name == "cumsum" else one.values).is_contiguous()
