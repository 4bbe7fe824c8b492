"""What ran on a device, in every view: made-up kernels with exact times."""

from __future__ import annotations

import json

import pytest

from mindtorch_v2._dispatch.observer import COPY, FILL, KERNEL, MODULE, PYTHON, RUNTIME, SCOPE
from mindtorch_v2.profiler.exporters import chrome, stacks
from mindtorch_v2.profiler.store.store import EventStore
from mindtorch_v2.profiler.views.averages import average_events
from mindtorch_v2.profiler.views.event_factory import KINDS
from mindtorch_v2.profiler.views.event_list import EventList
from mindtorch_v2.profiler.views.events import DeviceType, Kernel

NPU, CUDA = 20, 1
DRIVER_CALLS = {NPU: "privateuse1_runtime", CUDA: "cuda_runtime"}


def row(name, start, end, **more):
    """A row in microseconds."""
    return {"name": name, "start": start * 1000, "end": end * 1000, "thread": 77, **more}


def launched(name, start, end, at, correlation=-1, kind=KERNEL, device=0, stream=7, type=NPU, thread=77):
    return {
        "name": name,
        "start": start * 1000,
        "end": end * 1000,
        "kind": kind,
        "device_type": type,
        "device_index": device,
        "stream": stream,
        "launch_thread": thread,
        "launch_ns": at * 1000,
        "correlation": correlation,
    }


def training_step(type=NPU):
    """linear calls addmm, which launches a copy and a kernel; relu launches one; a label launches a fill by itself."""
    return [
        row("launchKernel", 12, 14, kind=RUNTIME, correlation=101),
        row("aten::addmm", 10, 20, stack=("model.py(3): forward",), module="net.0"),
        row("aten::linear", 5, 25, stack=("model.py(3): forward",), seq=4),
        row("launchKernel", 32, 33, kind=RUNTIME, correlation=102),
        row("aten::relu", 30, 36, stack=("model.py(4): forward",)),
        row("label", 0, 60, kind=SCOPE),
        row("synchronize", 70, 95, kind=RUNTIME, correlation=104),
        launched("copy", 16, 19, 13, kind=COPY, type=type, stream=8),
        launched("MatMul", 20, 60, 13, 101, type=type),
        launched("Relu", 60, 90, 32, 102, type=type),
        launched("zero", 90, 92, 50, 103, kind=FILL, type=type),
    ]


def store_of(rows, memory=(), use_device="npu", **options):
    return EventStore.from_rows(rows, memory, pid=42, options={"use_device": use_device, **options})


def events_of(*args, **kwargs):
    return EventList.from_store(store_of(*args, **kwargs))


def named(events, name):
    return next(event for event in events if event.name == name)


# ------------------------------------------------------------------------------ events


@pytest.mark.parametrize(("type", "device"), [(NPU, "npu"), (CUDA, "cuda")])
def test_a_device_event_says_where_it_ran_and_who_launched_it(type, device):
    events = events_of(training_step(type), use_device=device)
    kernel, op, call = named(events, "MatMul"), named(events, "aten::addmm"), named(events, "launchKernel")
    assert kernel.device_type == DeviceType(type) == {NPU: "NPU", CUDA: "CUDA"}[type]
    assert (kernel.device_index, kernel.device_resource_id, kernel.use_device) == (0, 7, device)
    assert (kernel.id, kernel.external_id, kernel.linked_correlation_id) == (101, op.id, op.id)
    assert (call.id, call.external_id, call.linked_correlation_id) == (101, op.id, op.id)
    assert (op.external_id, op.linked_correlation_id) == (op.id, 0)
    assert kernel.thread == op.thread
    assert (kernel.is_async, kernel.is_user_annotation, kernel.is_legacy, kernel.scope) == (False, False, False, 0)
    assert (kernel.cpu_parent, kernel.cpu_children, kernel.sequence_nr) == (None, [], -1)
    assert (kernel.cpu_time_total, kernel.self_cpu_time_total) == (0, 0)
    assert (kernel.device_time_total, kernel.self_device_time_total, kernel.device_time) == (40, 40, 40)
    assert kernel.stack == ["model.py(3): forward"]
    assert kernel["module"] == "net.0"
    assert (kernel["kind"], kernel["device_type"], kernel["thread_id"]) == ("kernel", DeviceType(type), 7)
    assert [named(events, name).activity_type for name in ("MatMul", "copy", "zero", "launchKernel", "aten::addmm")] == [
        "kernel",
        "gpu_memcpy",
        "gpu_memset",
        DRIVER_CALLS[type],
        "cpu_op",
    ]
    assert (kernel.flow_id, kernel.flow_type, kernel.flow_start) == (101, 2, False)
    assert (call.flow_id, call.flow_type, call.flow_start) == (101, 2, True)


