"""FunctionEvent and the list of events, made by hand and from a store."""

from __future__ import annotations

import warnings

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.store.store import EventStore, InputInfo
from mindtorch_v2.profiler.views.event_list import EventList
from mindtorch_v2.profiler.views.event_metadata import EventMetadata
from mindtorch_v2.profiler.views.events import DeviceType, FunctionEvent, Interval, Kernel, MemRecordsAcc, StringTable

FRAMES = ("model.py(10): forward", "train.py(5): main")


def recorded(**options):
    """Two steps: a label around a forward op and its backward node, then a stray free."""
    inputs = InputInfo(
        dims=((2, 3), ((4,), (5, 6)), ()),
        types=("float", "TensorList", "Scalar"),
        strides=((3, 1), ((1,), (6, 1)), ()),
        concrete=(None, None, (1, 2)),
    )
    rows = [
        {
            "name": "aten::mul",
            "start": 12_000,
            "end": 15_500,
            "seq": 3,
            "inputs": inputs,
            "overload": "Tensor",
            "stack": FRAMES,
            "flops": 6,
            "module": "Net.0",
        },
        {
            "name": "MulBackward0",
            "start": 21_000,
            "end": 24_000,
            "seq": 3,
            "kind": observer.BACKWARD,
            "fwd_thread": 100,
        },
        {
            "name": "engine: MulBackward0",
            "start": 20_000,
            "end": 25_000,
            "seq": 3,
            "kind": observer.ENGINE,
            "fwd_thread": 100,
        },
        {"name": "block", "start": 11_000, "end": 30_000, "kind": observer.SCOPE},
        {"name": "ProfilerStep#4", "start": 10_000, "end": 40_000, "kind": observer.STEP},
        {"name": "nn.Module: Net_2", "start": 50_000, "end": 60_000, "kind": observer.MODULE},
    ]
    memory = [{"time": 13_000, "bytes": 24, "thread": 100}, {"time": 45_000, "bytes": -24, "thread": 100}]
    for entry in rows:
        entry["thread"] = 100
        entry["step"] = int(entry["start"] >= 50_000)
    return EventStore.from_rows(rows, memory, clock_start_ns=10_000, pid=55, options={"profile_memory": True, **options})


@pytest.fixture
def events():
    return EventList.from_store(recorded(capture_overload_names=True))


def by_name(events, name):
    return next(event for event in events if event.name == name)


def test_events_are_in_order_of_start(events):
    assert [event.name for event in events] == [
        "ProfilerStep*",
        "block",
        "aten::mul",
        "engine: MulBackward0",
        "MulBackward0",
        "[memory]",
        "nn.Module: Net_2",
    ]


def test_attributes_of_an_op(events):
    values = dict(vars(by_name(events, "aten::mul")))
    span, parent = values.pop("time_range"), values.pop("cpu_parent")
    assert (span.start, span.end, span.elapsed_us()) == (2.0, 5.5, 3.5)
    assert parent is by_name(events, "block")
    assert values == {
        "id": 3,
        "external_id": 3,
        "name": "aten::mul",
        "trace_name": "aten::mul",
        "overload_name": "Tensor",
        "node_id": -1,
        "thread": 1,
        "fwd_thread": 0,
        "kernels": [],
        "count": 1,
        "cpu_children": [],
        "input_shapes": [[2, 3], [], []],
        "structured_input_shapes": [[2, 3], [[4], [5, 6]], []],
        "structured_input_strides": [[3, 1], [[1], [6, 1]], []],
        "input_dtypes": ["float", "TensorList", "Scalar"],
        "concrete_inputs": [None, None, [1, 2]],
        "kwinputs": {},
        "stack": list(FRAMES),
        "scope": 0,
        "use_device": None,
        "cpu_memory_usage": 24,
        "device_memory_usage": 0,
        "is_async": False,
        "is_remote": False,
        "sequence_nr": 3,
        "device_type": DeviceType.CPU,
        "device_index": 55,
        "device_resource_id": 100,
        "is_legacy": False,
        "flops": 6,
        "is_user_annotation": False,
        "is_python_function": False,
        "activity_type": "cpu_op",
        "self_cpu_percent": -1,
        "total_cpu_percent": -1,
        "total_device_percent": -1,
        "_metadata_json": "",
        "flow_id": 1,
        "flow_type": 1,
        "flow_start": True,
        "linked_correlation_id": 0,
        "event_metadata": None,
        "python_id": -1,
        "python_parent_id": -1,
        "python_module_id": -1,
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "ProfilerStep*",
            {
                "trace_name": "ProfilerStep#4",
                "scope": 7,
                "is_user_annotation": True,
                "activity_type": "user_annotation",
                "flow_id": 0,
                "flow_start": False,
            },
        ),
        ("engine: MulBackward0", {"scope": 0, "fwd_thread": 1, "sequence_nr": 3, "flow_id": 0}),
        (
            "MulBackward0",
            {"scope": 1, "fwd_thread": 1, "flow_id": 1, "flow_start": False, "flow_type": 1, "stack": list(FRAMES)},
        ),
        (
            "[memory]",
            {
                "trace_name": None,
                "concrete_inputs": None,
                "kwinputs": None,
                "flops": None,
                "activity_type": None,
                "input_shapes": [],
                "stack": [],
                "overload_name": "",
                "cpu_parent": None,
                "cpu_memory_usage": -24,
                "external_id": 0,
                "fwd_thread": 1,
                "sequence_nr": -1,
                "cpu_time_total": 0.0,
            },
        ),
        (
            "nn.Module: Net_2",
            {
                "id": 0,
                "is_python_function": True,
                "activity_type": "python_function",
                "python_id": 1,
                "python_parent_id": -1,
                "python_module_id": 2,
                "scope": 0,
            },
        ),
    ],
)
def test_attributes_by_kind(events, name, expected):
    event = by_name(events, name)
    assert {attribute: getattr(event, attribute) for attribute in expected} == expected


