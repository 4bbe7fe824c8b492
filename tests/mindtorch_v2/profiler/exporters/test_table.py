"""The text table, to the character."""

from __future__ import annotations

import re

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.exporters.table import build_table, format_memory, format_time, format_time_share, summarize
from mindtorch_v2.profiler.store.store import EventStore, InputInfo
from mindtorch_v2.profiler.views.event_list import EventList
from mindtorch_v2.profiler.views.events import DeviceType, FunctionEvent


def event_list(*rows, listing=None, **more):
    """Events (name, start, end) or (name, start, end, attributes) made by hand, with their tree."""
    events = [
        FunctionEvent(
            id=i,
            name=row[0],
            thread=0,
            start_us=row[1],
            end_us=row[2],
            **{"stack": [], **more, **(row[3] if len(row) > 3 else {})},
        )
        for i, row in enumerate(rows)
    ]
    events = EventList(events, **(listing or {}))
    events._build_tree()
    return events


def titles(text):
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("-"))
    return [lines[at + 1][m.start() : m.end()].strip() for m in re.finditer("-+", lines[at])]


def names(text):
    lines = text.split("\n")
    at = [i for i, line in enumerate(lines) if line.startswith("-")]
    width = len(lines[at[0]].split()[0])
    return [line[:width].strip() for line in lines[at[1] + 1 : at[2]]]


BASE = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]


def test_exact_table():
    events = event_list(("foo", 0, 2500000), ("bar", 100, 1600), ("baz", 200, 300), ("bar", 3000000, 3000500))
    assert events.key_averages().table().split("\n") == [
        "-------  ------------  ------------  ------------  ------------  ------------  ------------  ",
        "   Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  ",
        "-------  ------------  ------------  ------------  ------------  ------------  ------------  ",
        "    foo        99.92%        2.498s        99.98%        2.500s        2.500s             1  ",
        "    bar         0.08%       1.900ms         0.08%       2.000ms       1.000ms             2  ",
        "    baz         0.00%     100.000us         0.00%     100.000us     100.000us             1  ",
        "-------  ------------  ------------  ------------  ------------  ------------  ------------  ",
        "Total Event Count: 4",
        "Self CPU time total: 2.501s",
        "",
    ]


def test_exact_table_of_a_device():
    rows = [("op", 0, 100, {"device_memory_usage": 2048}), ("kernel", 5, 35, {"device_type": DeviceType.PrivateUse1})]
    events = event_list(*rows, use_device="npu", listing={"use_device": "npu", "profile_memory": True})
    events[0].append_kernel("kernel", 0, 30)
    rule = "----------  " + "------------  " * 14
    assert events.key_averages().table(header="Run", top_level_events_only=True).split("\n") == [
        "=" * (len(rule) - 2),
        "Run",
        "=" * (len(rule) - 2),
        "This report only display top-level ops statistics",
        rule,
        "      Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg      Self NPU    Self NPU %"
        "     NPU total  NPU time avg       CPU Mem  Self CPU Mem       NPU Mem  Self NPU Mem    # of Calls  ",
        rule,
        "        op       100.00%     100.000us       100.00%     100.000us     100.000us      30.000us       100.00%"
        "      30.000us      30.000us           0 B           0 B       2.00 KB       2.00 KB             1  ",
        "    kernel         0.00%       0.000us         0.00%       0.000us       0.000us      30.000us       100.00%"
        "      30.000us      30.000us           0 B           0 B           0 B           0 B             1  ",
        rule,
        "Total Event Count: 2",
        "Self CPU time total: 100.000us",
        "Self NPU time total: 30.000us",
        "",
    ]


def test_a_label_on_the_device_is_no_part_of_the_devices_total():
    device = {"device_type": DeviceType.CUDA, "use_device": "cuda"}
    text = (
        event_list(("kernel", 0, 40, device), ("label", 0, 50, {**device, "is_user_annotation": True})).key_averages().table()
    )
    assert text.endswith("Self CPU time total: 0.000us\nSelf CUDA time total: 40.000us\n")


def test_the_unit_of_flops_is_that_of_what_torch_counts():
    def title(*rows):
        text = event_list(
            *((name, 10 * n, 10 * n + 5, {"flops": flops}) for n, (name, flops) in enumerate(rows)),
            listing={"with_flops": True},
        ).table()
        return next(word for word in ("Total FLOPs", "Total KFLOPs", "Total MFLOPs") if word in text)

    assert title(("aten::mm", 20_000), ("aten::sum", 3)) == "Total KFLOPs"
    assert title(("aten::mm", 20_000), ("aten::mul", 3)) == "Total FLOPs"
    assert title(("aten::sum", 3_000_000), ("aten::exp", 5_000_000)) == "Total MFLOPs"
    x = torch.ones(50, 50)
    with profile(with_flops=True) as prof:
        (x @ x).sum()
    for listed in (prof.events(), prof.key_averages()):
        assert "Total KFLOPs" in listed.table()


