"""Figures of collectives in folders of Ascend's profilers: what was told is kept in both forms, what was not is left out."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import ascend_folders as folders
import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.store.store import EventStore, RowDetails

READ = {"text": folders.text_folder, "database": folders.database_folder}
OUTPUT = "ASCEND_PROFILER_OUTPUT"
NAME = f"{folders.COLLECTIVE[0]}@{folders.GROUP}"


def written(store, folder):
    """communication.json and communication_matrix.json of the store, None for one that is not there."""
    writers.get("ascend")(store, folder)
    files = [folder / OUTPUT / name for name in ("communication.json", "communication_matrix.json")]
    return [json.loads(file.read_text()) if file.exists() else None for file in files]


@pytest.mark.parametrize("through", ["text", "database", "trace", "saved"])
@pytest.mark.parametrize("form", READ)
def test_what_a_folder_tells_is_kept_in_every_form(tmp_path, form, through):
    loaded = load(READ[form](tmp_path / "x_ascend_pt"))
    if through == "database":
        writers.get("ascend-db")(loaded.store, tmp_path / "y_ascend_pt")
        loaded = load(tmp_path / "y_ascend_pt")
    elif through != "text":
        loaded.export("chrome" if through == "trace" else "saved", tmp_path / "y")
        loaded = load(tmp_path / "y")
    communication, matrix = written(loaded.store, tmp_path / "z_ascend_pt")
    figures = communication["step7"]["collective"][NAME]
    assert figures["Communication Time Info"] == folders.TIMES
    links = figures["Communication Bandwidth Info"]
    assert links == {
        "HCCS": {**folders.LINK, "Size Distribution": folders.PACKETS},
        "SDMA": {**folders.LINK, "Size Distribution": {}},
    }
    total = communication["step7"]["collective"]["Total Op Info"]
    ratios = {"Wait Time Ratio": round(0.0025 / 0.015, 4), "Synchronization Time Ratio": round(0.001 / 0.0135, 4)}
    assert total["Communication Time Info"] == {**dict([*folders.TIMES.items()][1:]), **ratios}
    assert total["Communication Bandwidth Info"]["SDMA"]["Transit Size(MB)"] == 0.25
    assert matrix == folders.MATRIX


def own_recording(collective, **details):
    told = RowDetails("", json.dumps({"Collective name": collective, "In msg nelems": 64, "dtype": "fp32", **details}))
    where = {"kind": observer.KERNEL, "device_type": 20, "device_index": 0, "stream": 3, "details": told}
    return EventStore.from_rows([{"name": "x", "start": 1_000, "end": 4_500, **where}], wall_start_ns=folders.BASE)


@pytest.mark.parametrize(
    "collective, kind, name", [("HcclAllReduce", "collective", "hcom_allReduce"), ("HcclSend", "p2p", "hcom_send")]
)
def test_a_recording_of_this_project_tells_times_alone(tmp_path, collective, kind, name):
    store = own_recording(collective, Seq=4, **{"Process Group Name": "default"})
    communication, matrix = written(store, tmp_path / "x_ascend_pt")
    start = (folders.BASE + 1_000 - store.clock_start_ns) / 1000
    assert matrix is None
    figures = communication["step0"][kind][f"{name}__000_4_1@default"]
    times = figures["Communication Time Info"]
    assert {times["Start Timestamp(us)"], times["Elapse Time(ms)"], times["Idle Time(ms)"]} == {start, 0.0035}
    assert {times[f"{part} Time(ms)"] for part in ("Transit", "Wait", "Synchronization")} == {0}
    assert figures["Communication Bandwidth Info"] == {}
    total = communication["step0"][kind]["Total Op Info"]
    assert total["Communication Time Info"]["Elapse Time(ms)"] == 0.0035
    writers.get("ascend-db")(store, tmp_path / "y_ascend_pt")
    with closing(sqlite3.connect(tmp_path / "y_ascend_pt" / OUTPUT / "analysis.db")) as database:
        assert database.execute("SELECT * FROM CommAnalyzerTime").fetchall() == [
            (f"{name}__000_4_1", "default", start, 0.0035, 0, 0, 0, 0.0035, "step0", kind)
        ]
        made = {table for (table,) in database.execute("SELECT name FROM sqlite_master")}
    assert made == {"StepTraceTime", "CommAnalyzerTime", "CommAnalyzerBandwidth", "CommAnalyzerMatrix"}
    with closing(sqlite3.connect(tmp_path / "y_ascend_pt" / OUTPUT / "ascend_pytorch_profiler.db")) as database:
        assert database.execute("SELECT dataType, count FROM COMMUNICATION_OP").fetchall() == [(4, 64)]


def test_a_recording_without_collectives_has_no_such_files(tmp_path):
    store = EventStore.from_rows([{"name": "aten::mm", "start": 0, "end": 10}])
    assert written(store, tmp_path / "x_ascend_pt") == [None, None]
    writers.get("ascend-db")(store, tmp_path / "y_ascend_pt")
    with closing(sqlite3.connect(tmp_path / "y_ascend_pt" / OUTPUT / "analysis.db")) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("StepTraceTime",)]


@pytest.mark.parametrize(
    "communication",
    [
        [],
        {"step7": []},
        {"step7": {"collective": {NAME: 3}}},
        {"step7": {"collective": {NAME: {"Communication Time Info": {"Elapse Time(ms)": "long"}}}}},
        {"step7": {"collective": {NAME: {"Communication Bandwidth Info": {"HCCS": {"Size Distribution": {"1": 2}}}}}}},
        {"step7": {"collective": {NAME: {"Communication Bandwidth Info": {"HCCS": 3}}}}},
    ],
)
def test_figures_of_another_form_are_left_out(tmp_path, communication):
    folder = folders.text_folder(tmp_path / "x_ascend_pt")
    for name in ("communication.json", "communication_matrix.json"):
        (folder / OUTPUT / name).write_text(json.dumps(communication))
    loaded = load(folder)
    again, matrix = written(loaded.store, tmp_path / "y_ascend_pt")
    (name,) = (key for key in again["step7"]["collective"] if key.startswith("hcom"))
    assert again["step7"]["collective"][name]["Communication Time Info"]["Elapse Time(ms)"] == 0.020001
    assert matrix is None


def test_a_damaged_analysis_is_told(tmp_path):
    folder = folders.database_folder(tmp_path / "x_ascend_pt")
    (folder / OUTPUT / "analysis.db").write_bytes(b"SQLite format 3\0" + b"\1" * 4000)
    loaded = load(folder)
    assert any("analysis.db cannot be read" in note for note in loaded.recovery.notes)
    assert len(loaded.store) == len(load(folders.database_folder(tmp_path / "y_ascend_pt")).store)