def test_ops_know_the_kernels_that_they_launched():
    events = events_of(training_step())
    assert named(events, "aten::addmm").kernels == [Kernel("copy", 0, 3.0), Kernel("MatMul", 0, 40.0)]
    assert named(events, "aten::linear").kernels == []
    assert named(events, "label").kernels == [Kernel("zero", 0, 2.0)]
    assert [(e.name, e.device_time_total, e.self_device_time_total) for e in events if e.device_type == "CPU"] == [
        ("label", 75, 2),
        ("aten::linear", 43, 0),
        ("aten::addmm", 43, 43),
        ("launchKernel", 0, 0),
        ("aten::relu", 30, 30),
        ("launchKernel", 0, 0),
        ("synchronize", 0, 0),
    ]


def test_events_taken_apart_from_their_recording_keep_their_device_time():
    events = events_of(training_step())
    before = [(e.name, e.device_time_total, e.self_device_time_total) for e in events]
    for event in events:
        event.count = 1  # assigning to it makes it stand alone
    assert [(e.name, e.device_time_total, e.self_device_time_total) for e in events] == before


def test_metadata_when_asked():
    events = events_of(training_step(), expose_kineto_event_metadata=True)
    kernel, copy, op = named(events, "MatMul"), named(events, "copy"), named(events, "aten::addmm")
    assert kernel.metadata_json == '"device": 0, "stream": 7, "correlation": 101' and kernel.event_metadata.stream == 7
    assert copy.metadata_json == '"device": 0, "stream": 8'
    assert op.metadata_json == '"Ev Idx": 2' and op.event_metadata is None
    assert named(events_of(training_step()), "MatMul").metadata_json == ""


def test_calls_of_the_runtime_are_children_of_their_op():
    events = events_of(training_step())
    op = named(events, "aten::addmm")
    assert [(child.name, child.device_type) for child in op.cpu_children] == [("launchKernel", "CPU")]
    assert (op.cpu_time_total, op.self_cpu_time_total) == (10, 8)


def test_without_a_device_in_the_session_there_is_no_device_time():
    events = events_of(training_step(), use_device=None)
    assert {(e.device_time_total, e.self_device_time_total) for e in events} == {(0, 0)}
    assert events.key_averages().total_average().device_time_total == 0


def test_what_an_only_namesake_launched_is_lifted_up():
    events = events_of([row("op", 5, 9), row("op", 0, 10), launched("k", 20, 30, 7)])
    assert [(e.name, e.kernels, e.device_time_total) for e in events] == [("op", [Kernel("k", 0, 10.0)], 10), ("k", [], 10)]


def test_work_whose_launch_nobody_saw_belongs_to_no_op():
    rows = [row("op", 0, 10), {**launched("k", 2, 9, 5), "launch_thread": None, "launch_ns": -1}]
    op, kernel = events_of(rows)
    assert (op.kernels, op.device_time_total) == ([], 0)
    assert (kernel.linked_correlation_id, kernel.device_time_total, kernel["module"]) == (0, 7, None)


def test_launches_are_found_on_their_own_thread():
    events = events_of([row("a", 0, 10, thread=1), row("b", 1, 10, thread=2), launched("k", 20, 30, 5, thread=2)])
    assert [(e.name, len(e.kernels)) for e in events] == [("a", 0), ("b", 1), ("k", 0)]