def test_every_frame_has_its_line_and_flops_stand_below_their_title():
    events = event_list(
        ("op", 0, 5, {"stack": ["model.py(10): forward", "train.py(5): main"], "flops": 10}),
        ("mm", 10, 15, {"flops": 2000}),
        listing={"with_flops": True},
    )
    lines = events.key_averages(group_by_stack_n=2).table().split("\n")
    assert [line[92:] for line in lines[:-3]] == [
        "-------------------------  ------------  ",
        "Source Location             Total FLOPs  ",
        "-------------------------  ------------  ",
        "model.py(10): forward            10.000  ",
        "train.py(5): main                        ",
        "                                         ",
        "                               2000.000  ",
        "                                         ",
        "-------------------------  ------------  ",
    ]
    assert [len(line) for line in lines[:-3]] == [len(lines[0])] * 9


@pytest.mark.parametrize(
    ("width", "first"),
    [(75, "model.py(10): forward      "), (10, "...forward  "), (0, "  "), (None, "model.py(10): forward      ")],
)
def test_frames_are_cut_at_their_beginning(width, first):
    events = event_list(("op", 0, 5, {"stack": ["model.py(10): forward", "train.py(5): main"]}))
    text = events.key_averages(group_by_stack_n=2).table(max_src_column_width=width)
    assert text.split("\n")[3][92:] == first


@pytest.mark.parametrize(
    ("width", "cell"),
    [(80, "    [[16, 16], [16, 16]]  "), (12, "[[16, 16], [  "), (None, "    [[16, 16], [16, 16]]  ")],
)
def test_shapes_are_cut_at_their_end(width, cell):
    events = event_list(("op", 0, 5, {"input_shapes": [[16, 16], [16, 16]]}))
    text = events.key_averages(group_by_input_shapes=True).table(max_shapes_column_width=width)
    assert text.split("\n")[3].endswith("1  " + cell)


@pytest.mark.parametrize(
    ("width", "cell"), [(55, "a" * 52 + "..."), (20, "a" * 17 + "..."), (3, "..."), (None, "    " + "a" * 60)]
)
def test_names_are_cut_three_before_the_limit(width, cell):
    text = event_list(("a" * 60, 0, 10)).key_averages().table(max_name_column_width=width)
    assert text.split("\n")[3].split("  ", 0)[0].startswith(cell + "  ")


def test_a_name_just_below_the_limit_is_whole():
    events = event_list(*[("x" * n, 10 * n, 10 * n + 1) for n in (15, 16, 17)])
    assert names(events.key_averages().table(max_name_column_width=20)) == ["x" * 15, "x" * 16, "x" * 17 + "..."]


@pytest.mark.parametrize(
    ("events", "arguments", "expected"),
    [
        pytest.param(event_list(("a", 0, 1)), {}, [*BASE, "# of Calls"], id="plain"),
        pytest.param(
            event_list(("a", 0, 1), listing={"profile_memory": True}),
            {},
            [*BASE, "CPU Mem", "Self CPU Mem", "# of Calls"],
            id="memory",
        ),
        pytest.param(event_list(("a", 0, 1), node_id=3), {}, [*BASE, "# of Calls", "Node ID"], id="node"),
        pytest.param(
            event_list(("a", 0, 1), input_shapes=[[16, 16]]),
            {"group_by_input_shapes": True},
            [*BASE, "# of Calls", "Input Shapes"],
            id="shapes",
        ),
        pytest.param(event_list(("a", 0, 1), input_shapes=[[2]]), {}, [*BASE, "# of Calls"], id="shapes not grouped"),
        pytest.param(event_list(("a", 0, 1), stack=["f"]), {}, [*BASE, "# of Calls"], id="stack not grouped"),
        pytest.param(
            event_list(("a", 0, 1), flops=3, listing={"with_flops": True}),
            {},
            [*BASE, "# of Calls", "Total FLOPs"],
            id="flops",
        ),
        pytest.param(
            event_list(("a", 0, 1), flops=0, listing={"with_flops": True}), {}, [*BASE, "# of Calls"], id="no flops counted"
        ),
        pytest.param(event_list(("a", 0, 1), flops=3), {}, [*BASE, "# of Calls"], id="flops not asked for"),
    ],
)
def test_columns_by_what_was_recorded(events, arguments, expected):
    assert titles(events.key_averages(**arguments).table()) == expected


