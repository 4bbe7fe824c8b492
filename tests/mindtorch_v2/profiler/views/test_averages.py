"""key_averages(): grouping, sums, and the rows."""

from __future__ import annotations

import random

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.store.store import EventStore, InputInfo
from mindtorch_v2.profiler.views.averages import FunctionEventAvg, average_events
from mindtorch_v2.profiler.views.event_list import EventList
from mindtorch_v2.profiler.views.events import DeviceType, FunctionEvent


def inputs(*dims, types=("float", "float")):
    return InputInfo(dims, types[: len(dims)], tuple(() for _ in dims), tuple(None for _ in dims))


def recorded(rows, memory=(), **options):
    return EventList.from_store(EventStore.from_rows(rows, memory, options=options))


def row(name, start, end, **more):
    return {"name": name, "start": start * 1000, "end": end * 1000, **more}


TWO_SHAPES = [
    row("aten::mul", 0, 10, inputs=inputs((2, 3), (2, 3)), stack=("a.py(1): f", "m.py(9): main"), overload="Tensor"),
    row("aten::mul", 20, 25, inputs=inputs((4,), (4,)), stack=("b.py(2): g", "m.py(9): main"), overload="Scalar"),
    row("aten::add", 30, 40, inputs=inputs((2, 3), (2, 3)), stack=("a.py(1): f", "m.py(9): main"), overload="Tensor"),
    row(
        "aten::mul",
        50,
        57,
        inputs=inputs((2, 3), (2, 3), types=("double", "double")),
        stack=("a.py(1): f", "n.py(1): x"),
        overload="Tensor",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [("aten::mul", "", [], "", 3, 22.0), ("aten::add", "", [], "", 1, 10.0)]),
        (
            {"group_by_input_shapes": True},
            [
                ("aten::mul", [[2, 3], [2, 3]], [], "", 2, 17.0),
                ("aten::mul", [[4], [4]], [], "", 1, 5.0),
                ("aten::add", [[2, 3], [2, 3]], [], "", 1, 10.0),
            ],
        ),
        (
            {"group_by_stack_n": 1},
            [
                ("aten::mul", "", ["a.py(1): f"], "", 2, 17.0),
                ("aten::mul", "", ["b.py(2): g"], "", 1, 5.0),
                ("aten::add", "", ["a.py(1): f"], "", 1, 10.0),
            ],
        ),
        (
            {"group_by_stack_n": 5},
            [
                ("aten::mul", "", ["a.py(1): f", "m.py(9): main"], "", 1, 10.0),
                ("aten::mul", "", ["b.py(2): g", "m.py(9): main"], "", 1, 5.0),
                ("aten::add", "", ["a.py(1): f", "m.py(9): main"], "", 1, 10.0),
                ("aten::mul", "", ["a.py(1): f", "n.py(1): x"], "", 1, 7.0),
            ],
        ),
        (
            {"group_by_overload_name": True},
            [
                ("aten::mul", "", [], "Tensor", 2, 17.0),
                ("aten::mul", "", [], "Scalar", 1, 5.0),
                ("aten::add", "", [], "Tensor", 1, 10.0),
            ],
        ),
    ],
)
def test_groups_in_order_of_first_appearance(arguments, expected):
    averages = recorded(TWO_SHAPES, capture_overload_names=True).key_averages(**arguments)
    assert [(r.key, r.input_shapes, r.stack, r.overload_name, r.count, r.cpu_time_total) for r in averages] == expected


def test_overloads_that_were_not_captured_do_not_split():
    averages = recorded(TWO_SHAPES).key_averages(group_by_overload_name=True)
    assert [(r.key, r.overload_name, r.count) for r in averages] == [("aten::mul", "", 3), ("aten::add", "", 1)]


def test_shapes_that_were_not_recorded_are_an_empty_list():
    averages = recorded([row("a", 0, 1), row("a", 2, 3)]).key_averages(group_by_input_shapes=True)
    assert [(r.input_shapes, r.count) for r in averages] == [([], 2)]


def test_labels_and_ops_of_one_name_are_two_rows():
    averages = recorded([row("x", 0, 1, kind=observer.SCOPE), row("x", 2, 3), row("x", 4, 5)]).key_averages()
    assert [(r.key, r.is_user_annotation, r.scope, r.count) for r in averages] == [
        ("x", True, 7, 1),
        ("x", False, 0, 2),
    ]


def test_steps_are_one_row():
    averages = recorded([row(f"ProfilerStep#{i}", 10 * i, 10 * i + 5, kind=observer.STEP) for i in range(3)]).key_averages()
    assert [(r.key, r.count, r.cpu_time_total) for r in averages] == [("ProfilerStep*", 3, 15.0)]