def test_python_calls_launch_nothing_themselves():
    rows = [
        row("f.py(1): f", 4, 8, kind=PYTHON),
        row("nn.Module: M_0", 3, 9, kind=MODULE),
        row("op", 0, 10),
        launched("k", 20, 30, 5),
    ]
    assert [(e.name, len(e.kernels)) for e in events_of(rows)] == [
        ("op", 1),
        ("nn.Module: M_0", 0),
        ("f.py(1): f", 0),
        ("k", 0),
    ]


def test_recordings_joined_keep_their_launches():
    old, new = store_of(training_step()), store_of([row("aten::mul", 0, 9), launched("Mul", 10, 14, 5, 201)])
    events = EventList.from_store(EventStore.joined([new, old]))
    assert named(events, "aten::mul").kernels == [Kernel("Mul", 0, 4.0)]
    assert named(events, "aten::addmm").device_time_total == 43
    assert named(events, "Relu").linked_correlation_id == named(events, "aten::relu").id


def test_every_kind_has_a_name():
    assert KINDS[KERNEL:] == ("kernel", "copy", "fill", "runtime", "first_use")


# ------------------------------------------------------------------------------ memory

MEMORY = [
    {"time": 11_000, "bytes": 4096, "addr": 1, "thread": 77, "device_type": NPU, "device_index": 0},
    {"time": 15_000, "bytes": 100, "addr": 2, "thread": 77},
    {"time": 99_000, "bytes": -4096, "addr": 1, "thread": 77, "device_type": NPU, "device_index": 0},
]


def test_memory_of_the_device_is_charged_to_ops():
    events = events_of(training_step(), MEMORY, profile_memory=True)
    op, outer, freed = named(events, "aten::addmm"), named(events, "aten::linear"), named(events, "[memory]")
    assert (op.device_memory_usage, op.self_device_memory_usage, op.cpu_memory_usage) == (4096, 4096, 100)
    assert (outer.device_memory_usage, outer.self_device_memory_usage) == (4096, 0)
    assert (freed.device_type, freed.device_index) == ("CPU", 0)
    assert (freed.self_device_memory_usage, freed.self_cpu_memory_usage) == (-4096, 0)


# ------------------------------------------------------------------------------ averages and table


def test_averages_of_ops_and_of_kernels():
    rows = events_of(training_step()).key_averages()
    assert [(r.key, r.device_type, r.count, r.device_time_total, r.self_device_time_total, r.cpu_time_total) for r in rows] == [
        ("label", "CPU", 1, 75, 2, 60),
        ("aten::linear", "CPU", 1, 43, 0, 20),
        ("aten::addmm", "CPU", 1, 43, 43, 10),
        ("launchKernel", "CPU", 2, 0, 0, 3),
        ("copy", "NPU", 1, 3, 3, 0),
        ("MatMul", "NPU", 1, 40, 40, 0),
        ("aten::relu", "CPU", 1, 30, 30, 6),
        ("Relu", "NPU", 1, 30, 30, 0),
        ("synchronize", "CPU", 1, 0, 0, 25),
        ("zero", "NPU", 1, 2, 2, 0),
    ]
    assert {r.use_device for r in rows} == {"npu"}
    assert rows.self_cpu_time_total == 85  # the label's 60 and the synchronisation's 25


@pytest.mark.parametrize("arguments", [(False, 0, False), (True, 0, False), (False, 1, False), (True, 2, True)])
def test_columns_and_event_objects_give_the_same_averages(arguments):
    events = events_of(training_step(), MEMORY)
    by_columns, by_objects = events.key_averages(*arguments), average_events(list(events), *arguments)
    assert [vars(r) for r in by_columns] == [vars(r) for r in by_objects]
    assert events.total_average().self_device_time_total == 150


def test_an_op_and_a_kernel_of_one_name_are_two_rows():
    events = events_of([row("same", 0, 10), launched("same", 20, 30, 5)])
    assert [(r.key, r.device_type) for r in events.key_averages()] == [("same", "CPU"), ("same", "NPU")]


@pytest.mark.parametrize(
    "key",
    [
        "self_npu_time_total",
        "self_cuda_time_total",
        "self_device_time_total",
        "self_privateuse1_time_total",
        "self_xpu_time_total",
    ],
)
def test_sorted_by_device_time(key):
    text = events_of(training_step()).key_averages().table(sort_by=key, row_limit=4)
    assert [line.split()[0] for line in text.split("\n")[3:7]] == ["aten::addmm", "MatMul", "aten::relu", "Relu"]


