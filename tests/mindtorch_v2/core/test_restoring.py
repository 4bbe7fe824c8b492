"""State that is changed for a while: it is restored whatever arrives when."""

from __future__ import annotations

import ast
import ctypes
import inspect
import signal
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core import cpython
from mindtorch_v2._core.cpython import without_signals_at_entry
from mindtorch_v2._core.restoring import carry_out, enter, restoring

SOURCE = Path(torch.__file__).parent
# Makes an interrupt pending; an iterator calls it without a place where the interrupt would arrive.
_set_interrupt = ctypes.pythonapi.PyErr_SetInterrupt
_set_interrupt.restype = None
pending = iter(_set_interrupt, 0)


@pytest.fixture(autouse=True)
def interrupts_raise():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# ---------------------------------------------------------------- entries without signals


def reached(function):
    """Whether the body of a function runs although an interrupt is pending when it is called."""
    steps = []
    try:
        for _ in pending:
            break
        function(steps)
        for _ in (1, 2):  # at the latest it arrives here
            pass
    except KeyboardInterrupt:
        pass
    return steps == ["body"]


def body(steps):
    steps += ("body",)


def test_an_interrupt_arrives_at_the_entry_of_a_plain_function_only():
    assert cpython.ENTRIES_WITHOUT_SIGNALS
    assert not reached(body)
    assert reached(body_of)


@without_signals_at_entry
def body_of(steps):
    steps += ("body",)


def test_functions_keep_what_they_are():
    closed_over = []

    @without_signals_at_entry
    def function(first, *rest, last=3):
        """Says so."""
        closed_over.append(first)
        return first, rest, last

    assert function(1, 2) == (1, (2,), 3) and closed_over == [1]
    assert function.__doc__ == "Says so." and str(inspect.signature(function)) == "(first, *rest, last=3)"


def test_generators_and_coroutines_are_refused():
    def generator():
        yield

    async def coroutine():
        pass

    for each in (generator, coroutine):
        with pytest.raises(TypeError, match="entries of their own"):
            without_signals_at_entry(each)


@pytest.mark.parametrize("install", [sys.settrace, sys.setprofile])
def test_tracers_see_the_call_and_the_return(install):
    seen = []
    before = sys.gettrace() if install is sys.settrace else sys.getprofile()

    def trace(frame, event, arg):
        if frame.f_code is body_of.__code__:
            seen.append(event)
        return trace

    install(trace)
    try:
        body_of([])
    finally:
        install(before)
    assert seen[0] == "call" and seen[-1] == "return"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring")
def test_monitoring_sees_the_call_as_one_that_goes_on():
    seen = []
    events = sys.monitoring.events
    sys.monitoring.use_tool_id(4, "test")
    try:
        for event in (events.PY_START, events.PY_RESUME, events.PY_RETURN):
            sys.monitoring.register_callback(4, event, lambda code, offset, *more, event=event: seen.append(event))
        sys.monitoring.set_local_events(4, body_of.__code__, events.PY_START | events.PY_RESUME | events.PY_RETURN)
        body_of([])
    finally:
        sys.monitoring.set_local_events(4, body_of.__code__, 0)
        sys.monitoring.free_tool_id(4)
    assert seen == [events.PY_RESUME, events.PY_RETURN]


def test_where_the_interpreter_is_unknown_functions_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(cpython, "ENTRIES_WITHOUT_SIGNALS", False)

    def function():
        return 1

    code = function.__code__
    assert without_signals_at_entry(function).__code__ is code


# ---------------------------------------------------------------- actions


def test_actions_are_carried_out_last_first():
    done = []
    actions = [partial(done.append, number) for number in range(3)]
    carry_out(actions)
    assert done == [2, 1, 0] and not actions