def test_sums():
    averages = recorded(
        [row("b", 10, 40, flops=5), row("a", 0, 100, flops=2), row("b", 200, 260, flops=5)],
        memory=[{"time": 20_000, "bytes": 4}, {"time": 50_000, "bytes": 8}, {"time": 210_000, "bytes": -2}],
        profile_memory=True,
        with_flops=True,
    ).key_averages()
    assert [
        (
            r.key,
            r.count,
            r.cpu_time_total,
            r.self_cpu_time_total,
            r.cpu_time,
            r.cpu_memory_usage,
            r.self_cpu_memory_usage,
            r.flops,
        )
        for r in averages
    ] == [("a", 1, 100.0, 70.0, 100.0, 12, 8, 2), ("b", 2, 90.0, 90.0, 45.0, 2, 2, 10)]
    assert averages.self_cpu_time_total == 160.0


def test_memory_outside_events_is_a_row():
    averages = recorded([row("op", 0, 10)], memory=[{"time": 5_000, "bytes": 8}, {"time": 20_000, "bytes": -8}]).key_averages()
    assert [(r.key, r.count, r.self_cpu_memory_usage, r.flops) for r in averages] == [
        ("op", 1, 8, 0),
        ("[memory]", 1, -8, 0),
    ]


def test_a_row_has_torchs_attributes_and_defaults():
    values = dict(vars(recorded([row("aten::mul", 0, 10), row("aten::mul", 20, 30)]).key_averages()[0]))
    assert values == {
        "key": "aten::mul",
        "count": 2,
        "node_id": -1,
        "is_async": False,
        "is_remote": False,
        "use_device": None,
        "cpu_time_total": 20.0,
        "device_time_total": 0,
        "self_cpu_time_total": 20.0,
        "self_device_time_total": 0,
        "input_shapes": "",
        "overload_name": "",
        "stack": [],
        "scope": 0,
        "cpu_memory_usage": 0,
        "device_memory_usage": 0,
        "self_cpu_memory_usage": 0,
        "self_device_memory_usage": 0,
        "cpu_children": [],
        "cpu_parent": None,
        "device_type": DeviceType.CPU,
        "is_legacy": False,
        "flops": 0,
        "is_user_annotation": False,
    }
    assert {name: type(value) for name, value in values.items() if isinstance(value, (int, float))} == {
        "count": int,
        "node_id": int,
        "is_async": bool,
        "is_remote": bool,
        "cpu_time_total": float,
        "device_time_total": int,
        "self_cpu_time_total": float,
        "self_device_time_total": int,
        "scope": int,
        "cpu_memory_usage": int,
        "device_memory_usage": int,
        "self_cpu_memory_usage": int,
        "self_device_memory_usage": int,
        "is_legacy": bool,
        "flops": int,
        "is_user_annotation": bool,
    }


def test_a_row_keeps_its_first_events_parent_and_children():
    events = recorded([row("c", 2, 3), row("a", 1, 4), row("block", 0, 5), row("a", 10, 11)])
    _, a, _ = events.key_averages()
    assert a.cpu_parent is events[0]
    assert a.cpu_children == [events[2]]


def test_a_row_is_not_subscriptable_and_has_no_attributes_of_events():
    average = recorded([row("a", 0, 1)]).key_averages()[0]
    for use in (lambda: average["key"], lambda: len(average), lambda: list(average)):
        with pytest.raises(TypeError):
            use()
    for name in (
        "name",
        "id",
        "time_range",
        "thread",
        "trace_name",
        "sequence_nr",
        "kernels",
        "concrete_inputs",
        "cuda_time_total",
        "self_cuda_time_total",
        "cuda_memory_usage",
    ):
        assert not hasattr(average, name)


def test_text_of_a_row():
    average = recorded([row("a", 0, 1500), row("a", 2000, 4500)]).key_averages()[0]
    assert repr(average) == (
        "<FunctionEventAvg key=a self_cpu_time=4.000ms cpu_time=2.000ms  self_cuda_time=0.000us "
        "cuda_time=0.000us input_shapes= cpu_memory_usage=0 cuda_memory_usage=0>"
    )
    assert (average.cpu_time_str, average.cpu_time_total_str, average.self_cpu_time_total_str) == (
        "2.000ms",
        "4.000ms",
        "4.000ms",
    )
    assert (average.device_time_str, average.device_time_total_str, average.self_device_time_total_str) == ("0.000us",) * 3
    with pytest.warns(FutureWarning):
        assert average.cuda_time == 0.0
    assert (average.npu_time, average.npu_time_total, average.self_npu_memory_usage) == (0.0, 0, 0)


