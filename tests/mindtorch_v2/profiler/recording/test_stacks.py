"""Python calls and source locations: with_stack, export_stacks, and both CallTracers."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import weakref

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function
from mindtorch_v2.profiler.assembly.python_rows import python_rows
from mindtorch_v2.profiler.exporters import stacks
from mindtorch_v2.profiler.recording.python_calls.code_origin import LIBRARY, USER, classify
from mindtorch_v2.profiler.recording.python_calls.stream import CallSegment, OpenFrame
from mindtorch_v2.profiler.store.store import EventStore

x = torch.ones(3)
HERE = os.path.basename(__file__)


def here(function, offset=0):
    return f"{HERE}({function.__code__.co_firstlineno + offset}): {function.__name__}"


def short(text):
    """Without the folder, which depends on where tests are run from."""
    return text.rpartition("/")[2]


def tree(prof):
    def node(event):
        return [short(event.name), *map(node, event.cpu_children)]

    return [node(event) for event in prof.events() if event.cpu_parent is None]


def inner(prof, name):
    """What is inside the call of that name."""
    (event,) = [e for e in prof.events() if e.name.endswith(f": {name}")]
    return [short(child.name) for child in event.cpu_children]


def leaf():
    return x + x


def middle():
    return leaf()


# ------------------------------------------------------------------------------ made-up streams


def function(name, filename="/user/code.py", line=10):
    source = "\n" * (line - 1) + f"def {name}():\n    a\n    b\n    c\n"
    space = {}
    exec(compile(source, filename, "exec"), space)
    return space[name].__code__


def events(objects, times, places):
    """One list of what, place and time, as a CallTracer makes it; places are those of calls."""
    remaining = iter(places)
    return [
        entry
        for what, time in zip(objects, times, strict=True)
        for entry in (what, -1 if what is None else next(remaining), time)
    ]


def rows(*segments, end=1000):
    python = python_rows(list(segments), end)
    return [(python.names[n], int(s), int(e)) for n, s, e in zip(python.name, python.start, python.end, strict=True)], python


def test_calls_and_returns_are_paired():
    f, g = function("f"), function("g", line=20)
    found, _ = rows(CallSegment(0, None, [], [], events([f, g, None, g, None, None], [10, 20, 30, 40, 50, 60], [-1, 0, 0])))
    inner = "/user/code.py(20): g"
    assert found == [(inner, 20, 30), (inner, 40, 50), ("/user/code.py(10): f", 10, 60)]


def test_calls_that_do_not_return_end_with_the_recording():
    f, g = function("f"), function("g", line=20)
    found, _ = rows(CallSegment(5, None, [OpenFrame(f, 12)], [-1], [g, 0, 20]))
    assert found == [("/user/code.py(20): g", 20, 1000), ("/user/code.py(12): f", 5, 1000)]


def test_a_pause_ends_what_is_open():
    f = function("f")
    found, _ = rows(CallSegment(5, 50, [OpenFrame(f, 12)], [-1], []), CallSegment(80, None, [OpenFrame(f, 13)], [-1], []))
    assert found == [("/user/code.py(12): f", 5, 50), ("/user/code.py(13): f", 80, 1000)]


def test_a_pause_that_lasts_to_the_end_has_no_part_in_what_is_open():
    f = function("f")
    found, _ = rows(CallSegment(5, 50, [OpenFrame(f, 12)], [-1], []))
    assert found == [("/user/code.py(12): f", 5, 50)]


def test_frames_of_the_runtime_and_what_they_call_are_left_out():
    user = function("user")
    inside = function("kernel", torch.__file__.replace("__init__.py", "_ops/any.py"))
    library = function("mean", os.path.join(os.path.dirname(os.__file__), "statistics.py"))
    hook = function("hook", line=30)
    calls = [user, inside, library, "<built-in function len>", None, None, hook, None, None, library, None, None]
    calls_shown, _ = rows(CallSegment(0, None, [], [], events(calls, range(10, 130, 10), [-1] + [0] * 5)))
    assert [short(name) for name, _, _ in calls_shown] == [
        "code.py(30): hook",
        short(f"/{library.co_filename}(10): mean"),
        "code.py(10): user",
    ]


def test_the_stack_at_a_moment_has_lines():
    f, g = function("f"), function("g", line=20)
    places = {line: start for start, _, line in f.co_lines() if line}
    stream = CallSegment(0, None, [], [], events([f, g, None, None], [10, 20, 30, 40], [-1, places[12]]))
    _, python = rows(stream)

    def at(moment):
        number = int(python.stack_at(np.array([moment]))[0])
        return list(python.stacks[number]) if number >= 0 else []

    assert at(5) == []
    assert at(15) == ["/user/code.py(10): f"]
    assert at(25) == ["/user/code.py(20): g", "/user/code.py(12): f"]
    assert at(35) == ["/user/code.py(12): f"]
    assert at(45) == []


def test_a_call_tells_the_line_that_made_it():
    f, g = function("f"), function("g", line=20)
    places = {line: start for start, _, line in f.co_lines() if line}
    stream = CallSegment(0, None, [], [], events([f, g, None, None], [10, 20, 30, 40], [-1, places[12]]))
    _, python = rows(stream)
    callers = {python.names[name]: int(caller) for name, caller in zip(python.name.tolist(), python.caller, strict=True)}
    assert callers["/user/code.py(10): f"] == -1
    assert list(python.stacks[callers["/user/code.py(20): g"]]) == ["/user/code.py(12): f"]


# ------------------------------------------------------------------------------ real calls


def test_python_functions_become_parents():
    with profile(with_stack=True) as prof:
        middle()
    (event,) = [e for e in prof.events() if e.name == "aten::add"]
    assert [short(event.cpu_parent.name), short(event.cpu_parent.cpu_parent.name)] == [here(leaf), here(middle)]
    assert (event.cpu_parent["kind"], event.cpu_parent.is_python_function) == ("python", True)


def test_stacks_are_filled_without_further_switches():
    with profile(with_stack=True) as prof:
        middle()
    (event,) = [e for e in prof.events() if e.name == "aten::add"]
    assert [short(entry) for entry in event.stack[:2]] == [here(leaf, 1), here(middle, 1)]


def test_without_the_flag_there_are_none():
    with profile() as prof:
        middle()
    assert [(e.name, e.stack) for e in prof.events()] == [("aten::add", [])]


def test_backward_ops_have_the_forward_stack():
    y = torch.ones(3, requires_grad=True)

    def forward():
        return (y * y).sum()

    def both():
        forward().backward()

    with profile(with_stack=True) as prof:
        both()
    for name in ("MulBackward0", "SumBackward0"):
        (event,) = [e for e in prof.events() if e.name == name]
        assert short(event.stack[0]) == here(forward, 1)


def test_builtins_are_calls():
    def user():
        return sorted([3, 1], key=lambda v: -v)

    with profile(with_stack=True) as prof:
        user()
    assert inner(prof, "user") == ["<built-in function sorted>"]


def test_the_inside_of_an_op_is_not_shown():
    def user():
        x.softmax(0)
        x.view(1, 3)
        torch.ones((2, 2))
        return x.sum()

    with profile(with_stack=True, profile_memory=True, record_shapes=True) as prof:
        user()
    assert not [name for name in inner(prof, "user") if "built-in" in name]
    assert "aten::softmax" in inner(prof, "user") and "aten::sum" in inner(prof, "user")
    assert not [e.name for e in prof.events() if "_dispatch" in e.name or "numpy" in e.name]


def test_calls_go_on_after_an_op_that_raises():
    def user():
        with contextlib.suppress(RuntimeError):
            x + torch.ones(4)
        middle()

    with profile(with_stack=True) as prof:
        user()
    assert short(inner(prof, "user")[-1]) == here(middle)


def test_calls_go_on_after_a_call_that_was_refused():
    def user():
        with contextlib.suppress(TypeError):
            torch.add("no", "tensors")
        leaf()
        middle()

    with profile(with_stack=True) as prof:
        user()
    assert short(inner(prof, "user")[-1]) == here(middle)


def test_tensors_that_go_are_not_calls():
    def user():
        tensors = [leaf() for _ in range(3)]
        tensors.clear()
        return middle()

    with profile(with_stack=True, profile_memory=True) as prof:
        user()
    assert not [event.name for event in prof.events() if "freed" in event.name]
    assert short(inner(prof, "user")[-1]) == here(middle)


def test_labels_lie_between_their_function_and_their_ops():
    def user():
        with record_function("label"):
            leaf()

    with profile(with_stack=True) as prof:
        user()
    assert inner(prof, "user") == ["label"]


def test_two_profiles_with_stacks():
    def user():
        leaf()
        with profile(with_stack=True) as prof:
            leaf()
        leaf()
        return prof

    with profile(with_stack=True) as outer:
        nested = user()
    assert [short(n) for n in inner(outer, "user")].count(here(leaf)) == 3
    assert sum(e.name.endswith(": leaf") for e in nested.events()) == 1


def test_pausing_with_stacks():
    with profile(with_stack=True) as prof:
        leaf()
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        middle()
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        leaf()
    found = [short(e.name) for e in prof.events()]
    assert found.count(here(leaf)) == 2 and here(middle) not in found


def test_frames_are_not_kept_alive():
    class Big:
        pass

    def user():
        big = Big()
        x + x
        return weakref.ref(big)

    with profile(with_stack=True):
        gone = user()
        gc.collect()
        assert gone() is None


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="traces through sys.monitoring there")
def test_another_profile_function_goes_on_and_is_put_back():
    seen = []

    def other(frame, event, arg):
        seen.append(event)

    sys.setprofile(other)
    try:
        with profile(with_stack=True) as prof:
            leaf()
        assert sys.getprofile() is other
    finally:
        sys.setprofile(None)
    assert "call" in seen and inner(prof, "leaf") == ["aten::add"]


# ------------------------------------------------------------------------------ export_stacks


def row(name, start, end, stack=None, **more):
    return {"name": name, "start": start, "end": end, "stack": stack, **more}


def exported(store, tmp_path, **options):
    stacks.export(store, tmp_path / "s.txt", **options)
    return (tmp_path / "s.txt").read_text()


def test_lines_are_root_first_with_whole_microseconds(tmp_path):
    store = EventStore.from_rows(
        [
            row("a", 0, 100_900, ("m.py(3): f g;h", "t.py(9): main")),
            row("b", 200_000, 200_500, ("m.py(4): k",)),
            row("c", 300_000, 350_000),
        ]
    )
    assert exported(store, tmp_path) == "t.py(9):_main;m.py(3):_f_g_h 100\n"


def test_lines_of_averages(tmp_path):
    stacks.export_rows([(["m.py(3): f", "t.py(9): main"], 100.9), (["m.py(4): k"], 0.5), ([], 50)], tmp_path / "s.txt")
    assert (tmp_path / "s.txt").read_text() == "t.py(9):_main;m.py(3):_f 100\n"


def test_devices_have_metrics_of_their_own(tmp_path):
    store = EventStore.from_rows([row("a", 0, 100_000, ("f",)), row("b", 0, 70_000, ("g",), device_type=1)])
    assert exported(store, tmp_path, metric="self_cuda_time_total") == "g 70\n"


def test_an_unknown_metric(tmp_path):
    with pytest.raises(ValueError, match="metric should be one of"):
        exported(EventStore.from_rows([]), tmp_path, metric="cpu_time_total")


def test_a_profile_without_stacks_refuses(tmp_path):
    with profile() as prof:
        leaf()
    with pytest.raises(AssertionError, match="with_stack=True"):
        prof.export_stacks(str(tmp_path / "s.txt"))


def test_a_real_profile_writes_lines(tmp_path):
    with profile(with_stack=True) as prof:
        for _ in range(50):
            middle()
    prof.export_stacks(str(tmp_path / "s.txt"))
    lines = (tmp_path / "s.txt").read_text().splitlines()
    assert lines and all(line.rsplit(" ", 1)[1].isdigit() for line in lines) and any(":_middle;" in line for line in lines)


def refused():
    with contextlib.suppress(TypeError):
        torch.sum()


def failed():
    with contextlib.suppress(RuntimeError):
        x + torch.ones(4)
    return leaf()


@pytest.mark.parametrize("function", [refused, failed])
def test_calls_are_traced_after_an_op_that_failed(function):
    try:
        x + torch.ones(4)
    except RuntimeError as error:
        last_error = error  # and with it the op's frame
    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
        function()
        try:
            x + torch.ones(4)
        except RuntimeError as error:
            last_error = error
        middle()
    assert last_error is not None
    names = [short(event.name) for event in prof.events()]
    assert names.count(here(middle)) == 1
    assert names.count(here(leaf)) == (1 if function is refused else 2)
    assert inner(prof, "middle") == [here(leaf)]
    assert here(function) in names


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_lines_in_and_after_a_grad_mode(mode):
    def inside():
        with mode():
            x + 1
        x * 2

    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
        inside()
        x - 1
    first = inside.__code__.co_firstlineno
    lines = {event.name: event.stack[0] for event in prof.events() if event.name.startswith("aten::")}
    assert f"({first + 2}): inside" in lines["aten::add"]
    assert f"({first + 3}): inside" in lines["aten::mul"]
    assert "inside" not in lines["aten::sub"]


def test_an_installed_package_beside_the_standard_library_is_the_users():
    folder = os.path.dirname(os.path.abspath(os.__file__))
    assert classify(os.path.join(folder, "site-packages", "mine.py")) == USER
    assert classify(os.path.join(folder, "mine.py")) == LIBRARY