@pytest.mark.parametrize("key", ["npu_time_total", "cuda_time_total", "device_time_total", "npu_time", "device_time"])
def test_sorted_by_total_device_time(key):
    text = events_of(training_step()).key_averages().table(sort_by=key, row_limit=2)
    assert [line.split()[0] for line in text.split("\n")[3:5]] == ["label", "aten::linear"]


@pytest.mark.parametrize("key", ["npu_memory_usage", "self_npu_memory_usage", "self_device_memory_usage"])
def test_sorted_by_device_memory(key):
    text = events_of(training_step(), MEMORY, profile_memory=True).key_averages().table(sort_by=key)
    first = "aten::linear" if key == "npu_memory_usage" else "aten::addmm"
    assert first in [line.split()[0] for line in text.split("\n")[3:6]]


def test_sorting_by_shapes_is_not_about_a_device():
    events = events_of(training_step())
    assert events.key_averages().table(sort_by="input_shapes") == events.key_averages().table()


TITLES = (
    "Self CPU %",
    "Self CPU",
    "CPU total %",
    "CPU total",
    "CPU time avg",
    "Self NPU",
    "Self NPU %",
    "NPU total",
    "NPU time avg",
    "CPU Mem",
    "Self CPU Mem",
    "NPU Mem",
    "Self NPU Mem",
    "# of Calls",
)


def test_exact_table():
    rows = [row("aten::relu", 30, 40), launched("Relu", 60, 90, 32, 102)]
    memory = [{"time": 31_000, "bytes": 2048, "thread": 77, "device_type": NPU, "device_index": 0}]
    rule = "--------------  " + "------------  " * 14
    cells = (
        (
            "aten::relu",
            "100.00%",
            "10.000us",
            "100.00%",
            "10.000us",
            "10.000us",
            "30.000us",
            "100.00%",
            "30.000us",
            "30.000us",
            "0 B",
            "0 B",
            "2.00 KB",
            "2.00 KB",
            "1",
        ),
        (
            "Relu",
            "0.00%",
            "0.000us",
            "0.00%",
            "0.000us",
            "0.000us",
            "30.000us",
            "100.00%",
            "30.000us",
            "30.000us",
            "0 B",
            "0 B",
            "0 B",
            "0 B",
            "1",
        ),
    )

    def line(name, *values):
        return f"{name:>14}  " + "".join(f"{value:>12}  " for value in values)

    events = events_of(rows, memory, profile_memory=True)
    expected = [
        rule,
        line("Name", *TITLES),
        rule,
        *(line(*each) for each in cells),
        rule,
        "Total Event Count: 2",
        "Self CPU time total: 10.000us",
        "Self NPU time total: 30.000us",
        "",
    ]
    assert events.key_averages().table().split("\n") == expected
    assert events.table().split("\n") == expected


def test_device_columns_are_there_only_if_something_ran_on_the_device():
    table = events_of([row("op", 0, 10)]).table()
    assert "NPU" not in table


# ------------------------------------------------------------------------------ stacks


@pytest.mark.parametrize("metric", ["self_privateuse1_time_total", "self_cuda_time_total", "self_xpu_time_total"])
def test_device_time_per_stack_counts_everything_once(tmp_path, metric):
    expected = {"model.py(3):_forward": 43, "model.py(4):_forward": 30}
    for number, write in enumerate(
        (
            lambda path: stacks.export(store_of(training_step()), path, metric=metric),
            lambda path: events_of(training_step()).export_stacks(path, metric),
            lambda path: events_of(training_step()).key_averages(group_by_stack_n=3).export_stacks(path, metric),
        )
    ):
        path = tmp_path / str(number)
        write(path)
        found: dict[str, int] = {}
        for line in path.read_text().splitlines():
            stack, value = line.rsplit(" ", 1)
            found[stack] = found.get(stack, 0) + int(value)
        assert found == expected


