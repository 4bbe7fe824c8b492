"""What ops and views cost, counted instead of timed: Python calls, builtin calls, allocated blocks, event objects."""

from __future__ import annotations

import gc
import sys

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.views.averages import FunctionEventAvg
from mindtorch_v2.profiler.views.events import FunctionEvent

pytestmark = pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer's own calls would be counted")


@pytest.fixture(autouse=True)
def _without_collections():
    """A collection in the middle of a call would run the callbacks of gc, whose calls would be counted."""
    gc.disable()
    yield
    gc.enable()


x = torch.ones((4, 4))
linear = torch.nn.Linear(4, 4)

CALLS = 50
ROUNDS = 3
OPS = {
    "add": lambda: x + x,
    "mul": lambda: torch.mul(x, 2.0),
    "relu": lambda: torch.relu(x),
    "linear": lambda: linear(x),
}


def calls_of(function):
    """Python and builtin calls that one call makes below itself."""
    counts = {"call": 0, "c_call": 0}

    def count(frame, event, arg):
        if event in counts:
            counts[event] += 1

    function()  # compiles what a first call compiles
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    # Less the function itself and the setprofile at the end.
    return counts["call"] - 1, counts["c_call"] - 1


def recorded(function, **options):
    with profile(**options):
        function()
        return calls_of(function)


@pytest.mark.parametrize("name", OPS)
def test_a_session_leaves_no_call_behind(name):
    before = calls_of(OPS[name])
    recorded(OPS[name], record_shapes=True, profile_memory=True)
    assert calls_of(OPS[name]) == before


# What recording adds to an event: Python calls and calls of builtins. Plain: the thread's state, two times, one append.
ADDED = {
    "plain": ({}, (0, 4)),
    "shapes": ({"record_shapes": True}, (1, 4)),
    "flops": ({"with_flops": True}, (1, 4)),
    "modules": ({"with_modules": True}, (0, 4)),
    # Memory gained: its address and one append. Memory given back: one Python call, time, address, append.
    "memory": ({"profile_memory": True}, (1, 4 + 2 + 3)),
}


@pytest.mark.parametrize("kind", ADDED)
def test_calls_that_recording_adds_to_an_op(kind):
    options, most = ADDED[kind]
    off = calls_of(OPS["add"])
    on = recorded(OPS["add"], **options)
    assert on[0] - off[0] <= most[0]
    assert on[1] - off[1] <= most[1]


@pytest.mark.parametrize("options", [{}, {"profile_memory": True}])
def test_shapes_add_one_call_to_an_op_whatever_its_tensors(options):
    """Also where they are optional, views, and of other shapes than those of the last call."""
    layers, views = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 3)], [x.t(), x[:2].t()]

    def alternating():
        for layer, view in zip(layers, views, strict=True):
            torch.nn.functional.linear(x, layer.weight, layer.bias)
            torch.relu(view)

    with profile() as prof:
        alternating()
    added = recorded(alternating, record_shapes=True, **options)[0] - recorded(alternating, **options)[0]
    assert added == len(prof.events())


def traced_calls(function):
    """The Python functions that the tracer of the calling thread sees while `function` runs in a recording with stacks."""
    from mindtorch_v2._dispatch import observer
    from mindtorch_v2.profiler.recording.recorder import recorders_by_thread

    window = recorders_by_thread[id(observer.thread_state())].recordings[0].window
    events = window._log.events
    before = len(events)
    function()
    return [what.co_name for what in events[before:] if hasattr(what, "co_name")]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there the runtime's own calls are switched off one by one")
