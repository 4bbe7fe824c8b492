"""The columns of a page: they unpack to what was packed, and give the figures of key_averages()."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.analysis.findings import Finding
from mindtorch_v2.profiler.analysis.memory import categories as memory_categories
from mindtorch_v2.profiler.report import _memory, data
from mindtorch_v2.profiler.report._pack import pack, unpack
from mindtorch_v2.profiler.store.store import EventStore
from mindtorch_v2.profiler.views.event_list import EventList
from mindtorch_v2.profiler.views.events import DeviceType


@given(st.lists(st.integers(-(2**40), 2**40)), st.booleans())
def test_numbers_come_back(numbers, delta):
    assert unpack(*pack(numbers, "f64", delta=delta)).tolist() == numbers


def test_a_column_that_says_the_same_everywhere_takes_no_room():
    spec, text = pack(np.full(1000, -1), "i32")
    assert text == b"" and unpack(spec, text).tolist() == [-1] * 1000


def test_numbers_take_as_many_bytes_as_they_need():
    assert pack([5, 260], "i32")[0]["width"] == 1  # 0 and 255 above the least
    assert pack([5, 261], "i32")[0]["width"] == 2


def read(store: EventStore, memory: Any = None) -> dict[str, Any]:
    """What a page reads."""
    content: dict[str, Any] = {}
    for column in data.columns(store, memory):
        content[column.name] = data.read_tables(column) if column.spec["kind"] == "json" else unpack(column.spec, column.text)
    return content


def sums(columns: dict[str, Any]) -> dict[tuple[str, bool, int], list[int]]:
    """Calls, self and total time, self and total bytes and FLOPs by key, worked out as the page does."""
    names, distance = columns["tables"]["names"], columns["parent"]
    parent = np.where(distance > 0, np.arange(len(distance)) - distance, -1)
    alone, self_bytes = columns["duration"].copy(), np.zeros(len(parent), np.int64)
    np.subtract.at(alone, parent[parent >= 0], columns["duration"][parent >= 0])
    np.add.at(self_bytes, columns["mem_event"], columns["mem_bytes"])
    total_bytes = self_bytes.copy()
    for row in range(len(parent) - 1, -1, -1):
        if parent[row] >= 0:
            total_bytes[parent[row]] += total_bytes[row]
    sums: dict[tuple[str, bool, int], list[int]] = defaultdict(lambda: [0] * 6)
    for row, at in enumerate(columns["name"]):
        if columns["kind"][row] == observer.FIRST_USE:
            continue  # no event of averages
        device = columns["device_type"][row]
        label = columns["tables"]["labels"].get(str(at), names[at])
        values = sums[label, columns["kind"][row] in (observer.SCOPE, observer.STEP), device]
        host = 0 if device else 1
        for at, value in enumerate(
            (
                1,
                host * max(alone[row], 0),
                host * columns["duration"][row],
                self_bytes[row],
                total_bytes[row],
                columns["flops"][row],
            )
        ):
            values[at] += int(value)
    return sums


def expected(events: EventList) -> dict[tuple[str, bool, int], list[int]]:
    return {
        (row.key, row.is_user_annotation, list(DeviceType).index(row.device_type)): [
            row.count,
            round(row.self_cpu_time_total * 1000),
            round(row.cpu_time_total * 1000),
            row.self_cpu_memory_usage,
            row.cpu_memory_usage,
            row.flops,
        ]
        for row in events
    }


def test_figures_are_those_of_key_averages(profiled):
    assert sums(read(profiled.profiler.store)) == expected(profiled.key_averages())


def test_names_that_tables_show_as_one_have_one_label():
    names = ("ProfilerStep#3", "aten::add", "first use of aten::add", "import mindtorch_v2.nn", "hcom_allReduce__586_3_1")
    store = EventStore.from_rows([{"name": name, "start": at, "end": at + 1} for at, name in enumerate(names)])
    tables = read(store)["tables"]
    assert {tables["names"][int(number)]: label for number, label in tables["labels"].items()} == {
        "ProfilerStep#3": "ProfilerStep*",
        "first use of aten::add": "first use of ops",
        "import mindtorch_v2.nn": "import mindtorch_v2.*",
        "hcom_allReduce__586_3_1": "hcom_allReduce_*",
    }


def test_figures_with_a_device(device_store):
    events = EventList.from_store(device_store)
    assert sums(read(device_store)) == expected(events.key_averages())
    device_us = read(device_store)["device_time"].sum() / 1000
    assert device_us == pytest.approx(sum(row.self_device_time_total for row in events.key_averages()))


def test_launches_lead_from_the_call_that_shares_the_number_or_from_the_op_around_it(device_store):
    columns = read(device_store)
    names = [columns["tables"]["names"][at] for at in columns["name"]]
    pairs = [(names[a], names[b]) for a, b in zip(columns["launch"], columns["launched"], strict=True)]
    assert pairs == [("cudaLaunchKernel", "gemm"), ("aten::mm", "Memcpy DtoH")] * 2


def test_backward_nodes_lead_back_to_their_ops(device_store):
    columns = read(device_store)
    names = [columns["tables"]["names"][at] for at in columns["name"]]
    assert [(names[a], names[b]) for a, b in zip(columns["forward"], columns["backward"], strict=True)] == [
        ("<img src=x onerror=alert(1)>", "MulBackward0")
    ] * 2


def test_joined_recordings_are_put_in_order_of_time():
    late = EventStore.from_rows([{"name": "child", "start": 110, "end": 120}, {"name": "late", "start": 100, "end": 200}])
    early = EventStore.from_rows([{"name": "early", "start": 10, "end": 20}])
    columns = read(EventStore.joined([late, early]))
    assert [columns["tables"]["names"][at] for at in columns["name"]] == ["early", "late", "child"]
    assert columns["parent"].tolist() == [0, 0, 1]


def test_memory_knows_what_freed_it(device_store):
    assert _memory.freed_by(device_store).tolist() == [2, 1, 2, 3]


def test_memory_has_the_categories_of_the_memory_profile(profiled):
    profile = profiled._memory_blocks()
    store = profiled.profiler.store
    columns = read(store, memory_categories.uses(store, profile))
    allocated = columns["mem_bytes"] > 0
    by_category = defaultdict(int)
    for amount, category in zip(columns["mem_bytes"][allocated], columns["mem_category"][allocated], strict=True):
        by_category[(*memory_categories.CATEGORIES, "UNKNOWN")[category]] += int(amount)
    wanted = defaultdict(int)
    for _, action, size, category in profile.on_device("cpu"):
        if action.name == "CREATE":
            wanted[category.name if category else "UNKNOWN"] += size
    assert by_category == wanted
    assert len(columns["before_bytes"]) == sum(a.name == "PREEXISTING" for _, a, *_ in profile.on_device("cpu"))


def test_an_empty_recording():
    assert len(read(EventStore.from_rows([]))["start"]) == 0


class _Overhead:
    per_event_ns, events, total_ns, low_ns, high_ns, share = 300.0, 2, 600, 400, 900, 0.01


OVERHEAD = {"per_event_ns": 300.0, "events": 2, "total_ns": 600, "low_ns": 400, "high_ns": 900, "share": 0.01}


@pytest.mark.parametrize("overhead", [_Overhead(), OVERHEAD])
def test_overhead_and_findings_are_taken_as_objects_or_mappings(device_store, overhead):
    finding = Finding("rule", "title", "detail", ("evidence",), "main.py(2)", 10, 0.5)
    about = data.about(device_store, title="t", findings=[finding, finding.to_dict()], overhead=overhead)
    assert about["overhead"] == OVERHEAD
    assert about["findings"][0] == about["findings"][1] == finding.to_dict()


def test_what_is_no_finding_is_refused(device_store):
    with pytest.raises(TypeError, match="named tuple, got str"):
        data.about(device_store, title="t", findings=["faster!"])
