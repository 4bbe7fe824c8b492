"""Interception: subclasses, modes, objects that are no tensors, and the default device."""

from __future__ import annotations

import inspect
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import overrides
from mindtorch_v2.overrides import TorchFunctionMode
from mindtorch_v2.utils._python_dispatch import TorchDispatchMode


class Tagged(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t + 1,
        lambda t: t[0],
        lambda t: torch.ones(2) * t,
        lambda t: t.detach(),
        lambda t: torch.stack([t, t]),
        lambda t: t.add_(1),
        lambda t: t.view(1, 2),
        lambda t: t.max(0).values,
    ],
)
def test_results_of_a_subclass_are_of_the_subclass(call):
    assert type(call(torch.ones(2).as_subclass(Tagged))) is Tagged


def test_a_subclass_sees_its_calls():
    calls = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    t = torch.tensor([1.0]).as_subclass(Logged)
    calls.clear()
    assert type(torch.add(t, 1)) is type(t.exp()) is Logged
    assert calls == ["add", "exp"]


def test_subclasses_keep_their_history():
    w = torch.ones(2, requires_grad=True)
    (w.as_subclass(Tagged) * 3).sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


class Box:
    """An object that is no tensor but has `__torch_function__`."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [a.value if isinstance(a, Box) else [b.value for b in a] if isinstance(a, list | tuple) else a for a in args]
        return Box(func(*plain, **(kwargs or {})))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda b: torch.mul(b, 3), [3.0, 3.0]),
        (lambda b: torch.mul(torch.ones(2), b), [1.0, 1.0]),
        (lambda b: torch.cat([b, b]), [1.0] * 4),
        (lambda b: torch.exp(b * 0 if hasattr(b, "__mul__") else torch.sub(b, b)), [1.0, 1.0]),
    ],
)
def test_other_objects_can_handle_calls(call, expected):
    made = call(Box(torch.ones(2)))
    assert isinstance(made, Box)
    assert made.value.tolist() == expected


def test_objects_may_decline():
    class No:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="all __torch_function__ handlers returned NotImplemented"):
        torch.exp(No())
    with pytest.raises(TypeError, match="must be Tensor, not"):
        torch.exp(object())


def test_function_mode():
    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Mode():
        torch.add(torch.ones(1), 2)
    torch.ones(1)
    assert seen == ["ones", "add"]


def test_dispatch_mode_sees_what_composites_are_made_of():
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2, requires_grad=True)
    with Mode():
        y = torch.nn.functional.linear(x, x)
    assert seen == ["aten.t.default", "aten.mm.default"]
    y.sum().backward()
    assert x.grad is not None


# ---------------------------------------------------------------- the default device


def test_device_as_a_context():
    with torch.device("meta"):
        made = [
            torch.ones(2),
            torch.tensor([1.0]),
            torch.as_tensor([1]),
            torch.arange(3),
            torch.nn.Linear(1, 1).weight,
            torch.zeros_like(torch.ones(1)),
            torch.randn(2),
            torch.linspace(0, 1, 3),
        ]
        assert torch.ones(1, device="cpu").device.type == "cpu"
        with torch.device("cpu"):
            assert torch.ones(1).device.type == "cpu"
        assert torch.ones(1).device.type == "meta"
    assert {t.device.type for t in made} == {"meta"}
    assert torch.ones(1).device.type == "cpu"
    assert torch.tensor(1).device.type == "cpu"


def test_set_default_device():
    torch.set_default_device("meta")
    try:
        assert torch.zeros(2).device.type == "meta"
        elsewhere = []
        thread = threading.Thread(target=lambda: elsewhere.append(torch.zeros(1).device.type))
        thread.start()
        thread.join()
        assert elsewhere == ["cpu"]
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).device.type == "cpu"


def test_no_mode_is_left_once_a_default_device_is_gone():
    from mindtorch_v2._dispatch import entry_globals

    before = entry_globals.observers_active
    with torch.device("meta"), torch.device("meta"):
        assert entry_globals.observers_active > before
    assert entry_globals.observers_active == before


class Passing(TorchDispatchMode):
    """Lets every op pass, and remembers its name."""

    def __init__(self):
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_in_place_ops_keep_their_history_under_a_dispatch_mode():
    x = torch.ones(3, requires_grad=True)
    with Passing() as mode:
        y = x * 2
        y.mul_(y.detach() * 3)
        y.relu_()
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
            x.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [12, 12, 12]
    assert mode.seen[-2:] == ["aten.mul_.Tensor", "aten.relu_.default"]


def test_a_mode_sees_calls_with_out():
    made = torch.empty(2)
    with Passing() as mode:
        torch.add(torch.ones(2), 1, out=made)
    assert made.tolist() == [2, 2] and len(mode.seen) == 2


@pytest.mark.parametrize("mode", [Passing, lambda: torch.autocast("cpu")])
def test_errors_under_a_mode_are_those_without(mode):
    with mode(), pytest.raises(RuntimeError, match=r"The size of tensor a .2. must match the size of tensor b .3."):
        torch.ones(2) + torch.ones(3)


# ---------------------------------------------------------------- what libraries ask torch.overrides


def test_which_functions_can_be_overridden():
    ignored, stand_ins = overrides.get_ignored_functions(), overrides.get_testing_overrides()
    assert torch.Tensor.as_subclass in ignored and torch.zeros in ignored and torch.is_tensor in ignored
    assert torch.add not in ignored and not ignored & set(stand_ins)
    assert stand_ins[torch.add](1, 2) == -1
    assert list(inspect.signature(stand_ins[torch.add]).parameters)[:2] == ["input", "other"]
    listed = overrides.get_overridable_functions()
    assert torch.add in listed[torch] and torch.Tensor.add in listed[torch.Tensor] and torch.linalg.inv in listed[torch.linalg]
    assert overrides.is_tensor_method_or_property(torch.Tensor.add)
    assert overrides.is_tensor_method_or_property(torch.Tensor.shape.__get__)
    assert not overrides.is_tensor_method_or_property(torch.tensor)


def test_stand_ins_are_called_by_the_functions_they_stand_for():
    seen = []

    class Seeing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return overrides.get_testing_overrides()[func](*args, **(kwargs or {}))

    t = torch.ones(2).as_subclass(Seeing)
    assert (torch.add(t, 1), t.exp(), torch.stack([t])) == (-1, -1, -1)
    assert seen == [torch.add, torch.exp, torch.stack]


def test_a_users_function_can_be_overridden():
    @overrides.wrap_torch_function(lambda a, b: (a, b))
    def combined(a, b):
        return a + b

    class Quiet:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    assert combined(Quiet(), 1) == "combined" and combined(1, 2) == 3


def scaled(a, b):
    if overrides.has_torch_function((a, b)):
        return overrides.handle_torch_function(scaled, (a, b), a, b)
    return a * b + 1


def test_one_level_can_be_left_out():
    seen = []

    class Logging(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return overrides.redispatch_function(func, types, args, kwargs)

    result = scaled(torch.tensor([3.0]).as_subclass(Logging), torch.tensor([4.0]).as_subclass(Logging))
    assert seen == ["scaled", "mul"] and type(result) is torch.Tensor and result.tolist() == [13.0]


def test_modes_see_functions_of_users():
    seen = []

    class Logging(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            with self:
                return overrides.redispatch_function(func, types, args, kwargs)

    a, b = torch.tensor([3.0]), torch.tensor([4.0])
    with Logging():
        result = scaled(a, b)
        assert torch.zeros(1).shape == (1,)
    assert seen == ["scaled", "mul", "add", "zeros"] and result.tolist() == [13.0]
    assert not overrides.has_torch_function((torch.ones(1),)) and scaled(2, 3) == 7


class RaisesInFunction(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise ValueError("the handler's own")


class RaisesInDispatch(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise ValueError("the handler's own")


class RaisesAsObject:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise ValueError("the handler's own")


@pytest.mark.parametrize(
    "value",
    [torch.ones(2).as_subclass(RaisesInFunction), torch.ones(2).as_subclass(RaisesInDispatch), RaisesAsObject()],
    ids=["function", "dispatch", "object"],
)
@pytest.mark.parametrize("call", [torch.neg, torch.empty_like, lambda x: torch.add(x, x)], ids=["neg", "empty_like", "add"])
def test_what_a_handler_raises_reaches_the_caller(value, call) -> None:
    with pytest.raises(ValueError, match="^the handler's own$"):
        call(value)


@pytest.mark.parametrize("name", ["detach", "detach_", "add", "clone"])
def test_a_handler_is_given_the_method_of_that_name(name):
    seen = []

    class Noting(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    getattr(torch.ones(2).as_subclass(Noting), name)(*((1,) if name == "add" else ()))
    assert seen[0] == getattr(torch.Tensor, name)