def test_a_backward_pass_is_traced_as_one_call():
    weight = torch.ones((4, 4), requires_grad=True)
    with profile(with_stack=True):
        for _ in range(2):
            loss = (x * weight).sum()
            traced = traced_calls(loss.backward)
    assert traced == ["backward", "call_untraced", "_call_with_tracer_paused"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there the runtime's own calls are switched off one by one")
def test_what_a_new_optimizer_and_module_hold_is_noted_without_being_traced():
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    with profile(with_stack=True, record_shapes=True, profile_memory=True):
        traced = traced_calls(lambda: model(torch.ones(2, 3)).sum().backward()) + traced_calls(optimizer.step)
    assert "call_untraced" in traced
    assert not {"note_module", "note_optimizer", "note_of"} & set(traced)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there the runtime's own calls are switched off one by one")
def test_a_step_of_the_profile_is_traced_as_one_call():
    with profile(with_stack=True) as prof:
        traced = traced_calls(prof.step)
        assert traced_calls(lambda: linear(x))[1:]  # and tracing goes on
    assert traced == ["step", "call_untraced", "_call_with_tracer_paused"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there the runtime's own calls are switched off one by one")
def test_calls_that_are_traced_in_an_optimizer_do_not_grow_with_its_parameters():
    def traced(count):
        parameters = [torch.nn.Parameter(torch.ones(4)) for _ in range(count)]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        with profile(with_stack=True):
            for _ in range(2):
                for parameter in parameters:
                    parameter.grad = torch.ones(4)
                seen = traced_calls(optimizer.step), traced_calls(optimizer.zero_grad)
        assert all(parameter.grad is None for parameter in parameters)
        return [[name for name in names if name != "add_"] for names in seen]

    stepped, cleared = traced(3)
    assert [stepped, cleared] == traced(1)
    assert cleared == ["zero_grad", "end_span", "span"]
    assert len(stepped) <= 15


def test_a_layer_adds_as_many_calls_as_it_has_events():
    with profile() as prof:
        OPS["linear"]()
    events = len(prof.events())
    off = calls_of(OPS["linear"])
    on = recorded(OPS["linear"])
    assert on[0] - off[0] <= 1  # the module looks whether its calls are recorded
    assert on[1] - off[1] <= 4 * events + 1


def blocks_kept(function, **options):
    """Blocks of memory per call that stay allocated while a session runs."""

    def measured():
        with profile(**options):
            for _ in range(CALLS):
                function()
            gc.collect()
            before = sys.getallocatedblocks()
            for _ in range(CALLS):
                function()
            return (sys.getallocatedblocks() - before) / CALLS

    return min(measured() for _ in range(ROUNDS))


@pytest.mark.parametrize(
    "options, most",
    [
        ({}, 2),  # start and end; the list itself grows now and then
        ({"record_shapes": True}, 2),  # the arguments are like those of the first call: nothing is added
        ({"profile_memory": True}, 2 + 4),  # two rows, each with a time and an address
    ],
)
def test_blocks_that_an_event_keeps(options, most):
    assert blocks_kept(OPS["add"], **options) <= most + 0.5


def test_an_op_keeps_nothing_when_nothing_records():
    function = OPS["add"]
    for _ in range(CALLS):
        function()
    before = sys.getallocatedblocks()
    for _ in range(CALLS):
        function()
    assert sys.getallocatedblocks() - before < CALLS / 2


@pytest.fixture
def made():
    """How many event objects are made."""
    counts = {FunctionEvent: 0, FunctionEventAvg: 0}

    def counting(kind):
        def new(cls, *args, **kwargs):
            counts[kind] += 1
            return object.__new__(cls)

        return new

    for kind in counts:
        kind.__new__ = counting(kind)
    yield counts
    for kind in counts:
        kind.__new__ = lambda cls, *args, **kwargs: object.__new__(cls)  # a class does not get back what it never had


@pytest.mark.parametrize("calls", [CALLS, 4 * CALLS])
def test_averages_and_tables_make_no_object_per_event(made, calls):
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        for _ in range(calls):
            OPS["linear"]()
    rows = [prof.key_averages(), prof.key_averages(group_by_input_shape=True), prof.key_averages(group_by_stack_n=3)]
    groups = sum(map(len, rows))
    assert groups < len(prof.events()) / 2
    # At most one for each group, which stands for all of its events.
    assert made[FunctionEvent] <= groups
    made[FunctionEvent] = 0
    for averages in rows:
        averages.table(sort_by="self_cpu_time_total")
    assert made[FunctionEvent] == 0


def test_events_are_made_when_they_are_read(made):
    with profile() as prof:
        for _ in range(CALLS):
            OPS["add"]()
    events = prof.events()
    assert len(events) == CALLS and made[FunctionEvent] == 0
    events[7]
    assert made[FunctionEvent] <= 2


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there sys.setprofile traces Python calls")
@pytest.mark.parametrize("options", [{}, {"record_shapes": True}, {"record_shapes": True, "profile_memory": True}])
def test_callbacks_that_tracing_calls_adds_to_an_op(options, monkeypatch):
    from mindtorch_v2.profiler.recording.python_calls import monitoring

    make, seen = monitoring._functions, []

    def counting(*args):
        functions, names = make(*args)

        def counted(function):
            def callback(code, *values):
                seen.append(code.co_name)
                return function(code, *values)

            return callback

        return {event: counted(function) for event, function in functions.items()}, names

    monkeypatch.setattr(monitoring, "_functions", counting)

    def run(times):
        for _ in [None] * times:
            x + x

    with profile(with_stack=True, **options):
        run(3)  # what belongs to the inside is switched off as it comes up
        seen.clear()
        run(CALLS)
        names = [name for name in seen if "test" not in name and name != "run"]
    assert names == ["add", "add"] * CALLS  # its call and its return, and nothing of what it does inside