def test_cpu_time_per_stack_leaves_the_device_out(tmp_path):
    stacks.export(store_of(training_step()), tmp_path / "s")
    assert (tmp_path / "s").read_text() == ("model.py(3):_forward 10\nmodel.py(3):_forward 8\nmodel.py(4):_forward 5\n")


# ------------------------------------------------------------------------------ trace


def trace(tmp_path, rows, **more):
    chrome.export(store_of(rows, **more), tmp_path / "t.json")
    return json.loads((tmp_path / "t.json").read_text())["traceEvents"]


@pytest.mark.parametrize(("type", "label"), [(NPU, "NPU 0"), (CUDA, "GPU 0")])
def test_a_device_is_a_process_and_a_stream_a_lane(tmp_path, type, label):
    events = trace(tmp_path, training_step(type))
    named = [(e["name"], e["pid"], e["tid"], *e["args"].values()) for e in events if e["ph"] == "M"]
    assert named == [
        ("process_name", 42, 0, "python"),
        ("process_labels", 42, 0, "CPU"),
        ("process_sort_index", 42, 0, 42),
        ("thread_name", 42, 77, "thread 77 (thread 77)"),
        ("thread_sort_index", 42, 77, 77),
        ("process_name", 0, 0, "python"),
        ("process_labels", 0, 0, label),
        ("process_sort_index", 0, 0, 5_000_000),
        ("thread_name", 0, 7, "stream 7"),
        ("thread_sort_index", 0, 7, 7),
        ("thread_name", 0, 8, "stream 8"),
        ("thread_sort_index", 0, 8, 8),
        ("process_sort_index", 1, 0, 0x20000000),
    ]


@pytest.mark.parametrize("type", [NPU, CUDA])
def test_device_rows_field_by_field(tmp_path, type):
    events = trace(tmp_path, training_step(type))
    ids = {e["name"]: e["args"]["External id"] for e in events if e.get("cat") in ("cpu_op", "user_annotation")}
    assert ids == {"label": 1, "aten::linear": 2, "aten::addmm": 3, "aten::relu": 4}
    of_device = [e for e in events if e["ph"] == "X" and e["cat"] not in ("cpu_op", "user_annotation", "Trace")]
    for event in of_device:
        del event["ph"]
    call = DRIVER_CALLS[type]
    base = {"pid": 0, "tid": 7}
    assert of_device == [
        {
            "cat": call,
            "name": "launchKernel",
            "pid": 42,
            "tid": 77,
            "ts": 12,
            "dur": 2,
            "args": {"External id": 3, "correlation": 101},
        },
        {
            "cat": "gpu_memcpy",
            "name": "copy",
            "pid": 0,
            "tid": 8,
            "ts": 16,
            "dur": 3,
            "args": {"External id": 3, "device": 0, "stream": 8},
        },
        {
            "cat": "kernel",
            "name": "MatMul",
            **base,
            "ts": 20,
            "dur": 40,
            "args": {"External id": 3, "device": 0, "stream": 7, "correlation": 101},
        },
        {
            "cat": call,
            "name": "launchKernel",
            "pid": 42,
            "tid": 77,
            "ts": 32,
            "dur": 1,
            "args": {"External id": 4, "correlation": 102},
        },
        {
            "cat": "kernel",
            "name": "Relu",
            **base,
            "ts": 60,
            "dur": 30,
            "args": {"External id": 4, "device": 0, "stream": 7, "correlation": 102},
        },
        {"cat": call, "name": "synchronize", "pid": 42, "tid": 77, "ts": 70, "dur": 25, "args": {"correlation": 104}},
        {
            "cat": "gpu_memset",
            "name": "zero",
            **base,
            "ts": 90,
            "dur": 2,
            "args": {"External id": 1, "device": 0, "stream": 7, "correlation": 103},
        },
    ]
    assert [e["args"]["Ev Idx"] for e in events if "Ev Idx" in e.get("args", {})] == [0, 1, 2, 3]


