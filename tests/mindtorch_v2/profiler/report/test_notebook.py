"""Tables for notebooks: the figures of the text table, and no markup but their own."""

from __future__ import annotations

import re

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.exporters import notebook
from mindtorch_v2.profiler.views.event_list import EventList


def cells(table: str) -> list[list[str]]:
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]


def test_averages_come_with_the_most_self_time_first(device_store):
    rows = cells(EventList.from_store(device_store).key_averages()._repr_html_())
    assert rows[0] == [
        "Name",
        "Calls",
        "Self CPU",
        "Self CPU %",
        "CPU total",
        "CPU time avg",
        "Self device",
        "Self CPU Mem",
        "FLOPs",
    ]
    kernel = next(row for row in rows if row[0] == "gemm")
    assert kernel == ["gemm", "2", "0.000us", "0.00%", "0.000us", "0.000us", "800.000us", "0 B", "–"]
    order = [row[0] for row in rows[1:]]
    assert order.index("ProfilerStep*") < order.index("MulBackward0")


def test_names_are_text(device_store):
    events = EventList.from_store(device_store)
    for table in (events._repr_html_(), events.key_averages()._repr_html_()):
        assert "<img" not in table and "&lt;img src=x onerror=alert(1)&gt;" in table


def test_events_are_shown_in_order_of_start(device_store):
    rows = cells(EventList.from_store(device_store)._repr_html_())
    assert rows[0] == ["Name", "Start", "Duration", "Self CPU", "Thread"]
    assert rows[2][:3] == ["enumerate(DataLoader)#Iter.__next__", "1.000us", "100.000us"]


def test_only_the_largest_rows_are_shown(million):
    table = notebook.list_table(EventList.from_store(million))
    assert len(cells(table)) == 41 and "1,000,000 events in order of start; 999,960 more are not shown" in table


def test_an_empty_list():
    assert EventList()._repr_html_() == "<p>no events</p>"


def test_a_profile_shows_its_averages_once_it_has_some():
    prof = profile()
    assert prof._repr_html_() is None
    with prof:
        torch.ones(2).add(1)
        assert prof._repr_html_() is None
    assert "aten::add" in prof._repr_html_()