def test_overload_column_is_as_wide_as_the_names():
    lines = event_list(("a", 0, 1), overload_name="Tensor").key_averages(group_by_overload_name=True).table().split("\n")
    assert lines[0].startswith("-----  -----  ------------  ")
    assert lines[1].startswith(" Name  Overload Name    Self CPU %")
    assert lines[3].startswith("    a  Tensor       100.00%")


@pytest.mark.parametrize(
    ("flops", "title", "cells"),
    [
        ((10, 20), "FLOPs", ["10.000", "20.000"]),
        ((2000, 5000000), "KFLOPs", ["2.000", "5000.000"]),
        ((3000000, 0), "MFLOPs", ["3.000", "--"]),
        ((10**10, None), "GFLOPs", ["10.000", "--"]),
        ((10**15, 10**18), "PFLOPs", ["1.000", "1000.000"]),
        ((10**25, 0.5), "FLOPs", ["10000000000000000905969664.000", "0.500"]),
    ],
)
def test_flops_have_the_unit_of_the_smallest(flops, title, cells):
    events = event_list(
        *[(f"op{i}", 10 * i, 10 * i + 5, {"flops": n}) for i, n in enumerate(flops)], listing={"with_flops": True}
    )
    lines = events.key_averages().table().split("\n")
    assert lines[1].split()[-1] == title
    assert [line.split()[-1] for line in lines[3:5]] == cells


def test_events_with_and_without_flops_in_one_table():
    events = event_list(("op", 0, 5, {"flops": 10}), ("[memory]", 6, 6, {"flops": None}), listing={"with_flops": True})
    assert [line.split()[-1] for line in events.table().split("\n")[3:5]] == ["10.000", "--"]


SOME = (("foo", 0, 100), ("bar", 200, 250), ("bar", 300, 450), ("baz", 500, 501))


@pytest.mark.parametrize(
    ("sort_by", "expected"),
    [
        (None, ["foo", "bar", "baz"]),
        ("cpu_time", ["foo", "bar", "baz"]),
        ("cpu_time_total", ["bar", "foo", "baz"]),
        ("count", ["bar", "foo", "baz"]),
        ("key", ["foo", "baz", "bar"]),
        ("cuda_time_total", ["foo", "bar", "baz"]),
        ("self_xpu_time_total", ["foo", "bar", "baz"]),
        ("privateuse1_time_total", ["foo", "bar", "baz"]),
        ("npu_memory_usage", ["foo", "bar", "baz"]),
        ("flops", ["foo", "bar", "baz"]),
    ],
)
def test_sorting_is_by_any_attribute_largest_first(sort_by, expected):
    averages = event_list(*SOME).key_averages()
    assert names(averages.table(sort_by=sort_by)) == expected
    assert [average.key for average in averages] == ["foo", "bar", "baz"]


@pytest.mark.parametrize(
    ("sort_by", "error"),
    [
        ("nonsense", AttributeError),
        ("", AttributeError),
        ("name", AttributeError),
        ("id", AttributeError),
        (5, AttributeError),
        ("cpu_parent", TypeError),
        ("use_device", TypeError),
    ],
)
def test_keys_that_cannot_be_sorted_by(sort_by, error):
    with pytest.raises(error):
        event_list(*SOME).key_averages().table(sort_by=sort_by)


@pytest.mark.parametrize(
    ("limit", "rows"), [(0, 0), (1, 1), (3, 3), (100, 3), (-1, 3), (None, 3), (1.0, 1), (1.5, 3), ("2", 3), (True, 1)]
)
def test_row_limit(limit, rows):
    assert len(names(event_list(*SOME).key_averages().table(row_limit=limit))) == rows


def test_row_limit_is_100_and_counts_events_of_all_rows():
    text = event_list(*[(f"op{i}", 10 * i, 10 * i + 5) for i in range(130)]).table()
    assert len(names(text)) == 100
    assert "\nTotal Event Count: 130\n" in text


def test_top_level_events_only():
    averages = event_list(("a", 0, 10), ("b", 20, 30), ("c", 22, 25)).key_averages()
    assert names(averages.table(top_level_events_only=True)) == ["a", "b"]
    assert names(averages.table(top_level_events_only=True, row_limit=1)) == ["a"]
    assert averages.table(top_level_events_only=True).startswith(
        "=" * 89 + "\nThis report only display top-level ops statistics\n"
    )


