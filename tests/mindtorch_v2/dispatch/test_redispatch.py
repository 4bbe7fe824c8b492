"""Passing a call on by an explicit key set: dispatch_with_keyset and OpOverload.redispatch."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core.keys import AUTOGRAD, META, NPU, PYTHON, SPARSE
from mindtorch_v2._dispatch.dispatcher import dispatch_with_keyset, keys_of
from mindtorch_v2.overrides import TorchFunctionMode
from mindtorch_v2.profiler import profile
from mindtorch_v2.utils._python_dispatch import TorchDispatchMode

ALL = AUTOGRAD | PYTHON
mul = torch.ops.aten.mul.Tensor


def leaf():
    return torch.ones(2, requires_grad=True)


@pytest.mark.parametrize("name", ["mul", "aten::mul", "mul.Tensor", "aten::mul.Tensor"])
def test_an_op_is_found_by_any_of_its_names(name):
    assert dispatch_with_keyset(ALL, name, torch.tensor([2.0]), torch.tensor([3.0])).tolist() == [6.0]


def test_the_overload_without_a_name_is_called_default():
    assert dispatch_with_keyset(ALL, "neg.default", torch.ones(1)).tolist() == [-1.0]
    assert torch.ops.aten.sum.default.redispatch(ALL, torch.ones(2, 2)).item() == 4.0


@pytest.mark.parametrize("name", ["no_such_op", "mul.NoSuch"])
def test_unknown_names(name):
    with pytest.raises(AttributeError, match=r"no op named no_such_op|aten::mul has no overload named NoSuch"):
        dispatch_with_keyset(ALL, name, torch.ones(1))


def test_arguments_are_bound_as_in_a_call():
    x = torch.arange(6.0).reshape(2, 3)
    assert dispatch_with_keyset(ALL, "sum.dim_IntList", x, 1, keepdim=True).tolist() == [[3.0], [12.0]]
    assert dispatch_with_keyset(ALL, "view", x, 3, 2).shape == (3, 2)
    assert dispatch_with_keyset(ALL, "reshape.default", x, shape=6).shape == (6,)
    assert mul.redispatch(ALL, self=x, other=x).tolist() == mul(self=x, other=x).tolist() == (x * x).tolist()
    assert torch.ops.aten.mul(self=x, other=x).tolist() == (x * x).tolist()
    assert mul.redispatch(ALL, x, 2).tolist() == (x * 2).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: mul.redispatch(ALL, x),
        lambda x: mul.redispatch(ALL, x, x, x),
        lambda x: mul.redispatch(ALL, x, x, alpha=2),
        lambda x: mul.redispatch(ALL, x, x, out=x),
        lambda x: mul.redispatch(ALL, x, "text"),
    ],
)
def test_arguments_that_do_not_fit(call):
    with pytest.raises(TypeError):
        call(torch.ones(1))


# ---------------------------------------------------------------- the keys


def test_without_autograd_there_is_no_history():
    x = leaf()
    assert not mul.redispatch(0, x, x).requires_grad
    assert type(mul.redispatch(keys_of((x,)), x, x).grad_fn).__name__ == "MulBackward0"
    assert (x * x).requires_grad  # grad mode is as it was


def test_without_autograd_a_leaf_can_be_written_to():
    x = leaf()
    assert torch.ops.aten.add_.Tensor.redispatch(0, x, torch.ones(2)) is x
    assert x.tolist() == [2.0, 2.0] and x.requires_grad and x.is_leaf


def test_the_parts_of_a_composite_have_their_own_history():
    y = torch.ops.aten.linear.default.redispatch(0, torch.ones(2, 3, requires_grad=True), torch.ones(4, 3))
    assert y.requires_grad  # as in torch: what it calls is dispatched again


class Logged(torch.Tensor):
    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls += 1
        return super().__torch_function__(func, types, args, kwargs)


def test_without_python_a_subclass_does_not_see_the_call():
    x = torch.ones(2).as_subclass(Logged)
    Logged.calls = 0
    assert type(mul.redispatch(0, x, x)) is torch.Tensor and Logged.calls == 0
    assert type(mul.redispatch(PYTHON, x, x)) is Logged and Logged.calls == 1


def test_in_place_below_python_returns_the_subclass_tensor():
    x = torch.ones(2).as_subclass(Logged)
    Logged.calls = 0
    assert torch.ops.aten.add_.Tensor.redispatch(0, x, torch.ones(2)) is x and Logged.calls == 0
    assert torch.equal(x.as_subclass(torch.Tensor), torch.full((2,), 2.0))


@pytest.mark.parametrize("kind", [TorchFunctionMode, TorchDispatchMode])
def test_without_python_no_mode_runs(kind):
    seen = []

    class Seeing(kind):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

        __torch_dispatch__ = __torch_function__

    x = torch.ones(2)
    with Seeing():
        mul.redispatch(AUTOGRAD, x, x)
        assert seen == []
        mul.redispatch(ALL, x, x)
        assert len(seen) == 1
        torch.neg(x)  # the modes are back
    assert len(seen) == 2


def test_a_subclass_can_pass_a_call_on_below_itself():
    class Below(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func.redispatch(keys_of(args) & ~PYTHON, *args, **(kwargs or {})) + 100

    x = torch.ones(2).as_subclass(Below)
    assert (x * x).tolist() == [101.0, 101.0]


@pytest.mark.parametrize("keyset", [0, ALL, ALL | NPU])
def test_a_backend_that_a_tensor_has_cannot_be_left_out(keyset):
    x = torch.ones(2, device="meta")
    with pytest.raises(NotImplementedError, match="Could not run 'aten::mul' with arguments from the 'Meta' backend"):
        mul.redispatch(keyset, x, x)
    assert mul.redispatch(keyset | META, x, x).device.type == "meta"


def test_sparse_kernels():
    x = torch.eye(2).to_sparse()
    assert mul.redispatch(SPARSE, x, 3).to_dense().tolist() == [[3.0, 0.0], [0.0, 3.0]]
    with pytest.raises(NotImplementedError, match="'Sparse' backend"):
        mul.redispatch(0, x, 3)


# ---------------------------------------------------------------- otherwise


def test_no_row_is_recorded_for_a_call_that_is_passed_on():
    x = torch.ones(2)
    with profile() as prof:
        mul.redispatch(ALL, x, x)
    assert [event.name for event in prof.events()] == []


def test_errors_are_the_ops_own():
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(2\) must match the size of tensor b \(3\)"):
        mul.redispatch(ALL, torch.ones(2), torch.ones(3))
