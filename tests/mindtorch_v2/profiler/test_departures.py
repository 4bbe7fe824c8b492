"""Where torch's profiler is broken and this one does better: each test shows the better behavior."""

from __future__ import annotations

import gzip
import json

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._dispatch import observer
from mindtorch_v2.autograd import profiler as autograd_profiler
from mindtorch_v2.profiler import DeviceType, ProfilerAction, profile, record_function, schedule
from mindtorch_v2.profiler.store.store import EventStore
from mindtorch_v2.profiler.views.event_list import EventList

x = torch.ones(4, 4)


def trace_of(prof, tmp_path, name="trace.json"):
    prof.export_chrome_trace(str(tmp_path / name))
    return json.loads((tmp_path / name).read_text())


def spans(trace, **wanted):
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and all(e.get(k) == v for k, v in wanted.items())]


def names(prof):
    return [event.name for event in prof.events()]


@pytest.fixture
def one_add():
    with profile() as prof:
        x + x
    return prof


# ------------------------------------------------------------------------------ exporting


def test_exporting_again_just_works(one_add, tmp_path):
    first = trace_of(one_add, tmp_path, "first.json")
    second = trace_of(one_add, tmp_path, "second.json")
    one_add.export_chrome_trace(str(tmp_path / "third.json.gz"))
    third = json.loads(gzip.decompress((tmp_path / "third.json.gz").read_bytes()))
    assert first["traceEvents"] == second["traceEvents"] == third["traceEvents"]
    assert spans(first, name="aten::add")


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_missing_folder_is_an_error_that_names_the_path(one_add, tmp_path, name):
    path = str(tmp_path / "missing" / name)
    with pytest.raises(FileNotFoundError) as caught:
        one_add.export_chrome_trace(path)
    assert caught.value.filename == path
    assert not list(tmp_path.iterdir())


def test_a_failed_export_leaves_the_file_that_was_there(one_add, tmp_path, monkeypatch):
    path = tmp_path / "trace.json"
    path.write_text("before")
    monkeypatch.setattr("json.dumps", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        one_add.export_chrome_trace(str(path))
    assert [p.name for p in tmp_path.iterdir()] == ["trace.json"] and path.read_text() == "before"


def test_paths_may_be_objects(one_add, tmp_path):
    one_add.export_chrome_trace(tmp_path / "trace.json")
    assert spans(json.loads((tmp_path / "trace.json").read_text()), name="aten::add")


@pytest.mark.parametrize("label", ["back\\slash", "new\nline", 'double "quotes"', "tab\t", "größer ≥ 漢字", "\x00\x1f"])
def test_every_name_is_written_as_it_is(label, tmp_path):
    with profile() as prof, record_function(label):
        x + x
    prof.add_metadata("said", label)
    trace = trace_of(prof, tmp_path)
    assert [e["name"] for e in spans(trace, cat="user_annotation")] == [label]
    assert trace["said"] == label


def test_all_process_and_thread_numbers_are_numbers(tmp_path):
    plan = schedule(wait=0, warmup=1, active=1)
    with profile(schedule=plan, profile_memory=True, with_stack=True) as prof:
        for _ in range(2):
            x + x
            prof.step()
    events = trace_of(prof, tmp_path)["traceEvents"]
    tail = ["PyTorch Profiler (0)", "Iteration Start: PyTorch Profiler", "Record Window End", "process_sort_index"]
    assert set(tail) <= {e["name"] for e in events}
    assert all(type(e["pid"]) is int and type(e["tid"]) is int for e in events)


def test_export_while_recording_writes_what_there_is(tmp_path):
    with profile() as prof:
        x + x
        so_far = trace_of(prof, tmp_path)
        x * x
    assert [e["name"] for e in spans(so_far, cat="cpu_op")] == ["aten::add"]
    assert [e["name"] for e in spans(trace_of(prof, tmp_path), cat="cpu_op")] == ["aten::add", "aten::mul"]


def test_metadata_is_kept_whenever_it_is_given(tmp_path):
    prof = profile()
    prof.add_metadata("before", "start")
    with prof:
        prof.add_metadata("while", "recording")
    prof.add_metadata_json("after", '{"stop": [1]}')
    trace = trace_of(prof, tmp_path)
    assert (trace["before"], trace["while"], trace["after"]) == ("start", "recording", {"stop": [1]})


# ------------------------------------------------------------------------------ modules and stacks


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, value):
        return self.layer(value)


def test_with_modules_alone_tells_the_module_of_every_op(tmp_path):
    net = Net()
    with profile(with_modules=True) as prof:
        net(x).sum().backward()
        x * x
    module = {event.name: event["module"] for event in prof.events()}
    assert module["aten::addmm"] == module["AddmmBackward0"] == "Net.layer"
    assert module["aten::mul"] is None
    trace = trace_of(prof, tmp_path)
    assert trace["with_modules"] == 1
    assert {e["args"].get("Module Hierarchy") for e in spans(trace, name="aten::addmm")} == {"Net.layer"}