@pytest.mark.parametrize(
    ("name", "kind", "step", "module"),
    [
        ("aten::mul", "op", 0, "Net.0"),
        ("block", "scope", 0, None),
        ("MulBackward0", "backward", 0, None),
        ("engine: MulBackward0", "engine", 0, None),
        ("ProfilerStep*", "step", 0, None),
        ("[memory]", "memory", 0, None),
        ("nn.Module: Net_2", "module", 1, None),
    ],
)
def test_items_say_what_torch_has_no_attribute_for(events, name, kind, step, module):
    event = by_name(events, name)
    assert (event["name"], event["kind"], event["step"], event["module"]) == (name, kind, step, module)
    assert event["device_type"] == "CPU"
    assert event["thread_id"] == 100


def test_items_are_in_nanoseconds_of_the_clock(events):
    event = by_name(events, "aten::mul")
    assert (event["start_ns"], event["end_ns"], event["duration_ns"]) == (12_000, 15_500, 3_500)
    with pytest.raises(KeyError):
        event["nonsense"]


def test_tree_and_times(events):
    block, engine = by_name(events, "block"), by_name(events, "engine: MulBackward0")
    assert [child.name for child in block.cpu_children] == ["aten::mul", "engine: MulBackward0"]
    assert block.cpu_children[1] is engine
    assert (block.cpu_time_total, block.self_cpu_time_total, block.cpu_time) == (19.0, 10.5, 19.0)
    assert (block.cpu_memory_usage, block.self_cpu_memory_usage) == (24, 0)
    assert all(child.cpu_parent is event for event in events for child in event.cpu_children)
    assert events.self_cpu_time_total == sum(event.self_cpu_time_total for event in events) == 40.0


def test_overloads_are_shown_only_when_captured():
    assert by_name(EventList.from_store(recorded()), "aten::mul").overload_name == ""


def test_joined_recordings_have_their_own_time_zero():
    both = EventList.from_store(
        EventStore.joined([recorded(), EventStore.from_rows([{"name": "old", "start": 900, "end": 1900}], clock_start_ns=400)])
    )
    assert by_name(both, "block").time_range.start == 1.0
    assert by_name(both, "old").time_range.start == 0.5


def test_an_event_that_is_assigned_to_goes_its_own_way(events):
    mul = by_name(events, "aten::mul")
    mul.name = "renamed"
    mul.time_range = Interval(2.0, 3.0)
    assert (mul.cpu_time_total, mul["kind"], mul["start_ns"], mul.id) == (1.0, "op", 12_000, 3)
    assert [row.key for row in events.key_averages()][2] == "renamed"
    assert "renamed" in events.table()
    mul.append_kernel("kernel", 0, 3)
    assert mul.kernels == [Kernel("kernel", 0, 3)]


