"""What recording costs: the estimate's arithmetic, and that a calibration is measured where the recording was made."""

from __future__ import annotations

import sys
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load, profile
from mindtorch_v2.profiler.analysis.findings import duration
from mindtorch_v2.profiler.analysis.overhead import Calibration, calibration_of, estimate
from mindtorch_v2.profiler.analysis.recording_costs import units
from mindtorch_v2.profiler.recording.recorder import Options
from mindtorch_v2.profiler.session import calibration
from mindtorch_v2.profiler.store.store import EventStore, InputInfo

COST = Calibration(op=10.0, scope=20.0, python=5.0, inside=2.0)


def test_times_without_the_cost_of_the_events_below():
    rows = [
        {"name": "inner", "start": 10, "end": 40},
        {"name": "outer", "start": 0, "end": 100},
        {"name": "range", "start": 0, "end": 200, "kind": observer.SCOPE},
    ]
    overhead = estimate(EventStore.from_rows(rows), COST)
    by_name = dict(zip(("range", "outer", "inner"), overhead.duration_ns.tolist(), strict=True))
    assert by_name == {"inner": 28, "outer": 100 - 10 - 2, "range": 200 - 20 - 2}
    assert overhead.self_ns.tolist() == [178 - 88, 88 - 28, 28]
    assert (overhead.events, overhead.total_ns, overhead.covered_ns) == (3, 40, 200)
    assert overhead.share == pytest.approx(0.2)
    assert "3 events" in str(overhead)


def test_times_never_become_negative_and_the_share_stays_below_one():
    rows = [*({"name": "inner", "start": n, "end": n + 1} for n in range(8)), {"name": "outer", "start": 0, "end": 9}]
    overhead = estimate(EventStore.from_rows(rows), COST)
    assert overhead.duration_ns.min() == 0
    assert overhead.share == 1.0
    assert estimate(EventStore.from_rows([]), COST).share == 0


def test_device_rows_and_loose_memory_cost_nothing():
    rows = [{"name": "k", "start": 0, "end": 9, "kind": observer.KERNEL, "device_type": 1}]
    assert estimate(EventStore.from_rows(rows, [{"time": 5, "bytes": 8}]), COST).total_ns == 0


@pytest.mark.parametrize("options", [{}, {"with_stack": True, "record_shapes": True, "profile_memory": True}])
def test_a_profile_measures_its_own_overhead_once(options):
    x = torch.ones(3)
    with profile(**options) as prof:
        for _ in range(50):
            x + x
    overhead = prof.overhead()
    assert overhead.calibration.op > 0
    assert overhead.calibration.inside > 0
    assert (overhead.calibration.python > 0) == bool(options)
    assert overhead.low_ns <= overhead.total_ns <= overhead.high_ns
    assert overhead.total_ns >= 50 * overhead.calibration.op * 0.9
    assert prof.overhead().calibration == overhead.calibration
    assert calibration_of(prof.profiler.store) == overhead.calibration


def test_nothing_is_measured_while_something_records():
    with profile() as prof:
        torch.ones(3)
        with pytest.raises(RuntimeError, match="while something records"):
            prof.overhead()


def test_a_recording_of_unknown_cost():
    assert calibration_of(EventStore.from_rows([])) is None
    assert calibration_of(EventStore.from_rows([], options={"calibration": {"op": 1}})) is None


def costs(**more):
    return estimate(EventStore.from_rows(more.pop("rows"), more.pop("memory", [])), COST._replace(**more))


def test_the_range_is_around_the_estimate_and_shown():
    overhead = costs(rows=[{"name": "op", "start": 0, "end": 9_000_000}], cold=4.0, spread=1.2)
    assert overhead.low_ns < overhead.total_ns < overhead.high_ns
    assert f"({duration(overhead.low_ns)} to {duration(overhead.high_ns)})" in str(overhead)
    wide = costs(rows=[{"name": "op", "start": 0, "end": 9_000_000}], cold=4.0, spread=2.4)
    assert wide.total_ns == overhead.total_ns and wide.high_ns > 1.9 * overhead.high_ns


@pytest.mark.parametrize(
    "kind, unit",
    [
        (observer.OP, "op"),
        (observer.SCOPE, "scope"),
        (observer.STEP, "scope"),
        (observer.BACKWARD, "engine"),
        (observer.ENGINE, "engine"),
        (observer.PYTHON, "python"),
        (observer.MODULE, "module"),
    ],
)
def test_every_kind_of_event_has_its_cost(kind, unit):
    units = {"op": 11.0, "scope": 13.0, "engine": 17.0, "python": 19.0, "module": 23.0}
    assert costs(rows=[{"name": "it", "start": 0, "end": 9, "kind": kind}], **units).total_ns == units[unit]