def test_header():
    assert event_list(*SOME).key_averages().table(header="My run").startswith("=" * 91 + "\nMy run\n-------  ")
    with pytest.raises(TypeError):
        event_list(*SOME).key_averages().table(header=5)


@pytest.mark.parametrize(
    ("unit", "cells", "footer"),
    [
        ("s", ["2.500s", "0.001s"], "2.501s"),
        ("ms", ["2500.000ms", "0.500ms"], "2500.500ms"),
        ("us", ["2500000.000us", "500.000us"], "2500500.000us"),
        ("parsec", ["2.500s", "500.000us"], "2.501s"),
        (None, ["2.500s", "500.000us"], "2.501s"),
    ],
)
def test_time_unit(unit, cells, footer):
    lines = event_list(("foo", 0, 2500000), ("bar", 3000000, 3000500)).key_averages().table(time_unit=unit).split("\n")
    assert [line.split()[4] for line in lines[3:5]] == cells
    assert lines[-2] == f"Self CPU time total: {footer}"


def test_no_events_no_table():
    for events in (EventList(), EventList.from_store(EventStore.from_rows([]))):
        assert events.table() == events.table(sort_by="nonsense", header="H") == str(events) == ""


def test_shares_of_nothing_and_of_asynchronous_events():
    assert event_list(("a", 5, 5)).key_averages().table().split("\n")[3].split() == [
        "a",
        "NaN",
        "0.000us",
        "NaN",
        "0.000us",
        "0.000us",
        "1",
    ]
    row = event_list(("a", 0, 10), is_async=True).key_averages().table().split("\n")[3].split()
    assert row == ["a", "NaN", "0.000us", "0", "10.000us", "10.000us", "1"]


def test_memory_column():
    sizes = (0, 512, 1024, -2048, 5 * 1024**2, 3 * 1024**3)
    events = event_list(
        *[(f"op{i}", 10 * i, 10 * i + 5, {"cpu_memory_usage": n}) for i, n in enumerate(sizes)],
        listing={"profile_memory": True},
    )
    lines = events.key_averages().table().split("\n")[3:-4]
    assert [" ".join(line.split()[6:8]) for line in lines] == [
        "0 B",
        "512 B",
        "1.00 KB",
        "-2.00 KB",
        "5.00 MB",
        "3.00 GB",
    ]


def test_number_formats():
    assert [format_time(t) for t in (0, 1, 999.9994, 1000, 999999.9, 1e6, -5)] == [
        "0.000us",
        "1.000us",
        "999.999us",
        "1.000ms",
        "1000.000ms",
        "1.000s",
        "-5.000us",
    ]
    assert [format_memory(n) for n in (0, 1, -1, 1023, 1024, -2048, 1024**2, 1024**3)] == [
        "0 B",
        "1 B",
        "-1 B",
        "1023 B",
        "1.00 KB",
        "-2.00 KB",
        "1.00 MB",
        "1.00 GB",
    ]
    assert [format_time_share(a, b) for a, b in ((1, 3), (0, 0), (2, 1))] == ["33.33%", "NaN", "200.00%"]
    with pytest.raises(AssertionError, match="time_us == 0 but got 3"):
        format_time_share(3, 0)


def test_table_of_a_recordings_events_is_that_of_their_objects():
    inputs = InputInfo(((2, 3), ()), ("float", "Scalar"), ((3, 1), ()), (None, 1))
    store = EventStore.from_rows(
        [
            {
                "name": "aten::add",
                "start": 2000,
                "end": 3000,
                "inputs": inputs,
                "stack": ("model.py(1): forward",),
                "flops": 6,
                "overload": "out",
            },
            {"name": "block", "start": 1000, "end": 9000},
            {"name": "aten::add", "start": 9500, "end": 9900},
        ],
        memory=[{"time": 2500, "bytes": 24}, {"time": 20000, "bytes": -24}],
        options={"profile_memory": True, "with_flops": True, "capture_overload_names": True},
    )
    events = EventList.from_store(store)
    text = events.table()
    assert titles(text) == [
        "Name",
        "Overload Name",
        *BASE[1:],
        "CPU Mem",
        "Self CPU Mem",
        "# of Calls",
        "Input Shapes",
        "Source Location",
        "Total FLOPs",
    ]
    assert text == build_table(events, with_flops=True, profile_memory=True, summary=summarize(events))
