"""Python calls during a backward pass: the user's are recorded, the engine's are not even traced."""

from __future__ import annotations

import contextlib
import sys

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd.graph import saved_tensors_hooks
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.recording.python_calls.stream import PythonCallLog

x = torch.ones(3)


def user_code(*values):
    """What the cases below have the engine call."""
    helper()
    return


def helper():
    return x + x


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value * 2

    @staticmethod
    def backward(ctx, grad):
        user_code()
        return grad * 2


def unpacked(packed):
    user_code()
    return packed


def tensor_hook(leaf):
    leaf.register_hook(user_code)
    return (leaf * 2).sum()


def inner_tensor_hook(leaf):
    made = leaf * 2
    made.register_hook(user_code)
    return made.sum()


def node_hooks(leaf):
    made = leaf * 2
    made.grad_fn.register_prehook(user_code)
    made.grad_fn.register_hook(user_code)
    return made.sum()


def post_accumulate(leaf):
    leaf.register_post_accumulate_grad_hook(user_code)
    return (leaf * 2).sum()


def custom_function(leaf):
    return Doubled.apply(leaf).sum()


def saved_hooks(leaf):
    with saved_tensors_hooks(lambda tensor: tensor, unpacked):
        return leaf.exp().sum()


def callback(leaf):
    leaf.register_hook(lambda grad: torch.autograd.Variable._execution_engine.queue_callback(user_code))
    return (leaf * 2).sum()


CASES = [
    (tensor_hook, 1),
    (inner_tensor_hook, 1),
    (node_hooks, 2),
    (post_accumulate, 1),
    (custom_function, 1),
    (saved_hooks, 1),
    (callback, 1),
]


def after():
    return x * 3


def whole(loss):
    loss.backward()
    after()


def children(prof, name):
    """What is inside each call of that name, by its last part: `function` of `file.py(3): function`."""
    return [
        [child.name.rpartition(": ")[2] for child in event.cpu_children]
        for event in prof.events()
        if event.name.endswith(f": {name}")
    ]


@pytest.mark.parametrize(("make", "times"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_what_the_user_gave_the_engine_is_recorded(make, times):
    leaf = torch.ones(3, requires_grad=True)
    loss = make(leaf)
    with profile(with_stack=True) as prof:
        whole(loss)
    assert children(prof, "user_code") == [["helper"]] * times
    assert children(prof, "helper") == [["aten::add"]] * times
    (inside,) = children(prof, "whole")
    assert inside[-1] == "after"


def test_calls_go_on_after_a_hook_that_raises():
    leaf = torch.ones(3, requires_grad=True)

    def fails(grad):
        raise ValueError("no")

    leaf.register_hook(fails)

    def attempt():
        with contextlib.suppress(ValueError):
            (leaf * 2).sum().backward()
        after()

    with profile(with_stack=True) as prof:
        attempt()
    (inside,) = children(prof, "attempt")
    assert inside[-1] == "after"


def test_a_pass_within_a_pass():
    leaf = torch.ones(3, requires_grad=True)
    other = torch.ones(3, requires_grad=True)
    other.register_hook(user_code)

    def again(grad):
        with torch.enable_grad():
            (other * 2).sum().backward()
        helper()

    leaf.register_hook(again)
    loss = (leaf * 2).sum()
    with profile(with_stack=True) as prof:
        whole(loss)
    assert children(prof, "again")[0][-1] == "helper"
    assert children(prof, "user_code") == [["helper"]]
    assert children(prof, "whole")[0][-1] == "after"


@pytest.mark.parametrize("outer", [False, True], ids=["alone", "in another profile"])
def test_a_profile_that_begins_in_a_hook(outer):
    leaf = torch.ones(3, requires_grad=True)
    inner = profile(with_stack=True)

    def begin(grad):
        inner.start()
        helper()

    leaf.register_hook(begin)

    def around():
        (leaf * 2).sum().backward()
        after()

    with profile(with_stack=True) if outer else contextlib.nullcontext() as around_it:
        around()
        inner.stop()
    assert children(inner, "helper") == [["aten::add"]]
    assert children(inner, "after") == [["aten::mul"]]
    assert children(inner, "around")[0][-1] == "after"
    if outer:
        assert children(around_it, "around")[0][-1] == "after"
    assert sys.getprofile() is None


def test_a_profile_that_ends_in_a_hook():
    leaf = torch.ones(3, requires_grad=True)
    prof = profile(with_stack=True)

    def end(grad):
        helper()
        prof.stop()

    leaf.register_hook(end)
    loss = (leaf * 2).sum()
    prof.start()
    whole(loss)
    after()
    assert children(prof, "helper") == [["aten::add"]]
    assert not children(prof, "after")
    assert sys.getprofile() is None


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there the inside's code is switched off, all but the entries of ops")
def test_the_engine_is_not_traced(monkeypatch):
    """Whatever the length of a pass, the tracer gets the same few events."""
    logs = []
    init = PythonCallLog.__init__
    monkeypatch.setattr(PythonCallLog, "__init__", lambda self, *args: (init(self, *args), logs.append(self))[0])

    def traced(length):
        value = torch.ones(3, requires_grad=True)
        loss = value
        for _ in range(length):
            loss = loss.sigmoid() * value
        loss = loss.sum()
        loss.backward(retain_graph=True)  # compiles what is compiled at first
        with profile(with_stack=True, record_shapes=True):
            before = len(logs[-1].events)
            loss.backward()
            return len(logs[-1].events) - before

    assert traced(20) == traced(2) < 200