def test_a_range_of_the_runtimes_own_costs_what_an_op_does():
    names = ("step", "Optimizer.step#SGD.step", "enumerate(DataLoader)#X.__next__", "Optimizer")
    rows = [{"name": name, "kind": observer.SCOPE, "start": 100 * at, "end": 100 * at + 50} for at, name in enumerate(names)]
    assert estimate(EventStore.from_rows(rows), COST).total_ns == 2 * COST.scope + 2 * COST.op


def test_an_event_costs_more_the_longer_ago_the_last_of_its_name_was():
    def total(period, kind=observer.OP, names=("a", "b")):
        rows = [{"name": names[at % 2], "start": at * period, "end": at * period + 1, "kind": kind} for at in range(4)]
        return costs(rows=rows, cold=5.0).total_ns

    first, warm, cold = 2 * 50, 2 * 10, 2 * 50  # the first of each name, and the second
    assert (total(500), total(1_000_000)) == (first + warm, first + cold)
    assert first + warm < total(5_000) < first + cold
    # The same code records all Python calls.
    assert total(500, observer.PYTHON) == (50 + 3 * 10) / 2


def test_allocations_and_frees_cost_wherever_they_happen():
    rows = [{"name": "op", "start": 0, "end": 500}]
    memory = [{"time": 10, "bytes": 8, "addr": 1}, {"time": 900, "bytes": -8, "addr": 1}]
    overhead = estimate(EventStore.from_rows(rows, memory), COST._replace(memory=100.0))
    assert overhead.total_ns == 10 + 2 * 100
    assert overhead.self_ns.tolist() == [500 - 2 - 100, 0]  # the free, after the op, is a row of its own


def test_arguments_cost_by_what_they_are_and_whether_the_first_call_had_them():
    def info(*kinds, dims=(4,)):
        values = {"Scalar": 1, "ScalarList": (1, 2)}
        shapes = [{"TensorList": (dims, dims), "float": dims}.get(kind, ()) for kind in kinds]
        return InputInfo(tuple(shapes), kinds, ((),) * len(kinds), tuple(map(values.get, kinds)))

    one, other = info("float", "Scalar"), info("float", "Scalar", dims=(8,))
    three, three_others = info("float", "float", "float"), info("float", "float", "float", dims=(8,))
    calls = [
        ("neg", one, {"first": 1, "tensor": 1}),
        ("neg", one, {"tensor": 1}),
        ("neg", other, {"inputs": 1, "tensor": 1}),
        ("neg", one, {"tensor": 1}),
        ("addmm", three, {"first": 1, "argument": 2, "tensor": 3}),
        ("addmm", three_others, {"argument": 2, "inputs": 1, "inputs_argument": 2, "tensor": 3}),
        ("sum", info("float", "ScalarList"), {"first": 1, "numbers": 1, "tensor": 1}),
        ("cat", info("TensorList", "Scalar"), {"first": 1, "listed": 2, "tensor": 2}),
        ("cat", info("TensorList", "Scalar"), {"listed": 2, "tensor": 2}),
        ("add", info("float", "double"), {"first": 1, "noted": 1, "tensor": 2}),
    ]
    rows = [{"name": name, "start": 9 * at, "end": 9 * at + 5, "inputs": inputs} for at, (name, inputs, _) in enumerate(calls)]
    store = EventStore.from_rows(rows)
    counted = {unit: counts.tolist() for unit, counts in units(store).items()}
    plain = {"op", "nested", "scope", "engine", "module", "python", "builtin", "method"}
    for row, (name, _, wanted) in enumerate(calls):
        found = {unit: counts[row] for unit, counts in counted.items() if counts[row] and unit not in plain}
        assert found == wanted, (row, name)
    for unit in counted.keys() - plain:
        total = sum(wanted.get(unit, 0) for _, _, wanted in calls)
        assert estimate(store, COST._replace(**{unit: 7.0})).total_ns == 10 * len(calls) + 7 * total


