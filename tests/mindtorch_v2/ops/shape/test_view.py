"""Views: values, strides, gradients and errors as torch has them; sharing of memory."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch


@pytest.mark.like_torch("view", "view_in_place", "gradient_view", "error")
def test_like_torch(compare, section, expression):
    compare(section, expression)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.view(2, 6),
        lambda x: x.t(),
        lambda x: x.permute(1, 0),
        lambda x: x.unsqueeze(0),
        lambda x: x[1:],
        lambda x: x.diagonal(),
        lambda x: x.unfold(1, 2, 1),
        lambda x: x.as_strided((2, 2), (4, 1)),
        lambda x: x.split(2)[0],
        lambda x: x.split([1, 2])[1],
        lambda x: x.unbind(1)[0],
        lambda x: x.chunk(2)[1],
        lambda x: x.tensor_split(2)[0],
        lambda x: x.expand(2, 3, 4),
        lambda x: x[...],
        lambda x: x.flatten(),
    ],
)
def test_a_view_shares_memory_versions_and_base(view):
    x = torch.zeros(3, 4)
    part = view(x)
    assert part._base is x and part._is_view()
    assert part.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    x.add_(1)
    assert part._version == x._version == 1
    assert part.tolist() == view(torch.ones(3, 4)).tolist()


def test_a_view_of_a_view_has_the_first_base():
    x = torch.zeros(4)
    assert x.view(2, 2)[0]._base is x


def test_writing_to_an_expanded_tensor_is_an_error():
    x = torch.zeros(1, 3)
    for write in (lambda t: t.add_(1), lambda t: t.fill_(torch.tensor(1.0)), lambda t: t.copy_(torch.ones(2, 3))):
        with pytest.raises(RuntimeError):
            write(x.expand(2, 3))
    assert x.tolist() == [[0.0, 0.0, 0.0]]


def test_a_part_of_an_expanded_tensor_with_places_of_its_own_can_be_written():
    x = torch.zeros(1, 3)
    x.expand(2, 3)[1].fill_(5)
    x.expand(2, 3)[:1, :2] = 7
    assert x.tolist() == [[7.0, 7.0, 5.0]]


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_split_gives_the_same_views_whether_or_not_it_is_watched(dim):
    x = torch.arange(20).view(5, 4).clone()
    plain = x.split(2, dim)
    with torch.profiler.profile() as prof:
        watched = x.split(2, dim)
    assert [p.tolist() for p in watched] == [p.tolist() for p in plain]
    assert [p.stride() for p in watched] == [p.stride() for p in plain]
    assert all(p._base is x for p in (*plain, *watched))
    assert [e.name for e in prof.events()].count("aten::narrow") == len(plain)


def test_gradients_of_some_parts_of_a_split():
    x = torch.zeros(5, 2, requires_grad=True)
    first, _, last = x.split(2)
    (first.sum() * 2 + last.sum() * 3).backward()
    assert x.grad.tolist() == [[2, 2], [2, 2], [0, 0], [0, 0], [3, 3]]


def test_unsafe_split_parts_are_no_views_and_keep_versions_of_their_own():
    x = torch.zeros(4, 2)
    first, second = x.unsafe_split(2)
    first.add_(1)
    assert first._base is None and second._version == 0
    assert x.tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    "change, shape",
    [
        (lambda x: x.squeeze_(), [3, 4]),
        (lambda x: x.unsqueeze_(0), [1, 3, 1, 4]),
        (lambda x: x.transpose_(0, 2), [4, 1, 3]),
        (lambda x: x.swapaxes_(0, 1), [1, 3, 4]),
    ],
)
def test_in_place_metadata_changes_the_tensor_itself(change, shape):
    x = torch.zeros(3, 1, 4)
    assert change(x) is x
    assert list(x.shape) == shape
    assert x._version == 1


def test_in_place_metadata_on_a_leaf_that_requires_grad_is_an_error():
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch.zeros(3, requires_grad=True).unsqueeze_(0)


def test_resize_keeps_elements_and_memory_where_it_can():
    x = torch.arange(6)
    address = x.data_ptr()
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x.resize_(6).tolist() == [0, 1, 2, 3, 4, 5]
    assert x.data_ptr() == address
    assert x.resize_(8)[:6].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.zeros(2, requires_grad=True).resize_(3)


def test_set_shares_the_memory_of_a_tensor_or_a_storage():
    source = torch.arange(6.0)
    whole, part, stored = torch.zeros(1), torch.zeros(1), torch.zeros(1)
    whole.set_(source)
    part.set_(source, 1, (2, 2))
    stored.set_(source.untyped_storage(), 2, (2,), (2,))
    source.add_(1)
    assert whole.tolist() == [1, 2, 3, 4, 5, 6]
    assert part.tolist() == [[2, 3], [4, 5]]
    assert stored.tolist() == [3, 5]
    with pytest.raises(RuntimeError, match="Could not set tensor of type"):
        whole.set_(torch.zeros(1, dtype=torch.int64))


def test_as_strided_reaches_all_of_the_memory_and_no_further():
    x = torch.arange(12).view(3, 4)
    assert x[2].as_strided((2,), (4,), 1).tolist() == [1, 5]
    assert x.t().contiguous().t().as_strided((3,), (1,)).tolist() == [0, 4, 8]
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 96"):
        x.as_strided((2,), (12,))
    with pytest.raises(NotImplementedError, match="no derivative"):
        torch.zeros(4, requires_grad=True)[1:].as_strided((1,), (1,), 0)


def test_real_and_imag_can_be_assigned():
    z = torch.zeros(2, dtype=torch.complex64)
    z.real = torch.ones(2)
    z.imag = torch.tensor([2.0, 3.0])
    assert z.tolist() == [1 + 2j, 1 + 3j]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.view(-1),
        lambda x: x.t().reshape(-1),
        lambda x: x[1:, None],
        lambda x: x.expand(2, 3, 4),
        lambda x: x.diagonal(),
        lambda x: x.split(2)[1],
        lambda x: x.flip(0),
        lambda x: x.repeat(2, 3),
        lambda x: x.tril(),
        lambda x: torch.cat([x, x]),
        lambda x: torch.stack([x, x], 1),
        lambda x: x.sort(1)[1],
        lambda x: x.topk(2)[0],
        lambda x: torch.nn.functional.pad(x, (1, 2)),
        lambda x: x.roll(1, 0),
        lambda x: torch.diag_embed(x),
        lambda x: x.gather(1, torch.zeros(3, 2, dtype=torch.int64, device=x.device)),
        lambda x: torch.rot90(x),
        lambda x: x[torch.zeros(2, 5, dtype=torch.int64, device=x.device)],
        lambda x: x.median(0, True)[0],
        lambda x: x.index_select(1, torch.zeros(3, dtype=torch.int64, device=x.device)),
    ],
)
def test_meta_tensors_have_the_shape_and_dtype_of_the_result(call):
    made, expected = call(torch.zeros(3, 4, device="meta")), call(torch.zeros(3, 4))
    assert made.is_meta
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.expand(2, 3, 4).sum(0),
        lambda x: x.unfold(1, 2, 1),
        lambda x: x.t().reshape(-1),
        lambda x: x[[0, 2]],
        lambda x: x.sort(1)[0],
        lambda x: x.topk(2)[0],
        lambda x: torch.cat([x, x]),
        lambda x: x.flip(1),
        lambda x: x.tril(),
        lambda x: x.index_add(0, torch.tensor([0, 0]), x[:2]),
        lambda x: x.scatter_add(1, torch.zeros(3, 4).long(), x),
        lambda x: x.unique(),
        lambda x: x.median(),
        lambda x: x.repeat(2, 1),
        lambda x: torch.where(x > 1, x, 0.0),
    ],
)
def test_bfloat16(call):
    x = torch.from_numpy((np.arange(12.0)[::-1].reshape(3, 4) / 4).copy())
    made = call(x.to(torch.bfloat16))
    assert made.dtype is torch.bfloat16
    assert made.to(torch.float64).tolist() == call(x).tolist()


@pytest.mark.parametrize("make", [lambda **o: torch.empty(3, **o), lambda **o: torch.empty((), **o)])
def test_t_of_fewer_than_two_dims_is_a_view_on_the_same_device(make):
    x = make()
    assert x.t()._base is x and x.t().shape == x.shape
    assert make(device="meta").t().device.type == "meta"
    with torch.profiler.profile() as prof:
        x.t()
    assert [event.name for event in prof.events()][:2] == ["aten::t", "aten::transpose"]


def test_nothing_seen_as_another_dtype_shares_memory_and_is_no_view():
    x = torch.zeros(3, 0)
    assert x.view(torch.uint8)._base is None and x.view(torch.uint8).shape == (3, 0)
    assert x.view(torch.uint8).untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@pytest.mark.parametrize(
    "shape, size, stride",
    [
        ((5,), (1, 5), (5, 1)),
        ((5,), (1, 1, 5), (5, 5, 1)),
        ((5,), (2, 1, 5), (0, 5, 1)),
        ((5,), (1, 2, 5), (0, 0, 1)),
        ((1, 5), (1, 1, 5), (5, 5, 1)),
        ((1, 5), (1, 3, 5), (0, 0, 1)),
        ((1,), (1, 5), (0, 0)),
        ((), (1, 3), (0, 0)),
        ((), (1, 1), (0, 0)),
    ],
)
def test_strides_of_new_leading_dims(shape, size, stride):
    assert torch.ones(shape).expand(size).stride() == torch.ones(shape).broadcast_to(size).stride() == stride


def test_an_expanded_tensor_whose_elements_have_places_of_their_own_can_be_written():
    x = torch.zeros(3)
    x.expand(1, 3).add_(1)
    assert x.tolist() == [1, 1, 1]


_CHANNELS, _ROWS = torch.channels_last, torch.contiguous_format
_OTHER, _NEITHER = "The tensor does not have unique dim order.", "The tensor does not have unique dim order, or cannot map"


@pytest.mark.parametrize(
    "make, check, order",
    [
        (lambda: torch.ones(2, 3), False, (0, 1)),
        (lambda: torch.ones(2, 3).t(), True, (1, 0)),
        (lambda: torch.ones(2, 3, 4, 4).contiguous(memory_format=_CHANNELS), True, (0, 2, 3, 1)),
        (lambda: torch.ones(2, 3, 4, 5).transpose(1, 2), False, (0, 2, 1, 3)),
        (lambda: torch.tensor(1.0), True, ()),
        (lambda: torch.ones(0, 3), True, (0, 1)),
        (lambda: torch.ones(2, 1, 3), False, (0, 1, 2)),
        (lambda: torch.ones(2, 1, 3), True, _NEITHER),
        (lambda: torch.ones(2, 1, 3), [_ROWS, _CHANNELS], (0, 1, 2)),
        (lambda: torch.ones(2, 1, 4, 4), [_ROWS, _CHANNELS], _NEITHER),
        (lambda: torch.ones(2, 1, 4, 4), [_ROWS], _OTHER),
        (lambda: torch.ones(1, 2, 3, 4), [_CHANNELS], _NEITHER),
        (lambda: torch.ones(3).expand(2, 3), True, _OTHER),
        (lambda: torch.ones(3).expand(2, 3), [], (0, 1)),
    ],
)
def test_the_order_of_dims_in_memory(make, check, order):
    if isinstance(order, str):
        with pytest.raises(RuntimeError) as error:
            make().dim_order(ambiguity_check=check)
        assert str(error.value).startswith(order)
    else:
        assert make().dim_order(ambiguity_check=check) == order


@pytest.mark.parametrize("check", [1, [1], "contiguous"])
def test_the_check_of_the_order_of_dims_is_a_bool_or_a_list_of_formats(check):
    with pytest.raises(TypeError, match="must be a bool or a list of memory formats"):
        torch.ones(2).dim_order(ambiguity_check=check)


def test_dims_squeezed_off_a_single_number():
    x = torch.tensor(1.0, requires_grad=True)
    made = x.clone().squeeze_((0,))
    assert made.shape == () and type(made.grad_fn).__name__ == "SqueezeBackward5"
    made.backward()
    assert x.grad.tolist() == 1
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
        torch.tensor(1.0).squeeze_((0, -1))


@pytest.mark.parametrize(
    ("view", "strides", "offset"),
    [
        (lambda x: x[:, :, :, 1][:, 1:1, :], (60, 20, 5), 21),
        (lambda x: x[:, :0], (60, 20, 5, 1), 0),
        (lambda x: x[:, 3:, ::2], (60, 20, 10, 1), 60),
        (lambda x: x[:, :0].permute(3, 1, 0, 2), (1, 20, 60, 5), 0),
        (lambda x: x[:, :0] + 1, (20, 20, 5, 1), 0),
    ],
)
def test_strides_of_views_without_elements(view, strides, offset):
    part = view(torch.zeros(2, 3, 4, 5))
    assert part.stride() == strides and part.storage_offset() == offset and part.numel() == 0


def test_as_strided_in_place_has_a_derivative():
    x = torch.arange(12.0).view(3, 4).requires_grad_()
    y = x.clone()
    y.as_strided_((2, 2), (1, 4))
    assert y.tolist() == [[0, 4], [1, 5]] and type(y.grad_fn).__name__ == "AsStridedBackward1"
    (y * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[1, 3, 0, 0], [2, 4, 0, 0], [0, 0, 0, 0]]
    with pytest.raises(NotImplementedError, match="as_strided_ with a storage_offset has no derivative"):
        (x * 2)[1:].as_strided_((2, 2), (1, 1), 1)
    with torch.no_grad():
        assert (x * 2)[1:].as_strided_((2, 2), (1, 1), 1).tolist() == [[2, 4], [4, 6]]
