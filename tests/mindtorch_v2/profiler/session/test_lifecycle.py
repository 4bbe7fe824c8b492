"""profile: start, step, stop, schedules, nesting, misuse; record_function; and what is better than torch's."""

from __future__ import annotations

import gc
import json
import threading
import warnings
import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import entry_globals
from mindtorch_v2.autograd import profiler as legacy
from mindtorch_v2.profiler import (
    ProfilerAction,
    ProfilerActivity,
    _ExperimentalConfig,
    _KinetoProfile,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
    windows,
)

x = torch.ones(3)
NONE, WARMUP, RECORD, SAVE = list(ProfilerAction)[:4]


@pytest.fixture(autouse=True)
def nothing_left():
    before = entry_globals.observers_active
    yield
    assert entry_globals.observers_active == before


def names(prof):
    return [event.trace_name for event in prof.events()]


def plan(**arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return schedule(**arguments)


def cycles(steps, acc_events=False, **arguments):
    """What on_trace_ready saw, and the profile."""
    log = []
    with profile(
        schedule=plan(**arguments),
        acc_events=acc_events,
        on_trace_ready=lambda p: log.append((p.step_num, p.current_action.name, names(p))),
    ) as prof:
        for _ in range(steps):
            x + x
            prof.step()
    return log, prof


# ------------------------------------------------------------------------------ windows


def test_says_once_that_a_cycle_takes_the_place_of_the_last(monkeypatch):
    monkeypatch.setattr(windows, "_warned", set())
    with pytest.warns(UserWarning, match="Profiler clears events at the end of each cycle") as caught:
        cycles(4, wait=1, warmup=0, active=1)
        cycles(4, wait=1, warmup=0, active=1)
    assert len([w for w in caught if "clears events" in str(w.message)]) == 1


def test_says_nothing_where_nothing_is_cleared(monkeypatch):
    monkeypatch.setattr(windows, "_warned", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cycles(4, acc_events=True, wait=1, warmup=0, active=1)
        cycles(2, wait=0, warmup=1, active=1, repeat=1)


def test_records_between_start_and_stop():
    prof = profile()
    x - x
    prof.start()
    x + x
    prof.stop()
    x * x
    assert names(prof) == ["aten::add"]


def test_an_exception_passes_and_loses_no_event():
    with pytest.raises(KeyError), profile() as prof:
        x + x
        raise KeyError
    assert names(prof) == ["aten::add"]


@pytest.mark.parametrize("call", ["events", "key_averages", "stop"])
def test_before_start_there_is_no_result(call):
    with pytest.raises(AssertionError, match="must be initialized"):
        getattr(profile(), call)()


def test_step_before_start_counts():
    prof = profile()
    prof.step()
    assert (prof.step_num, prof.current_action, prof.get_trace_id()) == (1, RECORD, None)


@pytest.mark.parametrize(
    ("steps", "arguments", "expected", "left"),
    [
        (
            4,
            {"wait": 1, "warmup": 1, "active": 2},
            [(4, "NONE", ["ProfilerStep#2", "aten::add", "ProfilerStep#3", "aten::add"])],
            ["ProfilerStep#2", "aten::add", "ProfilerStep#3", "aten::add"],
        ),
        (
            4,
            {"wait": 0, "warmup": 1, "active": 1},
            [(2, "WARMUP", ["ProfilerStep#1", "aten::add"]), (4, "WARMUP", ["ProfilerStep#3", "aten::add"])],
            [],
        ),
        (
            2,
            {"wait": 0, "warmup": 0, "active": 1},
            [
                (1, "RECORD_AND_SAVE", ["ProfilerStep#0", "aten::add"]),
                (2, "RECORD_AND_SAVE", ["ProfilerStep#1", "aten::add"]),
                (2, "RECORD_AND_SAVE", ["ProfilerStep#2"]),
            ],
            ["ProfilerStep#2"],
        ),
        (1, {"wait": 1, "warmup": 0, "active": 3}, [(1, "RECORD", ["ProfilerStep#1"])], ["ProfilerStep#1"]),
    ],
)
def test_cycles(steps, arguments, expected, left):
    log, prof = cycles(steps, **arguments)
    assert log == expected
    assert names(prof) == left


def test_accumulated_events_have_the_newest_first():
    _, prof = cycles(4, acc_events=True, wait=1, warmup=0, active=1)
    assert names(prof) == ["ProfilerStep#3", "aten::add", "ProfilerStep#1", "aten::add"]
    assert [(row.key, row.count) for row in prof.key_averages()] == [("ProfilerStep*", 2), ("aten::add", 2)]


def test_stopped_while_waiting_there_is_no_result():
    _, prof = cycles(0, wait=1, warmup=1, active=1)
    with pytest.raises(AssertionError):
        prof.events()


def test_a_schedule_that_jumps_warns():
    sequence = [RECORD, NONE, WARMUP, NONE]
    with pytest.warns(UserWarning, match="Incorrect schedule"), profile(schedule=sequence.__getitem__) as prof:
        for _ in range(3):
            x + x
            prof.step()
    assert names(prof) == []


def test_a_failing_schedule_changes_nothing():
    def mine(step):
        if step:
            raise LookupError
        return RECORD

    with profile(schedule=mine) as prof:
        with pytest.raises(LookupError):
            prof.step()
        assert (prof.step_num, prof.current_action) == (0, RECORD)


def test_a_failing_handler_leaves_step_and_the_next_window_is_recorded():
    failures = [LookupError]

    def ready(prof):
        if failures:
            raise failures.pop()

    with profile(schedule=plan(wait=0, warmup=0, active=1), on_trace_ready=ready) as prof:
        with pytest.raises(LookupError):
            prof.step()
        x * x
    assert names(prof) == ["ProfilerStep#1", "aten::mul"]


def test_step_numbers_of_events():
    with profile() as prof:
        x + x
        prof.step()
        x * x
    assert [(event.name, event["step"]) for event in prof.events()] == [("aten::add", 0), ("aten::mul", 1)]


def test_low_level_profile():
    prof = _KinetoProfile()
    with pytest.raises(AssertionError):
        prof.start_trace()
    prof.prepare_trace()
    prof.start_trace()
    x + x
    prof.stop_trace()
    assert names(prof) == ["aten::add"]


# ------------------------------------------------------------------------------ better than torch


def test_nested_profiles_each_get_their_events():
    with profile() as outer:
        x + x
        with profile(record_shapes=True) as inner:
            x * x
        x - x
    assert names(outer) == ["aten::add", "aten::mul", "aten::sub"]
    assert names(inner) == ["aten::mul"]
    assert inner.events()[0].input_shapes == [[3], [3]]


def test_the_autograd_profiler_inside_another_profile():
    with profile() as outer, legacy.profile() as inner:
        x * x
    assert names(outer) == [event.name for event in inner.function_events] == ["aten::mul"]


def test_a_second_start_goes_on():
    prof = profile()
    prof.start()
    x + x
    prof.start()
    x * x
    prof.stop()
    assert names(prof) == ["aten::add", "aten::mul"]


def test_a_second_stop_changes_nothing():
    calls = []
    with profile(on_trace_ready=lambda p: calls.append(len(p.events()))) as prof:
        x + x
        prof.stop()
        x * x
    assert names(prof) == ["aten::add"] and calls == [1]


def test_results_while_recording(tmp_path):
    with profile() as prof:
        x + x
        assert names(prof) == ["aten::add"]
        assert prof.key_averages()[0].count == 1
        prof.export_chrome_trace(tmp_path / "t.json")
        x * x
    assert names(prof) == ["aten::add", "aten::mul"]
    assert "aten::add" in (tmp_path / "t.json").read_text()


def test_metadata_is_kept_whenever_it_was_added(tmp_path):
    prof = profile()
    prof.preset_metadata_json("planned", '{"a": [1, 2]}')
    prof.add_metadata("early", 'a "quoted" text')
    with prof:
        prof.add_metadata_json("inside", "[1, null]")
    prof.add_metadata("late", "3")
    prof.export_chrome_trace(tmp_path / "t.json")
    data = json.loads((tmp_path / "t.json").read_text())
    assert [data[k] for k in ("planned", "early", "inside", "late")] == [{"a": [1, 2]}, 'a "quoted" text', [1, None], "3"]


def test_metadata_must_be_json():
    prof = profile()
    with pytest.raises(ValueError):
        prof.add_metadata_json("key", "not json")
    with pytest.raises(TypeError):
        prof.add_metadata_json("key", 1)
    with pytest.raises(AttributeError):
        prof.add_metadata("key", 1)


# ------------------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"activities": 5}, TypeError),
        ({"activities": []}, AssertionError),
        ({"activities": ["CPU"]}, AssertionError),
        ({"activities": [ProfilerActivity.CPU, "CUDA"]}, TypeError),
        ({"activities": [ProfilerActivity.CPU] * 2}, ValueError),
        ({"activities": iter([ProfilerActivity.CPU])}, AssertionError),
        ({"schedule": 3}, TypeError),
        ({"schedule": lambda step: ProfilerAction.DEVICE_STOPPED}, ValueError),
        ({"experimental_config": 3}, AttributeError),
        ({"nonsense": 1}, TypeError),
    ],
)
def test_arguments_refused_at_once(arguments, error):
    with pytest.raises(error):
        profile(**arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"activities": [ProfilerActivity.CUDA]}, AssertionError),
        ({"record_shapes": "yes"}, TypeError),
        ({"record_shapes": None}, TypeError),
        ({"with_flops": None}, TypeError),
        ({"with_stack": "yes"}, TypeError),
        ({"profile_memory": "yes"}, TypeError),
        ({"with_modules": "yes"}, TypeError),
        ({"post_processing_timeout_s": -1}, ValueError),
        ({"post_processing_timeout_s": "soon"}, TypeError),
        ({"custom_trace_id_callback": 3}, TypeError),
        ({"custom_trace_id_callback": lambda: 3}, TypeError),
        ({"execution_trace_observer": 3}, AttributeError),
    ],
)
def test_arguments_refused_at_the_start(arguments, error):
    prof = profile(**arguments)
    with warnings.catch_warnings(), pytest.raises(error):
        warnings.simplefilter("ignore")
        prof.start()
    with profile() as later:
        x + x
    assert names(later) == ["aten::add"]


