"""The observer's listeners: what they see, in which order, and that none is left behind."""

from __future__ import annotations

import textwrap
import threading
from types import SimpleNamespace

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core.threads import threads
from mindtorch_v2._dispatch import backends, entry_globals, observer
from mindtorch_v2.utils._python_dispatch import TorchDispatchMode

x = torch.ones(2)
LINEAR = torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)


class Calls:
    """An op listener that keeps names, arguments and results."""

    def __init__(self):
        self.seen = []

    def op_started(self, op, args):
        self.seen.append(("start", observer.op_names[op]))
        return args

    def op_ended(self, op, started, result):
        self.seen.append(("end", observer.op_names[op], started, result))

    @property
    def names(self):
        return [entry[1] for entry in self.seen if entry[0] == "start"]


@pytest.fixture
def calls():
    listener = Calls()
    observer.add_op_listener(listener)
    yield listener
    observer.remove_op_listener(listener)


@pytest.fixture(autouse=True)
def _nothing_is_left():
    yield
    assert entry_globals.observers_active == 0 and not threads.state.modes
    assert observer.listeners.out == () and observer.listeners.device is None


def test_the_smallest_recording():
    """The example of the module's docstring."""
    source = textwrap.dedent(observer.__doc__.split("\n\n")[1])
    names = {"observer": observer, "torch": torch, "x": x}
    exec(source, names)
    assert observer.op_names[names["op"]] == "aten::neg"
    assert names["start"] <= names["end"] and names["sequence"] == threads.state.sequence


# ---------------------------------------------------------------- calls with out=


def test_out_listeners_see_calls_with_out_alone():
    seen = []
    observer.add_out_listener(seen.append)
    torch.add(x, x)
    torch.add(x, x, out=torch.empty(2))
    observer.remove_out_listener(seen.append)
    torch.add(x, x, out=torch.empty(2))
    assert [(observer.op_names[op], observer.op_overloads[op]) for op in seen] == [("aten::add", "Tensor")]


def test_out_listeners_see_a_call_that_fails():
    seen = []
    observer.add_out_listener(seen.append)
    with pytest.raises(TypeError, match="argument 'out' must be Tensor"):
        torch.add(x, x, out=5)
    observer.remove_out_listener(seen.append)
    assert len(seen) == 1


def test_an_out_listener_added_twice_is_removed_twice():
    seen = []
    add = seen.append
    observer.add_out_listener(add)
    observer.add_out_listener(add)
    observer.remove_out_listener(add)
    torch.add(x, x, out=torch.empty(2))
    observer.remove_out_listener(add)
    observer.remove_out_listener(add)
    assert len(seen) == 1


# ---------------------------------------------------------------- arguments and results


def test_op_listeners_see_arguments_and_results(calls):
    y = torch.neg(x)
    assert calls.seen == [("start", "aten::neg"), ("end", "aten::neg", (x,), y)]


def test_op_listeners_see_what_composites_are_made_of(calls):
    torch.nn.functional.linear(*LINEAR)
    assert calls.names == ["aten::linear", "aten::t", "aten::transpose", "aten::addmm"]


def test_an_op_that_raises_does_not_end(calls):
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.add(x, LINEAR[2])
    assert calls.seen == [("start", "aten::add")]


def test_an_op_listener_leaves_the_slow_path_to_the_op(calls):
    assert torch.mul(2.0, x).tolist() == [2.0, 2.0]
    assert calls.names[-1] == "aten::mul"


def test_op_listeners_are_of_one_thread(calls):
    thread = threading.Thread(target=torch.neg, args=(x,))
    thread.start()
    thread.join()
    assert calls.seen == []


def test_an_op_listener_can_be_removed_by_another_thread():
    listener = Calls()
    observer.add_op_listener(listener)
    thread = threading.Thread(target=observer.remove_op_listener, args=(listener,))
    thread.start()
    thread.join()
    torch.neg(x)
    assert listener.seen == []


def test_what_a_mode_does_is_not_the_program(calls):
    class Twice(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    # The mode is inside of the listener's, so the listener sees what the mode runs.
    with Twice():
        torch.neg(x)
    assert calls.names == ["aten::neg"]


def test_a_listener_above_a_mode_sees_the_call_and_not_the_mode_at_work():
    class Negating(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return torch.mul(args[0], -1)

    listener = Calls()
    with Negating():
        observer.add_op_listener(listener)
        assert torch.neg(x).tolist() == [-1.0, -1.0]
        observer.remove_op_listener(listener)
    assert listener.names == ["aten::neg"]


# ---------------------------------------------------------------- devices


class Launches:
    def __init__(self):
        self.seen = []

    def launch_started(self, kind, name, stream, nbytes):
        self.seen.append((kind, name, nbytes))
        return len(self.seen)

    def launch_ended(self, started):
        self.seen.append(started)

    def memory_changed(self, block, change):
        self.seen.append(change)


def _launch():
    """What a device does at a launch."""
    listener = observer.listeners.device
    if listener is not None:
        listener.memory_changed(object(), 512)
        listener.launch_ended(listener.launch_started("kernel", "Add", None, 0))


def test_one_device_listener_is_read_as_it_is():
    listener = Launches()
    observer.add_device_listener(listener)
    assert observer.listeners.device is listener
    _launch()
    observer.remove_device_listener(listener)
    _launch()
    assert listener.seen == [512, ("kernel", "Add", 0), 2]


def test_several_device_listeners_each_get_what_they_returned():
    first, second = Launches(), Launches()
    observer.add_device_listener(first)
    _launch()
    observer.add_device_listener(second)
    _launch()
    observer.remove_device_listener(first)
    _launch()
    observer.remove_device_listener(second)
    assert first.seen == [512, ("kernel", "Add", 0), 2] + [512, ("kernel", "Add", 0), 5]
    assert second.seen == first.seen


def test_a_device_that_is_not_there_has_no_timing(monkeypatch):
    monkeypatch.setattr(backends, "available", lambda device_type: False)
    assert observer.device_timing("npu") is None


def test_the_timing_of_a_device_is_what_its_code_registered(monkeypatch):
    timing = observer.DeviceTiming(*[SimpleNamespace] * len(observer.DeviceTiming._fields))
    monkeypatch.setattr(backends, "available", lambda device_type: True)
    monkeypatch.setitem(observer.device_timings, "npu", timing)
    assert observer.device_timing("npu") is timing
