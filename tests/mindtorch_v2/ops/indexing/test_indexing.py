"""x[...] and x[...] = v, gather, scatter and the index_* ops."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch


@pytest.mark.like_torch("indexing", "assignment", "assignment_error", "index", "gradient_indexing", "gradient_index")
@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
def test_like_torch(compare, section, expression):
    compare(section, expression)


def recorded(call):
    """The names of the ops that a call runs, without those they run themselves."""
    with torch.profiler.profile() as prof:
        call()
    return [event.name.removeprefix("aten::") for event in prof.events() if event.cpu_parent is None]


def assign(x, index, value):
    x[index] = value


@pytest.mark.parametrize(
    "call, names",
    [
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
    ],
)
def test_an_index_is_taken_apart_as_torch_does(call, names):
    assert recorded(lambda: call(torch.zeros(3, 4), torch.tensor([0, 2])))[-len(names) :] == names


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


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("shape, index_shape", [((60, 40), (60, 40)), ((4, 30, 50), (3, 25, 70)), ((2000,), (3000,))])
def test_a_large_gather_along_rows_takes_the_rows_that_the_index_has(shape, index_shape, dtype):
    x, index = torch.randn(shape), torch.randint(0, shape[-1], index_shape, dtype=dtype)
    rows = x.numpy()[tuple(slice(0, n) for n in index_shape[:-1])]
    expected = np.take_along_axis(rows, index.numpy().astype(np.int64), -1)
    assert np.array_equal(x.gather(-1, index).numpy(), expected)
    columns = x.movedim(-1, 0).contiguous().movedim(0, -1)  # the same numbers, not row by row
    assert np.array_equal(columns.gather(-1, index).numpy(), expected)


def test_large_gather_and_mask():
    rng = np.random.default_rng(0)
    array, index = rng.random((50, 40)), rng.integers(0, 40, (50, 7))
    x = torch.from_numpy(array)
    assert np.array_equal(x.gather(1, torch.from_numpy(index)).numpy(), np.take_along_axis(array, index, 1))
    assert np.array_equal(x[x > 0.5].numpy(), array[array > 0.5])
    assert np.array_equal(x.t()[x.t() > 0.5].numpy(), array.T[array.T > 0.5])


@pytest.mark.parametrize(
    "write",
    [
        lambda x, k: x.scatter_(0, k, 1.0),
        lambda x, k: x.index_fill_(0, k[0], 1.0),
        lambda x, k: x.masked_fill_(x > 0, 2.0),
        lambda x, k: x.index_put_((k[0],), torch.tensor(3.0)),
        lambda x, k: x.put_(k, torch.ones(2, 2)),
        lambda x, k: x.index_add_(1, k[0], torch.ones(4, 2)),
        lambda x, k: x.index_copy_(1, k[0], torch.ones(4, 2)),
    ],
)
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


def test_ties_with_the_input_count_even_where_it_is_left_out():
    # Half of the gradient is lost: that is how torch shares it out.
    x, src = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
    x.scatter_reduce(0, torch.tensor([0]), src, "amax", include_self=False).sum().backward()
    assert x.grad.tolist() == [0, 1]
    assert src.grad.tolist() == [0.5]


def test_one_hot_checks_its_classes():
    f = torch.nn.functional.one_hot
    assert f(torch.tensor([1, 0])).tolist() == [[0, 1], [1, 0]]
    for classes, size, message in (([-1], -1, "non-negative"), ([3], 3, "smaller than num_classes"), ([], -1, "empty")):
        with pytest.raises(RuntimeError, match=message):
            f(torch.tensor(classes, dtype=torch.int64), size)


def check(call, answer):
    """What a call gives, as a list; or its error, as the type and the beginning of its words."""
    if isinstance(answer, tuple):
        with pytest.raises(answer[0]) as error:
            call()
        assert str(error.value).startswith(answer[1])
        return
    made = call()
    assert ([part.tolist() for part in made] if isinstance(made, tuple) else made.tolist()) == answer


def _matrix():
    return torch.arange(6.0).reshape(2, 3)


def _long(*numbers):
    return torch.tensor(numbers)


_SIZES = "Size does not match at dimension 0 expected index [3, 1] to be no larger than self [2, 3] apart from dimension 1"
_WIDE = "Expected index [1, 2] to be no larger than self [2, 3] apart from dimension 0 and to be no larger size than src [1, 1]"


@pytest.mark.parametrize(
    "call, answer",
    [
        (lambda x: x.gather(0, torch.empty(0)), []),
        (lambda x: x.gather(0, torch.empty(2, 0, dtype=torch.uint8)), [[], []]),
        (lambda x: x.gather(5, torch.empty(0)), (IndexError, "Dimension out of range")),
        (lambda x: x.gather(0, torch.zeros(1, 1)), (RuntimeError, "gather(): Expected dtype int32/int64 for index")),
        (lambda x: x.gather(1, torch.full((3, 1), 9)), (RuntimeError, _SIZES)),
        (lambda x: x.scatter(0, torch.empty(0), 1.0), [[0, 1, 2], [3, 4, 5]]),
        (lambda x: x.scatter_add(0, torch.empty(0), torch.ones(3)), [[0, 1, 2], [3, 4, 5]]),
        (lambda x: x.scatter(0, _long([9, 9]), torch.ones(1, 1)), (RuntimeError, _WIDE)),
        (lambda x: x.scatter_add(0, _long([9, 9]), torch.ones(1, 1)), (RuntimeError, _WIDE)),
        (
            lambda x: x.scatter(0, _long([9]), torch.ones(1, 1)),
            (RuntimeError, "index 9 is out of bounds for dimension 0 with size 2"),
        ),
        (
            lambda x: x.scatter(0, _long([9]), torch.ones(1, 1, 2)),
            (RuntimeError, "Index tensor must have the same number of dimensions as src tensor"),
        ),
        (
            lambda x: x.scatter_add(0, _long([0]), torch.ones(1, 1, dtype=torch.float64)),
            (RuntimeError, "scatter(): Expected self.dtype to be equal to src.dtype"),
        ),
        (
            lambda x: x.scatter_reduce(0, torch.zeros(1, 1), torch.ones(1, 1), "sum"),
            (RuntimeError, "scatter(): Expected dtype int32/int64 for index"),
        ),
    ],
)
def test_gather_and_scatter_check_their_arguments_in_torch_s_order(call, answer):
    check(lambda: call(_matrix()), answer)


@pytest.mark.parametrize(
    "call, answer",
    [
        (lambda x: torch.tensor(2.0).index_reduce(0, _long(0), torch.tensor(3.0), "prod"), 6.0),
        (lambda x: torch.tensor(2.0).index_reduce(0, torch.tensor(0), torch.tensor(3.0), "mean"), 2.5),
        (lambda x: torch.tensor(2.0).index_reduce(0, _long(0), torch.tensor(3.0), "amax", include_self=False), 3.0),
        (
            lambda x: torch.tensor(2.0).index_reduce(0, _long(0, 0), torch.ones(2), "prod"),
            (RuntimeError, "source tensor shape must match self tensor shape, excluding the specified dimension. Got self."),
        ),
        (
            lambda x: x.index_reduce(0, _long(0, 0), torch.ones(1, 3), "mean"),
            (RuntimeError, "index_reduce_(): Number of indices (2) should be equal to source.size(dim): (1), for dim: 0"),
        ),
        (lambda x: x.index_reduce(0, _long(0, -1), torch.ones(2, 3), "mean"), (IndexError, "index out of range in self")),
        (
            lambda x: x.index_reduce(0, _long([0, 1]), torch.ones(2, 3), "mean"),
            (IndexError, "index_reduce_(): Index is supposed to be a vector, but got dim: 2 with type: Long and size: [1, 2]"),
        ),
        (
            lambda x: x.index_reduce(0, torch.ones(2), torch.ones(2, 3), "mean"),
            (RuntimeError, "index_reduce_(): Expected dtype int32/int64 for index but got: Float"),
        ),
        (
            lambda x: x.index_reduce(0, _long(0, 1), torch.ones(2, 3, dtype=torch.float64), "mean"),
            (RuntimeError, "index_reduce_(): self (Float) and source (Double) must have the same scalar type"),
        ),
        (
            lambda x: x.index_reduce(0, _long(0, 1), torch.ones(2, 3), "sum"),
            (RuntimeError, "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got sum."),
        ),
        (
            lambda x: torch.ones(2, dtype=torch.uint8).index_add(
                0, _long(0, 1), torch.tensor([3, 3], dtype=torch.uint8), alpha=-1
            ),
            [254, 254],
        ),
        (lambda x: torch.ones(2, dtype=torch.int64).index_add(0, _long(0, 1), _long(1, 1), alpha=2.5), [3, 3]),
        (
            lambda x: torch.ones(1, dtype=torch.uint8).index_add(0, _long(0), torch.ones(1, dtype=torch.uint8), alpha=300),
            (RuntimeError, "value cannot be converted to type uint8_t without overflow"),
        ),
        (lambda x: torch.unravel_index(torch.tensor([5, 3], dtype=torch.uint8), (4, 1073741824)), [[0, 0], [5, 3]]),
    ],
)
def test_reducing_and_adding_at_an_index(call, answer):
    check(lambda: call(_matrix()), answer)


def test_index_reduce_of_a_number_has_a_gradient():
    x, source = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    x.index_reduce(0, torch.tensor([0]), source, "prod").backward()
    assert (x.grad.item(), source.grad.item()) == (3, 2)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_coordinates_are_of_int64_whatever_the_positions_are(kind):
    assert [part.dtype for part in torch.unravel_index(torch.tensor([5], dtype=kind), (4, 5))] == [torch.int64] * 2


def test_positions_that_a_mask_leaves_out_may_be_anywhere():
    x = _matrix().requires_grad_()
    mask, at = torch.tensor([True, False]), [torch.tensor([0, 1]), torch.tensor([1, 100])]
    found = torch._unsafe_masked_index(x, mask, at, -1)
    assert found.tolist() == [1, -1] and found.grad_fn.name() == "UnsafeMaskedIndexBackward0"
    found.sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [0, 0, 0]]
    values = torch.tensor([10.0, 20.0], requires_grad=True)
    put = torch._unsafe_masked_index_put_accumulate(x.detach(), mask, at, values)
    assert put.tolist() == [[0, 11, 2], [3, 4, 5]]
    put.sum().backward()
    assert values.grad.tolist() == [1, 0]


_LIKE_SELF = "Expected out tensor to have dtype float, but got double instead"


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x, out: torch.gather(x, 0, _long([0]), out=out), _LIKE_SELF),
        (lambda x, out: torch.scatter(x, 0, _long([0]), 1.0, out=out), _LIKE_SELF),
        (lambda x, out: torch.scatter_add(x, 0, _long([0]), torch.ones(1, 1), out=out), _LIKE_SELF),
        (lambda x, out: torch.index_add(x, 0, _long(0), torch.ones(1, 3), out=out), _LIKE_SELF),
        (lambda x, out: torch.index_copy(x, 0, _long(0), torch.ones(1, 3), out=out), _LIKE_SELF),
        (lambda x, out: torch.index_reduce(x, 0, _long(0), torch.ones(1, 3), "mean", out=out), _LIKE_SELF),
        (
            lambda x, out: torch.index_select(x, 0, _long(0), out=out),
            "index_select(): self and result must have the same scalar type",
        ),
        (
            lambda x, out: torch.take(x, _long(0), out=out),
            "take(): self and out expected to have the same dtype, but got self.dtype = Float and out.dtype = Double",
        ),
        (lambda x, out: torch.multinomial(x, 1, out=out), "multinomial expects Long tensor out, got: Double"),
        (
            lambda x, out: torch.complex(x, x, out=out),
            "Expected object of scalar type ComplexFloat but got scalar type Double for argument 'out'",
        ),
    ],
)
def test_out_of_another_dtype_is_refused(call, message):
    with pytest.raises(RuntimeError) as error:
        call(_matrix(), torch.zeros(0, dtype=torch.float64))
    assert str(error.value) == message


def test_a_part_is_replaced_by_one_of_another_dtype():
    x = torch.zeros(2, 2, dtype=torch.int64)
    assert x.select_scatter(torch.tensor([1.5, 2.5]), 0, 1).tolist() == [[0, 0], [1, 2]]
    y, source = torch.zeros(2, 2, requires_grad=True), torch.ones(2, dtype=torch.float64, requires_grad=True)
    y.diagonal_scatter(source).sum().backward()
    assert (source.grad.dtype, source.grad.tolist(), y.grad.tolist()) == (torch.float64, [1, 1], [[0, 1], [1, 0]])


def test_any_part_of_the_memory_is_replaced_in_a_copy():
    base = torch.arange(12.0)
    x = base.view(3, 4)
    assert x.as_strided_scatter(torch.ones(2), (2,), (5,), 2).tolist() == [[0, 1, 1, 3], [4, 5, 6, 1], [8, 9, 10, 11]]
    assert x[1:].as_strided_scatter(torch.ones(2), (2,), (1,)).tolist() == [[1, 1, 6, 7], [8, 9, 10, 11]]
    turned, source = x.t().requires_grad_(), torch.ones(2, requires_grad=True)
    made = torch.as_strided_scatter(turned, source, (2,), (1,))
    assert made.stride() == (1, 4) and made.tolist() == [[1, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
    (made * torch.arange(12.0).view(4, 3)).sum().backward()
    assert turned.grad.tolist() == [[0, 1, 2], [0, 4, 5], [6, 7, 8], [9, 10, 11]] and source.grad.tolist() == [0, 3]
    assert base.tolist() == list(range(12))
    with pytest.raises(RuntimeError, match="expected src to have a size equal to the slice of self"):
        x.as_strided_scatter(torch.ones(3), (2,), (1,))
    with pytest.raises(NotImplementedError, match="as_strided_scatter with a storage_offset"):
        x[1:].as_strided_scatter(source, (2,), (1,), 4)
