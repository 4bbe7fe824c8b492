"""x[...] and x[...] = v, gather, scatter and the index_* ops."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch


@pytest.mark.like_torch("indexing", "assignment", "assignment_error", "index", "gradient_indexing", "gradient_index")
def test_like_torch(compare, section, expression):
    compare(section, expression)


def recorded(call):
    """The names of the ops that a call runs, without those they run themselves."""
    with torch.profiler.profile() as prof:
        call()
    return [event.name.removeprefix("aten::") for event in prof.events() if event.cpu_parent is None]


def assign(x, index, value):
    x[index] = value


@pytest.mark.parametrize("call, names", [
    (lambda x, k: x[1], ["select"]),
    (lambda x, k: x[1, 2], ["select", "select"]),
    (lambda x, k: x[:], ["slice"]),
    (lambda x, k: x[:, 1:], ["slice"]),
    (lambda x, k: x[0:3, 1], ["select"]),
    (lambda x, k: x[:, :], ["alias"]),
    (lambda x, k: x[..., None], ["unsqueeze"]),
    (lambda x, k: x[k], ["index"]),
    (lambda x, k: x[1:, k], ["slice", "index"]),
    (lambda x, k: x[k[0]], ["select", "item", "select"]),
    (lambda x, k: assign(x, 0, 1), ["select", "fill_"]),
    (lambda x, k: assign(x, 0, torch.ones(4)), ["ones", "select", "copy_"]),
    (lambda x, k: assign(x, k, 1), ["index_put_"]),
    (lambda x, k: assign(x, ..., torch.ones(4)), ["ones", "view", "expand", "copy_"]),
])
def test_an_index_is_taken_apart_as_torch_does(call, names):
    assert recorded(lambda: call(torch.zeros(3, 4), torch.tensor([0, 2])))[-len(names):] == names


def test_indexing_with_tensors_copies_and_with_slices_does_not():
    x = torch.zeros(3)
    x[torch.tensor([0, 1])].fill_(9)
    assert x.tolist() == [0, 0, 0]
    x[1:].fill_(9)
    assert x.tolist() == [0, 9, 9]


@pytest.mark.parametrize("shape", [(100,), (40, 30), (5, 6, 7)])
@pytest.mark.parametrize("dim", [0, -1])
def test_large_adds_at_repeated_positions(shape, dim):
    """Beyond a few elements adding goes another way; np.add.at is the reference for both."""
    rng = np.random.default_rng(0)
    target, n = rng.random(shape), shape[dim]
    index = rng.integers(0, n, 64)
    source = rng.random([64 if d == dim % len(shape) else s for d, s in enumerate(shape)])
    expected = target.copy()
    np.add.at(np.moveaxis(expected, dim, 0), index, np.moveaxis(source, dim, 0))
    x, k, s = (torch.from_numpy(a.copy()) for a in (target, index, source))
    np.testing.assert_allclose(x.index_add(dim, k, s).numpy(), expected)
    spread = k.view([-1 if d == dim % len(shape) else 1 for d in range(len(shape))]).expand(s.shape)
    np.testing.assert_allclose(x.scatter_add(dim, spread, s).numpy(), expected)
    place = (k,) if dim == 0 else (*[slice(None)] * (len(shape) - 1), k)
    put = x.clone().index_put_([None if isinstance(p, slice) else p for p in place], s, accumulate=True)
    np.testing.assert_allclose(put.numpy(), expected)


def test_large_gather_and_mask():
    rng = np.random.default_rng(0)
    array, index = rng.random((50, 40)), rng.integers(0, 40, (50, 7))
    x = torch.from_numpy(array)
    assert np.array_equal(x.gather(1, torch.from_numpy(index)).numpy(), np.take_along_axis(array, index, 1))
    assert np.array_equal(x[x > 0.5].numpy(), array[array > 0.5])
    assert np.array_equal(x.t()[x.t() > 0.5].numpy(), array.T[array.T > 0.5])


@pytest.mark.parametrize("write", [
    lambda x, k: x.scatter_(0, k, 1.0), lambda x, k: x.index_fill_(0, k[0], 1.0),
    lambda x, k: x.masked_fill_(x > 0, 2.0), lambda x, k: x.index_put_((k[0],), torch.tensor(3.0)),
    lambda x, k: x.put_(k, torch.ones(2, 2)),
    lambda x, k: x.index_add_(1, k[0], torch.ones(4, 2)), lambda x, k: x.index_copy_(1, k[0], torch.ones(4, 2)),
])
def test_in_place_forms_write_through_a_transposed_view(write):
    k = torch.tensor([[0, 2], [1, 0]])
    base = torch.arange(12.0).view(3, 4)
    expected = write(base.t().contiguous(), k)
    view = base.t()
    assert write(view, k) is view
    assert base.t().tolist() == expected.tolist()


def test_in_place_with_history_takes_the_gradient_of_what_was_written():
    x, v = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
    y = x * 2
    y[torch.tensor([0, 2])] = v * 5
    y.sum().backward()
    assert x.grad.tolist() == [0, 2, 0]
    assert v.grad.tolist() == [5, 5]


def test_scatter_with_reduce_has_no_derivative():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for aten::scatter is not implemented"):
        x.scatter(0, torch.tensor([0]), 2.0, reduce="add").sum().backward()


def test_ties_between_input_and_source_do_not_count_where_the_input_is_left_out():
    x, src = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
    x.scatter_reduce(0, torch.tensor([0]), src, "amax", include_self=False).sum().backward()
    assert x.grad.tolist() == [0, 1]
    assert src.grad.tolist() == [1]


def test_one_hot_checks_its_classes():
    f = torch.nn.functional.one_hot
    assert f(torch.tensor([1, 0])).tolist() == [[0, 1], [1, 0]]
    for classes, size, message in (([-1], -1, "non-negative"), ([3], 3, "smaller than num_classes"), ([], -1, "empty")):
        with pytest.raises(RuntimeError, match=message):
            f(torch.tensor(classes, dtype=torch.int64), size)