def test_a_fresh_row_is_the_sum_of_nothing():
    average = FunctionEventAvg()
    assert repr(average) == (
        "<FunctionEventAvg key=None self_cpu_time=0.000us cpu_time=0.000us  self_cuda_time=0.000us "
        "cuda_time=0.000us input_shapes=None cpu_memory_usage=0 cuda_memory_usage=0>"
    )
    assert (average.count, average.node_id, average.cpu_time, average.stack, average.scope) == (0, 0, 0.0, None, None)


def test_adding_rows():
    events = recorded([row("a", 0, 10, flops=3), row("b", 20, 30)])
    first, second = events.key_averages()[0], events.key_averages()[0]
    assert first.add(second) is first
    first += events[0]
    assert (first.count, first.cpu_time_total, first.flops, first.key) == (3, 30.0, 9, "a")
    for other, message in (
        (events.key_averages()[1], "Expected keys to match, but got b vs a"),
        (3, "Expected other to be a FunctionEvent or FunctionEventAvg"),
    ):
        with pytest.raises(AssertionError, match=f"^{message}$"):
            first.add(other)


def test_every_call_makes_new_rows():
    events = recorded([row("a", 0, 10)])
    first, second = events.key_averages(), events.key_averages()
    assert first is not second
    assert first[0] is not second[0]
    assert first.table() == second.table()


@pytest.mark.parametrize("wrong", ["2", None])
def test_number_of_frames_of_the_wrong_type(wrong):
    with pytest.raises(TypeError):
        recorded([row("a", 0, 10)]).key_averages(group_by_stack_n=wrong)


def test_averages_of_averages_and_of_events_without_a_tree():
    for events in (recorded([row("a", 0, 10)]).key_averages(), EventList([FunctionEvent(0, "a", 0, 0, 1, stack=[])])):
        with pytest.raises(AssertionError):
            events.key_averages()


def test_events_without_a_stack_cannot_be_averaged():
    events = EventList([FunctionEvent(0, "a", 0, 0, 1)])
    events._build_tree()
    with pytest.raises(TypeError, match="no stack"):
        events.key_averages()


@pytest.mark.parametrize("of", [lambda events: events, lambda events: events.key_averages()])
def test_total_average(of):
    total = of(
        recorded(
            [row("b", 10, 40, flops=5), row("a", 0, 100, flops=2), row("b", 200, 260)],
            memory=[{"time": 20_000, "bytes": 4}],
        )
    ).total_average()
    assert type(total) is FunctionEventAvg
    assert (
        total.key,
        total.count,
        total.cpu_time_total,
        total.self_cpu_time_total,
        total.flops,
        total.self_cpu_memory_usage,
    ) == ("Total", 3, 190.0, 160.0, 7, 4)


def test_total_average_of_nothing_is_zero():
    for events in (recorded([]), recorded([]).key_averages(), EventList()):
        total = events.total_average()
        assert (total.key, total.count, total.cpu_time_total, total.self_cpu_time_total) == ("Total", 0, 0, 0)


def test_device_rows_have_device_time_only():
    averages = recorded([row("op", 0, 10), row("kernel", 2, 7, device_type=20)], use_device="npu").key_averages()
    assert [
        (r.key, r.cpu_time_total, r.device_time_total, r.self_device_time_total, r.use_device, r.device_type) for r in averages
    ] == [("op", 10.0, 0.0, 0.0, "npu", "CPU"), ("kernel", 0.0, 5.0, 5.0, "npu", "NPU")]


def test_columns_and_event_objects_give_the_same_averages():
    choose = random.Random(5)
    for _ in range(30):
        rows, memory = [], []
        for _ in range(60):
            start = choose.randrange(1000)
            rows.append(
                row(
                    choose.choice("abc"),
                    start,
                    start + choose.randrange(40),
                    kind=choose.choice((observer.OP, observer.SCOPE)),
                    thread=choose.choice((1, 2)),
                    flops=choose.randrange(3),
                    overload=choose.choice(("x", "y")),
                    inputs=choose.choice((None, inputs((1,)), inputs((2,), (3,)))),
                    stack=choose.choice((None, ("f",), ("g", "h"))),
                )
            )
            memory.append(
                {"time": choose.randrange(1_050_000), "bytes": choose.randrange(-9, 9), "thread": choose.choice((1, 2))}
            )
        events = recorded(rows, memory, capture_overload_names=True)
        for arguments in ((False, 0, False), (True, 0, False), (False, 1, True), (True, 2, True)):
            by_columns = events.key_averages(*arguments)
            by_objects = average_events(list(events), *arguments)
            assert [_values(r) for r in by_columns] == [_values(r) for r in by_objects]


def _values(average):
    values = dict(vars(average))
    for name, value in values.items():
        if isinstance(value, float):
            values[name] = pytest.approx(value)
    return values
