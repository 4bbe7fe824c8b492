"""torch.utils._python_dispatch: wrappers whose results share memory as those of plain tensors do. The answers are torch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import _python_dispatch as python_dispatch
from mindtorch_v2.utils._python_dispatch import get_alias_info, return_and_correct_aliasing, transform_subclass
from mindtorch_v2.utils._pytree import tree_map

aten = torch.ops.aten


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, size=None, stride=None):
        size, stride = inner.size() if size is None else size, inner.stride() if stride is None else stride
        return torch.Tensor._make_wrapper_subclass(
            cls, size, strides=stride, dtype=inner.dtype, requires_grad=inner.requires_grad
        )

    def __init__(self, inner, size=None, stride=None):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inners, metadata, size, stride):
        return Wrapper(inners["inner"], size, stride)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        unwrapped = tree_map(lambda x: x.inner if isinstance(x, Wrapper) else x, (args, kwargs or {}))
        results = func(*unwrapped[0], **unwrapped[1])
        wrapped = tree_map(lambda x: Wrapper(x) if isinstance(x, torch.Tensor) else x, results)
        return return_and_correct_aliasing(func, args, kwargs or {}, wrapped)


@pytest.fixture
def x():
    return Wrapper(torch.arange(6.0).view(2, 3))


def memory(tensor):
    return tensor.untyped_storage()._cdata


@pytest.mark.parametrize(
    "views",
    [
        lambda x: [x.view(3, 2)],
        lambda x: [x.t()],
        lambda x: [x.detach()],
        lambda x: x.split(1),
        lambda x: x.chunk(2, 1),
        lambda x: x.unbind(0),
    ],
)
def test_views_share_the_storage(x, views):
    found = views(x)
    assert all(type(view) is Wrapper and memory(view) == memory(x) for view in found)


def test_what_is_no_view_does_not(x):
    assert memory(x * 2) != memory(x)
    assert [type(result) for result in torch.sort(x)] == [Wrapper, Wrapper]


@pytest.mark.parametrize(
    ("call", "shape", "stride"),
    [
        (lambda x: x.add_(1), (2, 3), (3, 1)),
        (lambda x: x.t_(), (3, 2), (1, 3)),
        (lambda x: x.unsqueeze_(0), (1, 2, 3), (6, 3, 1)),
    ],
)
def test_in_place_ops_return_the_wrapper_with_its_new_shape(x, call, shape, stride):
    assert call(x) is x
    assert (tuple(x.shape), x.stride()) == (shape, stride)
    assert (tuple(x.inner.shape), x.inner.stride()) == (shape, stride)


def test_gradients_of_views(x):
    leaf = Wrapper(torch.ones(2, 3).requires_grad_())
    (leaf.view(-1) * 2).sum().backward()
    assert type(leaf.grad) is Wrapper and leaf.grad.inner.tolist() == [[2.0] * 3] * 2


def test_a_view_of_another_class_is_refused(x):
    with pytest.raises(AssertionError, match=r"^Called aten\.t\.default with input of type .*\nand output of type"):
        return_and_correct_aliasing(aten.t.default, (x,), {}, torch.ones(3, 2))


def aliases(parts):
    return [("".join(sorted(part.alias_set)), part.is_write, part.name) for part in parts]


@pytest.mark.parametrize(
    ("op", "arguments", "results", "reshapes", "written", "views"),
    [
        (
            aten.add_.Tensor,
            [("a", True, "self"), ("", False, "other"), ("", False, "alpha")],
            [("a", True, None)],
            False,
            ["a"],
            [],
        ),
        (aten.t.default, [("a", False, "self")], [("a", False, None)], False, None, [(0, 0)]),
        (aten.t_.default, [("a", True, "self")], [("a", True, None)], True, ["a"], []),
        (aten.relu.default, [("", False, "self")], [("", False, None)], False, None, []),
        (
            aten.split.Tensor,
            [("a", False, "self"), ("", False, "split_size"), ("", False, "dim")],
            [("a", False, None)],
            False,
            None,
            [(0, 0)],
        ),
        (aten._foreach_add_.Scalar, [("a", True, "self"), ("", False, "scalar")], [], False, None, []),
    ],
    ids=str,
)
def test_what_schemas_say(op, arguments, results, reshapes, written, views):
    info = get_alias_info(op)
    assert (aliases(info.args), aliases(info.outs)) == (arguments, results)
    assert (info.is_inplace_view_op, info.outs_write_aliases, info.read_only_alias_match_indexes) == (reshapes, written, views)


def test_wrappers_of_changed_tensors(x):
    doubled = transform_subclass(x, lambda name, tensor: tensor * 2 if name == "inner" else None)
    assert type(doubled) is Wrapper and doubled.inner.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    flat = transform_subclass(x, lambda name, tensor: tensor.view(6), (6,), (1,))
    assert flat.shape == (6,) and flat.stride() == (1,)

    class Fixed(Wrapper):
        @staticmethod
        def __tensor_unflatten__(inners, metadata, size, stride):
            return Wrapper(inners["inner"])

    with pytest.raises(AssertionError, match=r"__tensor_unflatten__\(\) to have shape equal to \(3, 2\), but got: torch.Size"):
        transform_subclass(Fixed(torch.ones(2, 3)), lambda name, tensor: tensor, (3, 2), (2, 1))


def test_modes_on_the_stack():
    def told():
        return (
            python_dispatch.any_torch_dispatch_mode_on_stack(),
            python_dispatch.is_in_any_mode_without_ignore_compile_internals(),
            python_dispatch.is_in_torch_dispatch_mode(),
        )

    class Aside(python_dispatch.BaseTorchDispatchMode):
        @classmethod
        def ignore_compile_internals(cls):
            return True

    assert told() == (False, False, False)
    with python_dispatch.BaseTorchDispatchMode():
        assert told() == (True, True, True)
        assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]
    with Aside():
        assert told() == (False, False, True)