@pytest.mark.parametrize("arguments", [{"with_stack": None}, {"profile_memory": 2.5}, {"record_shapes": 1}])
def test_arguments_that_torch_takes(arguments):
    with profile(**arguments):
        x + x


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"verbose": "yes"}, TypeError),
        ({"profiler_metrics": 3}, TypeError),
        ({"nonsense": 1}, TypeError),
        ({"profiler_metrics": ["a"]}, NotImplementedError),
        ({"record_python_gc_info": True}, NotImplementedError),
    ],
)
def test_experimental_switches(arguments, error):
    with pytest.raises(error):
        _ExperimentalConfig(**arguments)


def test_trace_only_has_no_events(tmp_path):
    with profile(experimental_config=_ExperimentalConfig(trace_only=True)) as prof:
        x + x
    with pytest.raises(RuntimeError, match="trace_only"):
        prof.events()
    prof.export_chrome_trace(tmp_path / "t.json")
    assert "aten::add" in (tmp_path / "t.json").read_text()


def test_a_device_that_is_not_there_warns():
    with (
        pytest.warns(UserWarning, match="CUDA is not available"),
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof,
    ):
        x + x
    assert names(prof) == ["aten::add"] and prof.use_device == "cuda"


def test_toggling():
    cpu = [ProfilerActivity.CPU]
    with profile() as prof:
        x + x
        prof.toggle_collection_dynamic(False, cpu)
        with record_function("hidden"):
            x * x
        prof.toggle_collection_dynamic(False, [])
        prof.toggle_collection_dynamic(True, cpu)
        x - x
        with pytest.raises(TypeError):
            prof.toggle_collection_dynamic(False, "CPU")
    assert names(prof) == ["aten::add", "aten::sub"]