def test_tensors_that_are_noted_cost_by_their_number():
    inputs = InputInfo(
        dims=((2,), ((3,), (4,), (5,)), (), ()),
        types=("float", "TensorList", "Scalar", ""),
        strides=((1,), ((1,), (1,), (1,)), (), ()),
        concrete=(None, None, 2, None),
    )
    rows = [
        {"name": "cat", "start": 0, "end": 50, "inputs": inputs},
        {"name": "range", "start": 60, "end": 70, "kind": observer.SCOPE, "inputs": inputs},
    ]
    store = EventStore.from_rows(rows)
    assert estimate(store, COST._replace(tensor=7.0)).total_ns - estimate(store, COST).total_ns == 4 * 7


@pytest.mark.parametrize(("ns", "large"), [(21, False), (19, True)])
def test_a_program_that_took_twice_as_long_is_told_so(ns, large):
    overhead = estimate(EventStore.from_rows([{"name": "op", "start": 0, "end": ns}]), COST)
    assert overhead.is_large == large
    assert ("more than twice as long" in str(overhead)) == large


def test_ops_in_ops_and_calls_of_builtins_have_costs_of_their_own():
    rows = [
        {"name": "inner", "start": 10, "end": 20},
        {"name": "outer", "start": 0, "end": 100},
        *(
            {"name": name, "start": at, "end": at + 10, "kind": observer.PYTHON}
            for at, name in (
                (200, "<built-in function len>"),
                (300, "<built-in method get of dict object>"),
                (400, "a.py(1): f"),
            )
        ),
    ]
    store = EventStore.from_rows(rows)
    assert estimate(store, COST).total_ns == 2 * 10 + 3 * 5  # a calibration that has no others
    assert estimate(store, COST._replace(nested=3.0, builtin=4.0, method=7.0)).total_ns == 10 + 3 + 4 + 7 + 5


def test_calls_without_rows_cost_what_those_with_rows_do():
    store = EventStore.from_rows([{"name": "op", "start": 0, "end": 100}])
    store.options["hidden_calls"] = 6
    assert estimate(store, COST).total_ns == 10 + 6 * 5


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there the runtime's own calls are switched off one by one")
def test_calls_inside_of_the_runtime_are_counted_without_those_of_the_profiler(tmp_path):
    net, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
    counted = []
    for calls in (0, 1, 3):
        with profile(with_stack=True) as prof:
            for _ in range(calls):
                net(x)
        counted.append(prof.profiler.store.options.get("hidden_calls", 0))
    assert counted[0] == 0 < counted[1]
    assert counted[2] == 3 * counted[1]
    prof.save(tmp_path / "saved.mtp")
    assert load(tmp_path / "saved.mtp").store.options["hidden_calls"] == counted[2]
    with profile(with_stack=True, stream_to=tmp_path / "streamed.mtp"):
        for _ in range(3):
            net(x)
    assert load(tmp_path / "streamed.mtp").store.options["hidden_calls"] == counted[2]


def test_a_recording_of_an_earlier_version_has_four_costs():
    four = {"op": 1.0, "scope": 2.0, "python": 3.0, "inside": 4.0}
    known = calibration_of(EventStore.from_rows([], options={"calibration": four}))
    assert known == Calibration(1.0, 2.0, 3.0, 4.0)
    assert known.spread == 2.0  # nothing is known of how well they were measured


def test_the_cost_of_a_unit_is_what_calm_work_takes_longer_without_what_is_known(monkeypatch):
    """Work of 5 us that recording makes 6 us longer; the first time takes more, and some is disturbed."""
    off, first, on = [5_000] * calibration._REPEATS, 90_000, [40_000] + [11_000] * (calibration._REPEATS - 1)
    times = iter([*off, first, *on] * calibration._ROUNDS)
    monkeypatch.setattr(calibration, "_timed", lambda work: next(times))
    monkeypatch.setattr(calibration, "_counts", lambda round: {"op": 2, "engine": 4})
    cost, spread = calibration._cost_of("engine", lambda: None, Options(), COST._replace(op=1000.0))
    assert (cost, spread) == ((6_000 - 2 * 1000) / 4, 1.0)


def test_noise_larger_than_the_cost_does_not_make_it_free_or_negative(monkeypatch):
    off, first, on = [5_000] * calibration._REPEATS, 9_000, [4_000] * calibration._REPEATS
    times = iter([*off, first, *on] * calibration._ROUNDS)
    monkeypatch.setattr(calibration, "_timed", lambda work: next(times))
    monkeypatch.setattr(calibration, "_counts", lambda round: {"op": 2})
    cost, spread = calibration._cost_of("op", lambda: None, Options(), COST)
    assert cost == 1.0 and 1.0 <= spread < float("inf")


INPUTS = {"inputs", "inputs_argument", "argument", "numbers", "noted", "listed"}
EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}


