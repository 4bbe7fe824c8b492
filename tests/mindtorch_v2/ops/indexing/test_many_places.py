"""Gather and scatter of many elements, which go by their places in memory, beside NumPy's keys of several indices."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch

# Shape, and the shape of an index that may be shorter than it, or longer along the dim.
SHAPES = [
    ((300, 400), (300, 400)),
    ((50, 60, 70), (41, 60, 33)),
    ((5000,), (9000,)),
    ((3, 2000), (3, 1500)),
    ((900, 3), (900, 2)),
]
CASES = [(shape, taken, dim) for shape, taken in SHAPES for dim in range(len(shape)) if len(shape) > 1 or dim == 0]


def _key(index, dim):
    mesh = list(np.indices(index.shape))
    mesh[dim] = index
    return tuple(mesh)


@pytest.mark.parametrize(("shape", "taken", "dim"), CASES)
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_gather_and_scatter(shape, taken, dim, kind):
    torch.manual_seed(0)
    x = torch.randint(0, 100, shape).to(kind)
    values = torch.randint(0, 100, taken).to(kind)
    index = torch.randint(0, shape[dim], taken)
    key = _key(index.numpy(), dim)
    plain = x.numpy() if kind is not torch.bfloat16 else x.float().numpy()
    added = values.numpy() if kind is not torch.bfloat16 else values.float().numpy()
    assert np.array_equal(x.gather(dim, index).to(torch.float32).numpy(), plain[key])
    for source in (x, x.t() if x.ndim == 2 else x, x.repeat_interleave(2, -1)[..., ::2]):
        if source.shape == x.shape:
            assert (source.gather(dim, index) == source.contiguous().gather(dim, index)).all()
    expected = plain.copy()
    expected[key] = added  # the last of repeated positions stays
    assert np.array_equal(x.scatter(dim, index, values).to(torch.float32).numpy(), expected)
    expected[key] = 1
    assert np.array_equal(x.scatter(dim, index, values).scatter(dim, index, 1).to(torch.float32).numpy(), expected)
    if kind in (torch.float32, torch.int64):
        for name, ufunc in (("sum", np.add), ("amax", np.maximum), ("prod", np.multiply)):
            expected, some = plain.copy(), added % 2 + 1 if name == "prod" else added
            ufunc.at(expected, key, some)
            result = x.scatter_reduce(dim, index, values % 2 + 1 if name == "prod" else values, name)
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)
        expected = plain.copy()
        np.add.at(expected, key, added)
        assert np.array_equal(x.scatter_add(dim, index, values).numpy(), expected)


def test_an_index_of_int32_and_one_that_was_expanded():
    x = torch.randn(200, 300)
    index = torch.randint(0, 300, (200, 1))
    wide = index.expand(200, 300)
    assert (x.gather(1, wide) == x.gather(1, wide.contiguous())).all()
    assert (x.gather(1, wide.int()) == x.gather(1, wide.contiguous())).all()
    assert torch.equal(x.scatter(1, wide, x), x.scatter(1, wide.contiguous(), x))
    column = torch.randn(200, 1).expand(200, 300)
    assert torch.equal(x.scatter_add(1, wide, column), x.scatter_add(1, wide.contiguous(), column.contiguous()))


def test_positions_outside_are_refused_before_anything_is_written():
    x = torch.zeros(60, 60)
    for wrong in (60, -1):
        index = torch.zeros(60, 60, dtype=torch.int64)
        index[59, 59] = wrong
        for dim in (0, 1):
            with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension {dim} with size 60"):
                x.gather(dim, index)
            with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds"):
                x.scatter_(dim, index, 5)
    assert not x.any()


@pytest.mark.parametrize("shape", [(60, 70), (20, 30, 40), (3, 500, 2)])
@pytest.mark.parametrize("kind", [torch.float32, torch.int64, torch.bfloat16])
def test_index_add_along_every_dim(shape, kind):
    torch.manual_seed(0)
    for dim in range(len(shape)):
        x = torch.randint(0, 9, shape).to(kind)
        index = torch.randint(0, shape[dim], (90,), dtype=torch.int32 if dim % 2 else torch.int64)
        source = torch.randint(0, 2, (*shape[:dim], 90, *shape[dim + 1 :])).to(kind)
        expected = x.double().numpy().copy()
        np.add.at(expected.swapaxes(0, dim), index.numpy(), source.double().numpy().swapaxes(0, dim))
        assert np.array_equal(x.index_add(dim, index, source).double().numpy(), expected)
        assert np.array_equal(x.index_add(dim, index, source, alpha=2).double().numpy(), 2 * expected - x.double().numpy())
        leaf = torch.randn(shape, requires_grad=True)
        leaf.index_select(dim, index).sum().backward()
        counts = torch.bincount(index, minlength=shape[dim]).float()
        assert torch.equal(leaf.grad.movedim(dim, -1), counts.expand(leaf.grad.movedim(dim, -1).shape))