def test_trace_ids():
    ids = iter("abc")
    prof = profile(custom_trace_id_callback=lambda: next(ids))
    with prof:
        pass
    assert prof.get_trace_id() == "a"
    with profile() as other:
        pass
    assert len(other.get_trace_id()) == 32


def test_profiles_of_two_threads_do_not_meet():
    seen, inside, go = [], threading.Event(), threading.Event()

    def work():
        with profile() as prof:
            x + x
            inside.set()
            go.wait(120)
        seen.extend(names(prof))

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(120)
    with profile() as prof:
        x * x
    go.set()
    thread.join()
    assert seen == ["aten::add"] and names(prof) == ["aten::mul"]


@pytest.mark.parametrize("with_stack", [False, True])
def test_all_threads(with_stack):
    begun, go, done = threading.Event(), threading.Event(), threading.Event()

    def earlier():
        x + x
        begun.set()
        go.wait(120)
        with record_function("earlier"):
            x * x
        done.wait(120)

    def later():
        with record_function("later"):
            x - x

    old = threading.Thread(target=earlier)
    old.start()
    begun.wait(120)
    with profile(experimental_config=_ExperimentalConfig(profile_all_threads=True), with_stack=with_stack) as prof:
        go.set()
        x / x
        new = threading.Thread(target=later)
        new.start()
        new.join()
        while not [event for event in prof.events() if event.name == "earlier"]:
            pass
    done.set()
    old.join()
    shown = {event.name: event for event in prof.events()}
    assert len({shown[op].thread for op in ("aten::mul", "aten::sub", "aten::div")}) == 3
    ancestors = {op: [shown[op].cpu_parent and shown[op].cpu_parent.name] for op in ("aten::mul", "aten::sub")}
    assert ancestors == {"aten::mul": ["earlier"], "aten::sub": ["later"]}


# ------------------------------------------------------------------------------ record_function


def tree(prof):
    def node(event):
        return [event.name, *map(node, event.cpu_children)]

    return [node(event) for event in prof.events() if event.cpu_parent is None]


