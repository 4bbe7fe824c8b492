"""CPython's insides: what is asked of them, and that results stay the same where they do not hold."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._autograd import engine, inplace
from mindtorch_v2._autograd.nodes import accumulate
from mindtorch_v2._core import cpython
from mindtorch_v2._ops._support.warn import warn
from mindtorch_v2.profiler import profile


@pytest.fixture
def fresh_self_tests():
    """Each self-test runs again, in the test and after it."""
    self_tests = (cpython._lists_referrers, cpython._lists_objects, cpython._reads_calls, cpython._capsule_is_valid)
    for each in self_tests:
        each.cache_clear()
    yield
    for each in self_tests:
        each.cache_clear()


# ---------------------------------------------------------------- reference counts


def test_counts_follow_holders_on_this_interpreter():
    alone, with_owner = cpython.measure_counts(cpython.getrefcount)
    assert with_owner == alone + 1 and alone > 0
    assert (alone, with_owner) == (cpython.REFCOUNT_OF_LOCAL, cpython.REFCOUNT_WITH_OWNER)


@pytest.mark.parametrize(
    "count",
    [cpython._unknown_count, lambda value: 2, lambda value: -sys.getrefcount(value), lambda value: 2 * sys.getrefcount(value)],
)
def test_counts_that_do_not_follow_holders_are_refused(count):
    assert cpython.measure_counts(count) == (cpython.NO_COUNT, cpython.NO_COUNT)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="there f_locals holds no references")
def test_counts_measured_under_a_debugger_that_reads_variables_are_refused():
    def trace(frame, event, arg):
        assert frame.f_locals is not None
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        counts = cpython.measure_counts(sys.getrefcount)
    finally:
        sys.settrace(previous)
    assert counts == (cpython.NO_COUNT, cpython.NO_COUNT)


def _train():
    """Two steps with gradients that are taken over, added up in place, and kept by a hook; the values at the end."""
    weight = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
    seen = []
    for _ in range(2):
        x = weight * 2
        x.register_hook(seen.append)
        y = x + 1
        y[0] = x[1] * x[0]
        (y.sin() + x * y + x).sum().backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
    return weight.tolist(), weight.grad.tolist(), [each.tolist() for each in seen]


def test_without_counts_gradients_are_copied_and_results_are_the_same(monkeypatch):
    expected = _train()
    steals = _steals_gradient()
    for module in (accumulate, engine, inplace):
        for name in ("REFCOUNT_OF_LOCAL", "REFCOUNT_WITH_OWNER"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, cpython.NO_COUNT)
    assert _train() == expected
    assert steals and not _steals_gradient()


def _steals_gradient():
    """Whether `.grad` took over the memory of the gradient that arrived."""
    leaf = torch.ones(3, requires_grad=True)
    places = []

    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            grad = g * 3
            places.append(grad.data_ptr())
            return grad

    Triple.apply(leaf).sum().backward()
    return leaf.grad.data_ptr() == places[0]


# ---------------------------------------------------------------- referrers


def _gradient_through_a_view_written_behind():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    view, other = y[1:], torch.ones(3)[1:]
    y.mul_(3)
    (view * other).sum().backward()
    return x.grad.tolist(), type(view.grad_fn).__name__


def test_views_are_found_where_referrers_are_not_listed(monkeypatch, fresh_self_tests):
    assert _gradient_through_a_view_written_behind() == ([0, 6, 6], "AsStridedBackward0")
    cpython._lists_referrers.cache_clear()
    monkeypatch.setattr(gc, "get_referrers", lambda *targets: [])
    assert _gradient_through_a_view_written_behind() == ([0, 6, 6], "AsStridedBackward0")
    assert not cpython._lists_referrers() and cpython._lists_objects()


def test_without_any_list_of_objects_a_write_that_views_may_see_is_refused(monkeypatch, fresh_self_tests):
    monkeypatch.setattr(gc, "get_referrers", lambda *targets: [])
    monkeypatch.setattr(gc, "get_objects", list)
    with pytest.raises(NotImplementedError, match="cannot list them"):
        _gradient_through_a_view_written_behind()
    x = torch.ones(3, requires_grad=True) * 2
    assert x.mul_(3).tolist() == [6, 6, 6]  # nothing shares its memory, so nothing has to be found


def test_views_behind_gc_freeze_are_found():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    view = y[1:]
    gc.freeze()
    try:
        y.mul_(3)
    finally:
        gc.unfreeze()
    view.sum().backward()
    assert x.grad.tolist() == [0, 6, 6]


# ---------------------------------------------------------------- bytecode


def _position(call):
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value).partition("(position ")[2][:1]


def test_messages_count_from_the_dot_and_without_bytecode_as_for_a_function(monkeypatch, fresh_self_tests):
    x = torch.ones(2)
    calls = [lambda: x.dot(3), lambda: torch.dot(x, 3), lambda: x.dot(tensor=3), lambda: x.dot(*[3])]
    assert [_position(each) for each in calls] == ["1", "2", "1", "2"]
    cpython._reads_calls.cache_clear()
    monkeypatch.setattr(cpython, "opname", ["CALL"] * 256)
    assert not cpython._reads_calls()
    assert [_position(each) for each in calls] == ["2", "2", "2", "2"]


def test_a_table_of_opcodes_that_is_too_short_is_refused(monkeypatch, fresh_self_tests):
    monkeypatch.setattr(cpython, "opname", [])
    assert cpython.arguments_written(sys._getframe()) is None


# ---------------------------------------------------------------- frames and threads


def test_warnings_name_the_programs_line_and_without_frames_still_warn(monkeypatch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn("of this line")
        monkeypatch.setattr(cpython, "_getframe", None)
        warn("of this one as well")
    assert [each.filename for each in caught] == [__file__, __file__]
    assert cpython.call_into("mindtorch_v2") is None and cpython.calling_module("numpy") == ""


def test_without_frames_an_op_counts_as_a_function(monkeypatch):
    monkeypatch.setattr(cpython, "_getframe", None)
    assert _position(lambda: torch.ones(2).dot(3)) == "2"


def test_another_thread_is_counted(monkeypatch):
    own, frame = threading.get_ident(), sys._getframe()
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    try:
        assert not cpython.is_only_thread()
    finally:
        stop.set()
        other.join()
    for frames, alone in (({own: frame}, True), ({own: frame, -1: frame}, False), ({-1: frame}, False)):
        monkeypatch.setattr(sys, "_current_frames", lambda frames=frames: frames)
        assert cpython.is_only_thread() == alone


def test_without_a_list_of_threads_a_profile_is_the_same(monkeypatch):
    def names():
        with profile() as prof:
            (torch.ones(2) + 1).sum()
        return [event.name for event in prof.events()]

    expected = names()
    monkeypatch.delattr(sys, "_current_frames")
    assert not cpython.is_only_thread()
    assert names() == expected


# ---------------------------------------------------------------- capsules


def test_capsules_are_told_apart_without_the_c_api(monkeypatch, fresh_self_tests):
    capsule = np.ones(2).__dlpack__()
    assert cpython.is_capsule_named(capsule, b"dltensor") and not cpython.is_capsule_named(capsule, b"other")
    monkeypatch.setattr(cpython.ctypes, "pythonapi", object())
    cpython._capsule_is_valid.cache_clear()
    assert cpython.is_capsule_named(capsule, b"dltensor") and not cpython.is_capsule_named(capsule, b"other")
    assert not cpython.is_capsule_named(3, b"dltensor")


# ---------------------------------------------------------------- all together

_WITHOUT = """
    import gc, sys
    del sys.getrefcount, sys._current_frames
    gc.get_referrers = lambda *targets: []
"""

_PROGRAM = """
    import mindtorch_v2 as torch
    from mindtorch_v2 import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(8, 3)
    for _ in range(3):
        optimizer.zero_grad()
        hidden = model[0](x)
        view = hidden[:, 1:]
        hidden.mul_(2)
        loss = (model(x) - view.sum()).pow(2).mean() + hidden.sum()
        loss.backward()
        optimizer.step()
    print([parameter.tolist() for parameter in model.parameters()], loss.item())
"""


def test_an_interpreter_without_all_of_it_trains_to_the_same_values():
    def run(*parts):
        program = "".join(map(textwrap.dedent, parts))
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert run(_WITHOUT, _PROGRAM) == run(_PROGRAM) != ""


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize("offset", [cpython.DATA_OFFSET, 0])
def test_the_address_of_an_arrays_data_is_numpys(monkeypatch, offset):
    monkeypatch.setattr(cpython, "DATA_OFFSET", offset)
    whole = np.arange(12.0).reshape(3, 4)
    for array in (whole, whole[1:, 2:], whole[::-1], np.empty(0), np.float32(1).reshape(())):
        assert cpython.data_address(array) == array.__array_interface__["data"][0]