def test_arrows_lead_from_launches_to_what_they_launched(tmp_path):
    flows = [e for e in trace(tmp_path, training_step()) if e["ph"] in "sf"]
    assert {(e["cat"], e["name"]) for e in flows} == {("ac2g", "ac2g")}
    assert sorted((e["ph"], e["id"], e["pid"], e["tid"], e["ts"], e.get("bp")) for e in flows) == [
        ("f", 101, 0, 7, 20, "e"),
        ("f", 102, 0, 7, 60, "e"),
        ("f", 103, 0, 7, 90, "e"),
        ("f", 105, 0, 8, 16, "e"),
        # a launch without a call of the runtime begins inside its op
        ("s", 101, 42, 77, 12, None),
        ("s", 102, 42, 77, 32, None),
        ("s", 103, 42, 77, 50, None),
        ("s", 105, 42, 77, 13, None),
    ]


def test_each_kernel_of_one_launch_has_an_arrow_of_its_own(tmp_path):
    rows = [
        row("launchGraph", 2, 4, kind=RUNTIME, correlation=9),
        row("op", 0, 10),
        launched("a", 20, 30, 3, 9),
        launched("b", 30, 40, 3, 9),
    ]
    flows = [e for e in trace(tmp_path, rows) if e["ph"] in "sf"]
    ends = {e["id"]: e["ts"] for e in flows if e["ph"] == "f"}
    assert sorted(ends.values()) == [20, 30]
    assert {e["id"]: e["ts"] for e in flows if e["ph"] == "s"} == dict.fromkeys(ends, 2) and len(flows) == 4


def test_two_devices_are_two_processes(tmp_path):
    rows = [row("op", 0, 10), launched("a", 20, 30, 3), launched("b", 21, 30, 4, device=1)]
    events = trace(tmp_path, rows)
    assert [(e["name"], e["pid"], e["tid"]) for e in events if e.get("cat") == "kernel"] == [("a", 0, 7), ("b", 1, 7)]
    assert [e["pid"] for e in events if e["name"] == "Iteration Start: PyTorch Profiler"] == [2]


def test_calls_of_a_runtime_without_device_rows(tmp_path):
    events = trace(tmp_path, [row("synchronize", 2, 4, kind=RUNTIME), row("op", 0, 10)])
    assert [(e["cat"], e["name"]) for e in events if e["ph"] == "X"] == [
        ("cpu_op", "op"),
        ("privateuse1_runtime", "synchronize"),
        ("Trace", "PyTorch Profiler (0)"),
    ]


def test_the_short_trace_of_a_list(tmp_path):
    events_of(training_step(), MEMORY, profile_memory=True).export_chrome_trace(tmp_path / "t.json")
    entries = json.loads((tmp_path / "t.json").read_text())
    assert {entry["pid"] for entry in entries if entry["ph"] == "X"} == {"CPU functions", "NPU functions"}
    assert [(e["name"], e["id"], e["cat"], e["pid"]) for e in entries if e["ph"] == "s"] == [
        ("label", 0, "cpu_to_npu", "CPU functions"),
        ("aten::addmm", 1, "cpu_to_npu", "CPU functions"),
        ("aten::addmm", 2, "cpu_to_npu", "CPU functions"),
        ("aten::relu", 3, "cpu_to_npu", "CPU functions"),
    ]
    assert "[memory]" not in {entry["name"] for entry in entries}


def test_a_label_on_the_device_covers_kernels_and_adds_nothing():
    rows = [row("label", 0, 10, kind=SCOPE), launched("k", 20, 30, 5), launched("label", 19, 31, 0, kind=SCOPE)]
    events = events_of(rows)
    assert events[0].kernels == [Kernel("k", 0, 10.0)]
    assert (events[1].activity_type, events[1].is_user_annotation) == ("gpu_user_annotation", True)
    assert events.table().endswith("Self NPU time total: 10.000us\n")


def test_many_kernels_of_many_ops_add_up():
    rows, at = [], 0
    for number in range(5000):
        rows += [row(f"aten::op{number % 7}", at, at + 5), launched(f"k{number % 3}", at + 6, at + 9, at + 2, number)]
        at += 10
    store = store_of(rows)
    events = EventList.from_store(store)
    averages = events.key_averages()
    assert sum(r.self_device_time_total for r in averages if r.device_type == "CPU") == 15_000
    assert sum(r.self_device_time_total for r in averages if r.device_type == "NPU") == 15_000
    assert store.linked[store.device_type != 0].min() >= 0