@pytest.mark.parametrize(
    "options, measured",
    [
        ({}, set()),
        ({"profile_memory": True}, {"memory"}),
        ({"record_shapes": True}, INPUTS),
        ({"with_modules": True}, {"module"}),
        (EVERYTHING, {*INPUTS, "memory", "tensor", "module", "python", "builtin", "method"}),
    ],
)
def test_what_the_options_record_is_measured_in_bounded_time(options, measured):
    begun = time.thread_time_ns()
    known = calibration.calibrate(Options(**options))
    costs = {name: value for name, value in known._asdict().items() if name not in ("inside", "cold", "spread")}
    assert {name for name, value in costs.items() if value > 0} == measured | {"op", "nested", "scope", "engine", "first"}
    assert 1.0 <= known.cold <= 8.0 and known.spread >= 1.0
    assert time.thread_time_ns() - begun < 2e9


def stepped(recorded, without, **more):
    """A recording of steps of these lengths, each with one op, made after unrecorded ones."""
    rows, now = [], 0
    for number, ns in enumerate(recorded):
        rows.append({"name": f"ProfilerStep#{number}", "start": now, "end": now + ns, "kind": observer.STEP})
        rows.append({"name": "op", "start": now + 5, "end": now + 105})
        now += ns
    return EventStore.from_rows(rows, options={"unrecorded_steps": without, **more})


def test_the_cost_is_how_much_longer_recorded_steps_took():
    cost = Calibration(op=200_000.0, scope=100_000.0, python=5.0, inside=0.0)
    overhead = estimate(stepped([1_900_000, 1_300_000, 1_310_000, 1_290_000], [1_000_000] * 5), cost)
    assert overhead.total_ns == 900_000 + 3 * 300_000
    assert overhead.measured_on == 5 and "measured against 5 steps without recording" in str(overhead)
    drift = 4 * 20_000  # a fiftieth of the steps
    assert (overhead.low_ns, overhead.high_ns) == (900_000 + 3 * 290_000 - drift, 900_000 + 3 * 310_000 + drift)
    # A step is shorter by what its op costs: its share by calibration, of what was measured.
    assert overhead.duration_ns[0] == 1_900_000 - 300_000


@pytest.mark.parametrize(
    "why, recorded, without",
    [
        ("too few", [1_300_000] * 4, [1_000_000] * 2),
        ("they differ by more than the estimate is uncertain", [1_300_000] * 4, [1_000_000, 3_000_000, 9_000_000]),
        ("recorded steps took less time", [900_000] * 4, [1_000_000] * 5),
        ("recording cannot cost so much: the steps did more", [2_000_000] * 4, [1_000_000] * 5),
    ],
)
def test_unrecorded_steps_that_tell_nothing_leave_the_estimate(why, recorded, without):
    cost = Calibration(op=50_000.0, scope=50_000.0, python=5.0, inside=0.0)
    overhead = estimate(stepped(recorded, without), cost)
    assert overhead.measured_on == 0, why
    assert overhead.total_ns == estimate(stepped(recorded, []), cost).total_ns == 4 * 100_000
    assert estimate(EventStore.from_rows([{"name": "op", "start": 0, "end": 9}]), cost).measured_on == 0


def test_a_schedule_notes_the_steps_that_it_leaves_unrecorded(tmp_path, monkeypatch):
    now = [0]
    monkeypatch.setattr(observer, "clock", lambda: now[0])
    windows = []

    def ready(prof):
        windows.append(prof.profiler.store.options.get("unrecorded_steps"))
        prof.save(tmp_path / f"{len(windows)}.mtp")

    x = torch.ones(2)
    schedule = torch.profiler.schedule(wait=2, warmup=1, active=2, repeat=2)
    with profile(schedule=schedule, on_trace_ready=ready) as prof:
        for step in range(10):
            x + x
            now[0] += 1000 + step
            if step == 6:
                other = profile()
                other.start()
            prof.step()
            if step == 6:
                other.stop()
    # Not the first step of all, nor those of which another profile recorded a part.
    assert windows == [[1001, 1002], [1001, 1002, 1005]]
    assert load(tmp_path / "2.mtp").store.options["unrecorded_steps"] == windows[1]


def test_without_a_schedule_no_step_is_noted():
    with profile() as prof:
        for _ in range(5):
            torch.ones(2)
            prof.step()
    assert "unrecorded_steps" not in prof.profiler.store.options
    assert prof.overhead().measured_on == 0