def test_reading_an_unknown_attribute(events):
    with pytest.raises(AttributeError, match="nonsense"):
        _ = events[0].nonsense


def test_repr_of_an_event(events):
    assert repr(by_name(events, "MulBackward0")) == (
        "<FunctionEvent id=5 name=MulBackward0 overload_name= device_type=DeviceType.CPU node_id=-1 cpu_time=3.000us "
        "start_us=11.0 end_us=14.0 cpu_children=[] None_time=0.000us name=MulBackward0 thread=1 input_shapes=[] "
        "cpu_memory_usage=0 None_memory_usage=0 is_async=False is_remote=False seq_nr=3 is_legacy=False>"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cuda_time", "device_time"),
        ("cuda_time_total", "device_time_total"),
        ("self_cuda_time_total", "self_device_time_total"),
        ("self_cuda_memory_usage", "self_device_memory_usage"),
    ],
)
def test_cuda_names_are_deprecated(events, old, new):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = getattr(events[0], old)
    assert value == getattr(events[0], new)
    assert [(w.category, w.filename) for w in caught] == [(FutureWarning, __file__)]


def test_npu_names_are_the_devices(events):
    event = FunctionEvent(0, "a", 0, 0, 10, use_device="npu", device_memory_usage=7)
    event.append_kernel("k", 0, 4)
    assert (event.npu_time, event.npu_time_total, event.self_npu_time_total) == (4.0, 4, 4)
    assert (event.npu_memory_usage, event.self_npu_memory_usage) == (7, 7)


# ---------------------------------------------------------------------- events made by hand


def event_list(*rows, **more):
    return EventList(
        [
            FunctionEvent(id=i, name=name, thread=thread, start_us=start, end_us=end, stack=[], **more)
            for i, (name, thread, start, end) in enumerate(rows)
        ]
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(
            [("a", 0, 0, 100), ("b", 0, 10, 40), ("c", 0, 20, 30), ("d", 0, 50, 100), ("e", 1, 20, 30)],
            [("a", None, 20), ("b", "a", 20), ("c", "b", 10), ("d", "a", 50), ("e", None, 10)],
            id="nested",
        ),
        pytest.param(
            [("a", 0, 0, 50), ("b", 0, 40, 60), ("c", 0, 45, 50)],
            [("a", None, 50), ("b", None, 15), ("c", "b", 5)],
            id="partial overlap",
        ),
        pytest.param([("short", 0, 0, 10), ("long", 0, 0, 20)], [("short", "long", 10), ("long", None, 10)], id="same start"),
        pytest.param([("first", 0, 0, 10), ("second", 0, 0, 10)], [("first", None, 0), ("second", "first", 10)], id="equal"),
        pytest.param(
            [("a", 0, 0, 100), ("a", 0, 10, 90), ("b", 0, 20, 30), ("b", 0, 40, 50)],
            [("a", None, 80), ("b", "a", 10), ("b", "a", 10)],
            id="only child of the same name",
        ),
        pytest.param([("a", 0, 0, 100), ("a", 0, 10, 90), ("a", 0, 20, 30)], [("a", None, 100)], id="a chain of namesakes"),
    ],
)
def test_tree_of_made_events(rows, expected):
    events = event_list(*rows)
    events._build_tree()
    assert [(e.name, e.cpu_parent.name if e.cpu_parent else None, e.self_cpu_time_total) for e in events] == expected


def test_backward_events_made_by_hand_get_the_forward_stack():
    events = EventList(
        [
            FunctionEvent(0, "mul", 1, 0, 5, stack=["f"], sequence_nr=2),
            FunctionEvent(1, "node", 1, 10, 20, stack=["g"], sequence_nr=2, scope=1, fwd_thread=1),
            FunctionEvent(2, "op", 1, 12, 15, stack=["g"]),
            FunctionEvent(3, "other node", 1, 30, 40, stack=["g"], sequence_nr=9, scope=1, fwd_thread=1),
        ]
    )
    events._build_tree()
    assert [event.stack for event in events] == [["f"], ["f"], ["f"], []]