def test_labels_nest_and_end_when_the_body_raises():
    with profile() as prof, pytest.raises(KeyError), record_function("a"):
        x + x
        with record_function("b"):
            raise KeyError
    assert tree(prof) == [["a", ["aten::add"], ["b"]]]


def test_a_label_on_a_function():
    @record_function("down")
    def down(n):
        """Calls itself n times."""
        x + x
        return down(n - 1) if n else "bottom"

    with profile() as prof:
        assert down(1) == "bottom"
    assert tree(prof) == [["down", ["aten::add"]]] * 2
    assert (down.__name__, down.__doc__) == ("down", "Calls itself n times.")


def test_a_labeled_function_on_two_threads():
    met = threading.Barrier(2, timeout=120)
    profiles = []

    @record_function("both")
    def both():
        met.wait()
        x + x

    def work():
        with profile() as prof:
            both()
        profiles.append(prof)

    pair = [threading.Thread(target=work) for _ in range(2)]
    for thread in pair:
        thread.start()
    for thread in pair:
        thread.join()
    assert [tree(prof) for prof in profiles] == [[["both", ["aten::add"]]]] * 2


@pytest.mark.parametrize("arguments", [(5,), (None,), ("a", 5)])
def test_bad_labels_are_refused_on_entering(arguments):
    label = record_function(*arguments)
    with pytest.raises(RuntimeError):
        label.__enter__()


def test_leaving_without_entering():
    with pytest.raises(AssertionError, match="Expected record to be set"):
        record_function("n").__exit__(None, None, None)


# ------------------------------------------------------------------------------ TensorBoard


def test_trace_handler_names_files_for_tensorboard(tmp_path):
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), "w", use_gzip=True)):
        x + x
    (name,) = [path.name for path in (tmp_path / "log").iterdir()]
    worker, number, *rest = name.split(".")
    assert worker == "w" and number.isdigit() and rest == ["pt", "trace", "json", "gz"]


def test_trace_handler_with_an_impossible_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with profile() as prof:
        pass
    with pytest.raises(RuntimeError, match="Can't create directory"):
        tensorboard_trace_handler(str(tmp_path / "file" / "sub"))(prof)


# ------------------------------------------------------------------------------ arguments of the wrong kind


@pytest.mark.parametrize("path", [None, 5, 2.5, ["x"], {}])
def test_what_is_no_path(path):
    with profile() as prof:
        x + x
    with pytest.raises(AttributeError):
        prof.export_chrome_trace(path)
    with pytest.raises(AttributeError):
        torch.profiler.ExecutionTraceObserver().register_callback(path)


def test_paths_of_bytes(tmp_path):
    with profile(with_stack=True) as prof:
        x + x
    prof.export_stacks(str(tmp_path / "stacks").encode())
    prof.events().export_chrome_trace(str(tmp_path / "trace").encode())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["stacks", "trace"]


@pytest.mark.parametrize("callback", ["", {}, 0, None])
def test_a_callback_that_is_nothing_is_none(callback):
    with profile(custom_trace_id_callback=callback) as prof:
        x + x
    assert len(prof.get_trace_id()) == 32


def test_metadata_of_the_wrong_kind():
    with profile() as prof:
        for value, error in ((5, AttributeError), (None, AttributeError), (b"x", TypeError)):
            with pytest.raises(error):
                prof.add_metadata("key", value)


@pytest.mark.parametrize("name", ["profiler_metrics", "performance_events"])
def test_metrics_must_be_text(name):
    for value in ([1], "x", 5, b"x"):
        with pytest.raises(TypeError):
            _ExperimentalConfig(**{name: value})


@pytest.mark.parametrize("arguments", [{"max_shapes_column_width": "x"}, {"max_name_column_width": "x"}])
def test_widths_must_be_numbers(arguments):
    with profile() as prof:
        x + x
    with pytest.raises(TypeError):
        prof.key_averages().table(**arguments)
    assert prof.key_averages().table(time_unit=[]) == prof.key_averages().table()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"record_shapes": True},
        {"profile_memory": True},
        {"with_stack": True},
        {"with_modules": True},
        {"schedule": plan(wait=0, warmup=0, active=1)},
    ],
)
def test_a_profile_that_is_dropped_is_gone_at_once(options):
    """A recording may be large, and the garbage collector may not come by for long."""

    def recorded():
        x = torch.ones(3)
        with profile(**options) as prof:
            (x + x).detach()
            with record_function("same"), record_function("same"):
                pass
        prof.key_averages().table()
        assert prof.profiler.store.visible is not prof.profiler.store
        return weakref.ref(prof), weakref.ref(prof.profiler.store)

    gc.collect()
    gc.disable()
    try:
        assert [reference() for reference in recorded()] == [None, None]
    finally:
        gc.enable()