def test_with_stack_alone_fills_stacks(tmp_path):
    def caller():
        return x + x

    with profile(with_stack=True) as prof:
        caller()
    (add,) = [event for event in prof.events() if event.name == "aten::add"]
    assert add.stack[0].endswith("): caller") and "test_departures.py" in add.stack[0]
    grouped = prof.key_averages(group_by_stack_n=1)
    assert any(row.key == "aten::add" and row.stack and row.stack[0].endswith("): caller") for row in grouped)


def test_with_stack_alone_is_enough_for_export_stacks(tmp_path):
    def caller():
        for _ in range(200):
            x + x

    with profile(with_stack=True) as prof:
        caller()
    prof.export_stacks(tmp_path / "stacks.txt", "self_cpu_time_total")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines
    frames, value = max(lines, key=len).rsplit(" ", 1)
    assert int(value) > 0 and frames.split(";")[-1].endswith(":_caller")


# ------------------------------------------------------------------------------ nothing recorded is dropped


def test_starting_again_keeps_the_recording():
    prof = profile()
    prof.start()
    x + x
    prof.start()
    x * x
    prof.stop()
    assert names(prof) == ["aten::add", "aten::mul"]


def test_a_second_stop_changes_nothing():
    ready = []
    prof = profile(on_trace_ready=ready.append)
    prof.start()
    x + x
    prof.stop()
    prof.stop()
    assert names(prof) == ["aten::add"] and ready == [prof]


def test_stop_inside_with_keeps_the_result():
    with profile() as prof:
        x + x
        prof.stop()
        x * x
    assert names(prof) == ["aten::add"]


@pytest.mark.parametrize("make", [profile, autograd_profiler.profile], ids=["profiler", "autograd"])
def test_nested_profiles_each_get_their_events(make):
    with profile() as outer:
        x + x
        with make() as inner:
            x * x
        x - x
    assert names(outer) == ["aten::add", "aten::mul", "aten::sub"]
    assert [event.name for event in (inner.events() if make is profile else inner.function_events)] == ["aten::mul"]


def test_results_while_recording_are_those_so_far():
    with profile() as prof:
        x + x
        assert names(prof) == ["aten::add"]
        assert [row.key for row in prof.key_averages()] == ["aten::add"]
        x * x
    assert names(prof) == ["aten::add", "aten::mul"]


def test_a_failing_handler_does_not_harm_the_next_window():
    windows = []

    def handler(prof):
        windows.append(names(prof))
        if len(windows) == 1:
            raise OSError("disk full")

    plan = [ProfilerAction.RECORD_AND_SAVE, ProfilerAction.WARMUP, ProfilerAction.RECORD_AND_SAVE, ProfilerAction.NONE]
    prof = profile(schedule=plan.__getitem__, on_trace_ready=handler)
    prof.start()
    x + x
    with pytest.raises(OSError, match="disk full"):
        prof.step()
    prof.step()
    x * x
    prof.step()
    prof.stop()
    ops = [[name for name in window if name.startswith("aten")] for window in windows]
    assert ops == [["aten::add"], ["aten::mul"]]


# ------------------------------------------------------------------------------ tables, FLOPs, devices


def test_flops_and_memory_fit_in_one_table():
    kept = [x + x]
    with profile(with_flops=True, profile_memory=True) as prof:
        kept.append(x + x)
        kept.clear()
    assert "[memory]" in names(prof)
    text = prof.events().table()
    assert "FLOPs" in text and "[memory]" in text


def test_arithmetic_has_formulas_and_the_rest_is_named():
    with profile(with_flops=True) as prof:
        x - x
        x / x
        x.view(16)
    flops = {row.key: row.flops for row in prof.key_averages()}
    assert flops["aten::sub"] == flops["aten::div"] == 16
    assert prof.ops_without_flops() == ["aten::view"]
    with profile() as plain:
        x - x
    with pytest.raises(ValueError, match="with_flops=True required"):
        plain.ops_without_flops()


def test_device_types_are_text():
    assert DeviceType.CPU == "CPU" and isinstance(DeviceType.CPU, str)
    assert DeviceType.CUDA.name == "CUDA"


# ------------------------------------------------------------------------------ table


@pytest.mark.parametrize("make", [profile, autograd_profiler.profile])
def test_the_number_of_events_stands_above_torchs_footer(make):
    with make() as prof:
        x + x
        x * x
    for table in (prof.key_averages().table(), (prof.events() if make is profile else prof).table()):
        *_, rule, count, footer, end = table.split("\n")
        assert (set(rule), count, footer[:21], end) == ({"-", " "}, "Total Event Count: 2", "Self CPU time total: ", "")


def test_device_time_per_stack_is_counted_once(tmp_path):
    """torch writes what ran on a device twice: with the op that launched it and with the kernel."""
    rows = [
        {"name": "aten::mm", "start": 0, "end": 9000, "stack": ("f.py(1): f",)},
        {
            "name": "MatMul",
            "start": 10_000,
            "end": 50_000,
            "stream": 7,
            "device_type": 1,
            "device_index": 0,
            "kind": observer.KERNEL,
            "launch_thread": 1,
            "launch_ns": 5000,
        },
    ]
    events = EventList.from_store(EventStore.from_rows(rows, options={"use_device": "cuda"}))
    events.export_stacks(tmp_path / "stacks.txt", "self_cuda_time_total")
    assert (tmp_path / "stacks.txt").read_text() == "f.py(1):_f 40\n"
