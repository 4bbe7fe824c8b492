"""The *_copy family: a view's values in memory of its own, under its own name in profiles and graphs."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

# name, arguments, shape of the (first) result, name of the node
COPIES = [
    ("alias_copy", (), (3, 4), "AliasBackward0_copy"),
    ("as_strided_copy", ((2, 2), (4, 1)), (2, 2), "AsStridedBackward0_copy"),
    ("diagonal_copy", (), (3,), "DiagonalBackward0_copy"),
    ("expand_copy", ((2, 3, 4),), (2, 3, 4), "ExpandBackward0_copy"),
    ("narrow_copy", (0, -2, 2), (2, 4), "NarrowCopyBackward0"),
    ("permute_copy", ((1, 0),), (4, 3), "PermuteBackward0_copy"),
    ("select_copy", (0, 1), (4,), "SelectBackward0_copy"),
    ("slice_copy", (0, 1, 2), (1, 4), "SliceBackward0_copy"),
    ("split_copy", (2,), (2, 4), "SplitBackward0_copy"),
    ("split_with_sizes_copy", ((1, 2),), (1, 4), "SplitWithSizesBackward0_copy"),
    ("squeeze_copy", (), (3, 4), "SqueezeBackward0_copy"),
    ("squeeze_copy", (0,), (3, 4), "SqueezeBackward1_copy"),
    ("squeeze_copy", ((0, 1),), (3, 4), "SqueezeBackward2_copy"),
    ("t_copy", (), (4, 3), "TBackward0_copy"),
    ("transpose_copy", (0, 1), (4, 3), "TransposeBackward0_copy"),
    ("unbind_copy", (), (4,), "UnbindBackward0_copy"),
    ("unfold_copy", (1, 2, 1), (3, 3, 2), "UnfoldBackward0_copy"),
    ("unsqueeze_copy", (0,), (1, 3, 4), "UnsqueezeBackward0_copy"),
    ("view_copy", ((4, 3),), (4, 3), "ViewBackward0_copy"),
    ("_reshape_alias_copy", ((4, 3), (3, 1)), (4, 3), "ReshapeAliasBackward0_copy"),
]
LISTS = ("split_copy", "split_with_sizes_copy", "unbind_copy")


def of_view(name, x, args):
    """The same by way of the view."""
    return getattr(torch.ops.aten, name.removesuffix("_copy"))(x, *args)


@pytest.mark.parametrize("name, args, shape, node", COPIES, ids=lambda value: value if isinstance(value, str) else None)
def test_a_copy_shows_what_the_view_shows(name, args, shape, node):
    x = torch.arange(12.0).view(3, 4).requires_grad_()
    made, seen = getattr(torch, name)(x, *args), of_view(name, x, args)
    assert isinstance(made, tuple) == (name in LISTS)
    copies, views = (made, seen) if name in LISTS else ((made,), (seen,))
    assert tuple(copies[0].shape) == shape and [c.tolist() for c in copies] == [v.tolist() for v in views]
    for copy in copies:
        assert copy.is_contiguous() and not copy._is_view() and copy.grad_fn.name() == node
        assert copy.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()

    def grad(parts):
        return torch.autograd.grad(sum((part * (i + 2)).sum() for i, part in enumerate(parts)), x)[0].tolist()

    assert grad(copies) == grad(views)


def test_complex_numbers_are_copied_as_pairs_and_back():
    z = torch.tensor([1 + 2j, 3 - 4j])
    pairs = torch.view_as_real_copy(z)
    assert pairs.tolist() == [[1, 2], [3, -4]] and torch.view_as_complex_copy(pairs).tolist() == [1 + 2j, 3 - 4j]
    pairs.zero_()
    assert z.tolist() == [1 + 2j, 3 - 4j]


def test_a_copy_of_what_is_detached_has_no_derivative():
    copy = torch.detach_copy(torch.ones(2, requires_grad=True))
    assert copy.requires_grad
    with pytest.raises(RuntimeError, match="derivative for aten::detach_copy is not implemented"):
        copy.sum().backward()


def test_a_copy_of_a_view_that_there_is_not():
    x = torch.arange(6).reshape(2, 3).t()
    assert torch.view_copy(x, (6,)).tolist() == [0, 3, 1, 4, 2, 5]


def test_a_copy_of_other_bits():
    x = torch.ones(2, requires_grad=True)
    assert torch.view_copy(x.detach(), torch.int32).tolist() == [1065353216, 1065353216]


def test_a_copy_is_seen_with_its_view_and_its_clone():
    with torch.profiler.profile() as prof:
        torch.permute_copy(torch.ones(2, 3), (1, 0))
    (whole,) = [event for event in prof.events() if event.name == "aten::permute_copy"]
    assert [child.name for child in whole.cpu_children] == ["aten::permute", "aten::clone"]


def test_copies_go_where_they_are_told():
    x, out = torch.arange(6.0).view(2, 3), torch.zeros(0)
    assert torch.t_copy(x, out=out) is out and out.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert torch.as_strided_copy(x, (2,), (4,), 1, out=out.resize_(0)) is out and out.tolist() == [1, 5]
    parts = [torch.zeros(2, 1), torch.zeros(0)]
    assert torch.split_with_sizes_copy(x, (1, 2), 1, out=parts) is None
    assert [part.tolist() for part in parts] == [[[0], [3]], [[1, 2], [4, 5]]]
    with pytest.raises(RuntimeError, match=r"unbind_copy_out\(\) expected an out= argument of size 2, got size 1"):
        torch.unbind_copy(x, out=parts[:1])


@pytest.mark.parametrize("name, args, shape, node", COPIES, ids=lambda value: value if isinstance(value, str) else None)
def test_copies_without_memory(name, args, shape, node):
    made = getattr(torch, name)(torch.zeros(3, 4, device="meta"), *args)
    first = made[0] if name in LISTS else made
    assert tuple(first.shape) == shape and first.is_meta


def test_a_copy_of_a_part_counts_from_the_start_of_the_memory():
    base = torch.arange(6.0, requires_grad=True)
    with pytest.raises(NotImplementedError, match="as_strided_copy with a storage_offset has no derivative"):
        torch.as_strided_copy(base[2:], (2,), (1,), 1)
    assert torch.as_strided_copy(base.detach()[2:], (2,), (1,), 1).tolist() == [1, 2]


@pytest.mark.parametrize("times", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.bool, torch.complex128])
def test_many_elements_repeated_a_few_times(times, kind):
    x = torch.arange(40000).reshape(100, 400).to(kind)
    for some in (x, x.t(), x[:, ::2], x.flatten()):
        repeated = some.repeat_interleave(times, -1)
        assert repeated.is_contiguous() and repeated.shape[-1] == times * some.shape[-1]
        assert all((repeated[..., k::times] == some).all() for k in range(times))
    every = x[..., None].expand(100, 400, times).clone(memory_format=torch.contiguous_format)
    assert every.is_contiguous() and (every == x[..., None]).all()
