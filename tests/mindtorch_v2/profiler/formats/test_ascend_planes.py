"""The parts of collectives, on planes, go from text to databases and back as they are."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import ascend_folders as folders
import pytest

from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.formats.ascend import planes
from mindtorch_v2.profiler.formats.ascend.contents import Contents
from mindtorch_v2.profiler.results import writers

OUTPUT = "ASCEND_PROFILER_OUTPUT"
KINDS = ("Reduce_Inline", "Memcpy", "Notify_Wait")


@pytest.fixture
def recorded(tmp_path):
    """A text folder whose collective has three parts on two planes."""
    folder = folders.text_folder(tmp_path / "x_ascend_pt")
    trace = folder / OUTPUT / "trace_view.json"
    events = json.loads(trace.read_text())
    whole = next(event for event in events if event.get("name") == folders.COLLECTIVE[0] and event["ph"] == "X")
    events = [event for event in events if event is whole or event["ph"] != "X" or event["pid"] != whole["pid"]]
    lanes = [whole["tid"] + 1, whole["tid"] + 2]
    names = [
        {"ph": "M", "name": "thread_name", "pid": whole["pid"], "tid": lane, "args": {"name": f"Plane {plane}"}}
        for plane, lane in enumerate(lanes)
    ]
    parts = []
    for number, kind in enumerate(KINDS):
        args = {"notify_id": str(2**64 - 1 if number else 7), "stream id": 4, "task id": 8, "context id": number}
        args |= {"task type": kind, "src rank": 0, "dst rank": number, "transport type": "SDMA", "size(Byte)": 100 * number}
        args |= {"data type": "INVALID_TYPE", "link type": "HCCS", "bandwidth(GB/s)": 1.5, "model id": 4294967295}
        place = {"pid": whole["pid"], "tid": lanes[number % 2], "ts": whole["ts"], "dur": 0.25 * (1 + number)}
        parts.append({"ph": "X", "name": kind, **place, "args": args})
    trace.write_text(json.dumps([*names, *events, *parts]))
    return load(folder)


def facts(store):
    contents = Contents(store)
    return sorted(
        (contents.wall(start), end - start, fields["name"], sorted(fields["args"].items()))
        for start, end, fields in planes.events(contents)
        if planes.is_part(fields)
    )


@pytest.mark.parametrize("forms", [("ascend",), ("ascend-db",), ("ascend-db", "ascend"), ("ascend", "ascend-db")])
def test_parts_are_kept(recorded, tmp_path, forms):
    before = facts(recorded.store)
    assert [(fact[1], fact[2], dict(fact[3])[planes.PLANE]) for fact in before] == [
        (250, "Reduce_Inline", 0),
        (500, "Memcpy", 1),
        (750, "Notify_Wait", 0),
    ]
    store = recorded.store
    work = store.duration[store.is_work].sum()
    for number, form in enumerate(forms):
        writers.get(form)(store, tmp_path / f"{number}_ascend_pt")
        loaded = load(tmp_path / f"{number}_ascend_pt")
        assert loaded.recovery.intact
        store = loaded.store
    assert facts(store) == before
    assert store.duration[store.is_work].sum() == work


def test_a_database_names_the_collective_of_each_part(recorded, tmp_path):
    writers.get("ascend-db")(recorded.store, tmp_path / "y_ascend_pt")
    (path,) = (tmp_path / "y_ascend_pt" / OUTPUT).glob("ascend_pytorch_profiler*.db")
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT n.value, g.value, t.planeId, t.notifyId, t.size, o.opName = t.name FROM COMMUNICATION_TASK_INFO t "
            "JOIN STRING_IDS n ON n.id = t.name JOIN STRING_IDS g ON g.id = t.groupName "
            "JOIN COMMUNICATION_OP o USING (opId) JOIN TASK USING (globalTaskId) ORDER BY t.size"
        ).fetchall()
    name = folders.COLLECTIVE[0]
    assert rows == [(name, folders.GROUP, number % 2, 2**63 - 1 if number else 7, 100 * number, 1) for number in range(3)]