def test_defaults_of_a_made_event():
    event = FunctionEvent(id=4, name="n", thread=7, start_us=1, end_us=5)
    assert (event.cpu_time_total, event.cpu_time, event.self_cpu_time_total, event.device_time_total, event.count) == (
        4,
        4.0,
        4,
        0,
        1,
    )
    for attribute in (
        "input_shapes",
        "stack",
        "flops",
        "fwd_thread",
        "trace_name",
        "overload_name",
        "metadata_json",
        "event_metadata",
        "kwinputs",
        "flow_id",
    ):
        assert getattr(event, attribute) is None
    assert (event.sequence_nr, event.node_id, event.device_resource_id, event.device_index, event.key) == (
        -1,
        -1,
        7,
        0,
        "n",
    )
    assert [event[key] for key in ("kind", "step", "start_ns", "end_ns", "duration_ns", "thread_id")] == [
        "op",
        0,
        1000,
        5000,
        4000,
        7,
    ]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"is_async": True, "cpu_memory_usage": 8}, (5, 0, 0, 0)),
        ({"device_type": DeviceType.CUDA, "use_device": "cuda"}, (0, 0, 5, 5)),
        ({"device_type": DeviceType.CUDA}, (0, 0, 0, 0)),
        ({"use_device": "cuda"}, (5, 5, 0, 0)),
    ],
)
def test_time_on_cpu_and_device(event, expected):
    event = FunctionEvent(id=0, name="n", thread=0, start_us=0, end_us=5, **event)
    assert (
        event.cpu_time_total,
        event.self_cpu_time_total,
        event.device_time_total,
        event.self_device_time_total,
    ) == expected


def test_kernels_count_for_the_op_and_its_parents():
    for legacy, outer in ((False, (9, 7)), (True, (7, 5))):
        events = event_list(("a", 0, 0, 10), ("c", 0, 1, 3), use_device="cuda", is_legacy=legacy)
        events[0].append_kernel("k", 0, 7)
        events[1].append_kernel("kk", 0, 2)
        events._build_tree()
        assert (events[0].device_time_total, events[0].self_device_time_total) == outer
        assert (events[1].device_time_total, events[1].self_device_time_total) == (2, 2)


def test_links_and_kernels_are_checked():
    event, kernel = FunctionEvent(0, "n", 0, 0, 5), FunctionEvent(1, "k", 0, 1, 2, device_type=DeviceType.CUDA)
    for call in (
        lambda: event.append_cpu_child("x"),
        lambda: event.append_cpu_child(kernel),
        lambda: event.set_cpu_parent("x"),
        lambda: event.set_cpu_parent(kernel),
        lambda: kernel.append_kernel("k", 0, 1),
        lambda: kernel.append_cpu_child(event),
        lambda: kernel.set_cpu_parent(event),
    ):
        with pytest.raises(AssertionError):
            call()


# ---------------------------------------------------------------------- companions


def test_device_types_are_text_with_torchs_numbers():
    cpu = DeviceType.CPU
    assert cpu == "CPU"
    assert (str(cpu), f"{cpu}", repr(cpu), cpu.name, int(cpu)) == (
        "DeviceType.CPU",
        "DeviceType.CPU",
        "<DeviceType.CPU: 0>",
        "CPU",
        0,
    )
    assert (int(DeviceType.XPU), int(DeviceType.PrivateUse1)) == (12, 20)
    assert DeviceType(1) is DeviceType.CUDA
    with pytest.raises(ValueError, match="99"):
        DeviceType(99)


def test_memory_records_are_found_by_time():
    class Record:
        def __init__(self, time):
            self.time = time

        def start_ns(self):
            return self.time

    records = MemRecordsAcc([(Record(10), "b"), (Record(5), "a"), (Record(20), "c")])
    assert [tag for _, tag in records.in_interval(5, 10)] == ["a", "b"]
    assert list(records.in_interval(11, 19)) == []


def test_metadata_of_a_device_event():
    event = FunctionEvent(
        0,
        "k",
        0,
        0,
        1,
        extra_meta={"grid": "[1, 2, 3]", "stream": "7", "dtype": '"Float"', "Is asynchronized op": "true"},
    )
    assert event.event_metadata == EventMetadata(
        **{**dict.fromkeys(EventMetadata._fields), "grid": [1, 2, 3], "stream": 7, "dtype": "Float", "is_async": True}
    )
    with pytest.raises(ValueError, match="x"):
        FunctionEvent(0, "k", 0, 0, 1, extra_meta={"stream": "x"})


def test_string_table_keeps_names():
    assert StringTable()["aten::add"] == "aten::add"
