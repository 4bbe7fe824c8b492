"""Tables of events, averages and recordings; pandas, Arrow and Polars themselves are tried by `make interop`."""

from __future__ import annotations

import json

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.store.store import EventStore
from mindtorch_v2.profiler.views import tabular
from mindtorch_v2.profiler.views.event_list import EventList

RECORDINGS = ("mlp_everything.json.gz", "mlp_plain.json.gz")


@pytest.mark.parametrize("name", RECORDINGS)
def test_columns_of_a_recording_are_the_attributes_of_its_events(fixtures, name):
    events = load(fixtures / name).events()
    by_columns, by_events = events.to_dict(), tabular.to_dict(list(events))
    assert sorted(by_columns) == sorted(by_events)
    for column, cells in by_columns.items():
        assert (
            cells == pytest.approx(by_events[column]) if "us" in column or "time" in column else cells == by_events[column]
        ), column
    json.dumps(by_columns)


def test_columns_of_device_rows_are_the_attributes_of_their_events():
    rows = [
        {"name": "aten::mm", "start": 0, "end": 5000, "module": "net.fc"},
        {"name": "launch", "kind": observer.RUNTIME, "start": 1000, "end": 2000, "correlation": 1},
        {
            "name": "matmul",
            "kind": observer.KERNEL,
            "start": 3000,
            "end": 9000,
            "stream": 7,
            "launch_thread": 1,
            "launch_ns": 1500,
            "correlation": 1,
            "device_type": 1,
            "device_index": 2,
        },
    ]
    store = EventStore.from_rows(sorted(rows, key=lambda row: -row["start"]), options={"use_device": "cuda"})
    events = EventList.from_store(store)
    table = events.to_dict()
    assert table == tabular.to_dict(list(events))
    assert dict(zip(table["name"], table["device"], strict=True)) == {"aten::mm": "cpu", "launch": "cpu", "matmul": "cuda:2"}
    assert table["module"][table["name"].index("matmul")] == "net.fc"
    assert table["device_time_total"][table["name"].index("aten::mm")] == 6


def test_ids_are_unique_and_parents_can_be_joined(fixtures):
    for table in (
        load(fixtures / "mlp_everything.json.gz").events().to_dict(),
        tabular.to_dict(load(fixtures / "mlp_everything.json.gz").store),
    ):
        ids = table["id"]
        assert len(set(ids)) == len(ids) and "python" in table["kind"]
        place = {number: at for at, number in enumerate(ids)}
        parents = [None if parent is None else place[parent] for parent in table["parent_id"]]
        start, end = ("start_us", "end_us") if "start_us" in table else ("start_ns", None)
        for at, parent in enumerate(parents):
            if parent is not None:
                assert table[start][parent] <= table[start][at]
                assert end is None or table[end][parent] >= table[start][at]
        linear = table["name"].index("aten::linear")
        assert table["name"][parents.index(linear)] == "aten::t" and None in parents


def test_no_event_is_made_for_a_table_of_a_recording(fixtures):
    events = load(fixtures / "mlp_everything.json.gz").events()
    assert events.to_dict()["name"] and not any(events._rows._events)
    events[0].name = "renamed"
    assert events.to_dict()["name"][0] == "renamed"


def test_averages_and_stores(fixtures):
    profile = load(fixtures / "mlp_everything.json.gz")
    averages = profile.key_averages(group_by_input_shape=True)
    table = averages.to_dict()
    assert table["key"] == [row.key for row in averages] and table["count"] == [row.count for row in averages]
    assert {len(column) for column in table.values()} == {len(averages)}
    assert "[[8, 16], " in table["input_shapes"][table["key"].index("aten::linear")]
    of_store = tabular.to_dict(profile.store)
    assert set(of_store["kind"]) >= {"op", "scope", "python", "module", "engine", "backward"}
    assert set(filter(None, of_store["module"])) == {
        profile.store.modules[at] for at in set(profile.store.module.tolist()) - {-1}
    }
    with pytest.raises(TypeError, match="events or of averages"):
        tabular.to_dict([1])


def test_a_text_that_stands_twice_is_one_category():
    column = tabular.Coded(tabular.np.array([0, 1, 2, -1]), ["a", "b", "a"])
    codes, texts = column.distinct()
    assert texts == ["a", "b"] and codes.tolist() == [0, 1, 0, -1]
    assert column.tolist() == column.distinct().tolist() == ["a", "b", "a", None]