@pytest.mark.parametrize("interrupts", [1, 3, 7])
def test_interrupts_come_after_the_actions(interrupts):
    done = []
    left = dict.fromkeys(range(3), interrupts)

    def interrupted(number):
        if left[number]:
            left[number] -= 1
            signal.raise_signal(signal.SIGINT)
        done.append(number)

    with pytest.raises(KeyboardInterrupt):
        carry_out([partial(interrupted, number) for number in range(3)])
    assert done == [2, 1, 0]


def test_an_action_that_cannot_be_carried_out_does_not_keep_the_others():
    done = []
    tries = []

    def fails():
        tries.append(1)
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        carry_out([partial(done.append, "first"), fails, partial(done.append, "last")])
    assert done == ["last", "first"] and len(tries) == 8


# ---------------------------------------------------------------- scopes

setting = {"most": 1}


@restoring
def limit(undo, most, *, fails=False):
    undo.append(partial(setting.update, setting.copy()))
    setting["most"] = most
    if fails:
        raise ValueError("refused")
    return most


def test_a_scope_restores_and_may_be_nested_and_entered_again():
    scope = limit(2)
    with scope as most, limit(3):
        assert most == 2 and setting == {"most": 3}
        with scope:
            assert setting == {"most": 2}
        assert setting == {"most": 3}
    assert setting == {"most": 1}


def test_a_change_that_fails_half_way_is_undone():
    with pytest.raises(ValueError, match="refused"), limit(2, fails=True):
        pass
    assert setting == {"most": 1}


def test_a_scope_decorates_and_shows_its_arguments():
    @limit(5)
    def function():
        return setting["most"]

    assert function() == function() == 5 and setting == {"most": 1}
    assert str(inspect.signature(limit)).startswith("(most, *, fails=False)")
    with pytest.raises(TypeError, match="missing a required argument"):
        limit()


def test_enter_leaves_a_context_once():
    undo = []
    with torch.enable_grad():
        enter(undo, torch.no_grad())
        assert not torch.is_grad_enabled()
        carry_out([*undo, *undo])
        assert torch.is_grad_enabled()


def test_one_object_on_several_threads_and_nested_in_itself():
    mode = torch.no_grad()
    seen = []

    def work():
        with torch.no_grad():
            seen.append(torch.is_grad_enabled())
        seen.append(torch.is_grad_enabled())

    with mode:
        with mode:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            assert not torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled() and seen == [False, True]


# ---------------------------------------------------------------- the rules, in the source

# These hold no state: an open file or a folder that its end closes, a name in an error, a range that always raises.
STATELESS = {"opened", "_reader", "_named", "range", "optimized_execution", "mkdtemp", "_open_file_like", "_told_run"}
STATELESS |= {"_open_zipfile_reader", "_open_zipfile_writer", "use_mem_pool"}


def functions(about):
    """The functions of the source files that have a word in them."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if about in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    yield path.relative_to(SOURCE), node


def decorators(node):
    return {ast.unparse(each) for each in node.decorator_list}


def test_no_generator_changes_state_for_a_while():
    found = {
        node.name
        for _, node in functions("contextmanager")
        if decorators(node) & {"contextmanager", "contextlib.contextmanager"}
    }
    assert found <= STATELESS, "use _core.restoring"


# Files, printed lines and processes: what their end does is done by their finalizer as well, or by the operating system.
# Streams of the CPU and marks for vendors' tools: their end changes nothing. `mtprof` and on-demand profiles end with close().
UNCHANGED = {
    "_serialization/archive.py",
    "_streams.py",
    "compiler.py",
    "cuda/__init__.py",
    "hub.py",
    "safetensors.py",
    "utils/tensorboard/writer.py",
    "profiler/cli/progress.py",
    "profiler/session/legacy.py",
    "profiler/on_demand.py",
}


def test_no_interrupt_skips_the_end_of_a_block():
    loud = {
        path.as_posix()
        for path, node in functions("__exit__")
        if node.name == "__exit__" and "without_signals_at_entry" not in decorators(node)
    }
    assert loud == UNCHANGED
