"""Folders of Ascend's profilers, text and database, become the same recording."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing

import ascend_folders as folders
import numpy as np
import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import TraceError, load
from mindtorch_v2.profiler.analysis.device.summary import device_summaries, kernel_groups
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.formats.ascend import kinds
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.store.store import EventStore, RowDetails

FORMS = {"text": folders.text_folder, "database": folders.database_folder}
OUTPUT = "ASCEND_PROFILER_OUTPUT"


@pytest.fixture(params=FORMS)
def loaded(request, tmp_path):
    return load(FORMS[request.param](tmp_path / "host_ascend_pt"))


def rows_of(store, kind):
    return [
        (store.names[name], int(start) - folders.BASE, int(end) - folders.BASE)
        for name, start, end in zip(
            *(column[store.kind == kind] for column in (store.name, store.start, store.end)), strict=True
        )
    ]


def test_everything_is_read(loaded):
    store = loaded.store
    assert loaded.recovery.intact, loaded.recovery
    assert rows_of(store, observer.OP) == [(name, start, end) for name, _, start, end in folders.OPS]
    kernels = [(name, start, end) for name, _, _, start, end, _, _ in folders.KERNELS]
    assert rows_of(store, observer.KERNEL) == [*kernels, folders.COLLECTIVE[:3]]
    assert rows_of(store, observer.COPY) == [("MEMCPY_ASYNC", *folders.COPY[2:4])]
    assert rows_of(store, observer.STEP) == [("ProfilerStep#7", *folders.STEP[2:])]
    assert {name for name, *_ in rows_of(store, observer.RUNTIME)} == {"Enqueue", "Dequeue@addmm"} | {
        f"Node@{call[0]}" for call in folders.CALLS
    }
    assert set(store.step.tolist()) == {7}
    assert store.options["use_device"] == "npu" and store.options["with_stack"]


def test_work_belongs_to_the_op_that_launched_it(loaded):
    """Ops are handed to another thread, which calls CANN: only flows tell which op a kernel is of."""
    store = loaded.store
    launched = {
        store.names[store.name[row]]: store.names[store.name[store.launcher[row]]] for row in np.flatnonzero(store.is_work)
    }
    expected = {name: folders.OPS[op][0] for name, *_, op in [*folders.KERNELS, folders.COPY, folders.COLLECTIVE]}
    assert launched == expected
    averages = {average.key: average for average in loaded.key_averages()}
    assert averages["aten::linear"].self_device_time_total == pytest.approx((2_541 + 7_003) / 1000)


def test_inputs_stacks_details_and_memory(loaded):
    store = loaded.store
    linear = next(event for event in loaded.events() if event.name == "aten::linear")
    assert linear.input_shapes == [[4, 8], [2, 8], []]
    assert list(linear.stack) == folders.STACK
    details = [json.loads(store.row_details[at].arguments) for at in store.details[store.kind == observer.KERNEL]]
    assert details[0]["Input Shapes"] == "4,8;8,2" and details[0]["aiv_vec_ratio"] == 0.25 and details[0]["Type"] == "TransData"
    assert {key: details[-1][key] for key in ("Collective name", "Seq", "Process Group Name", "In msg nelems", "dtype")} == {
        "Collective name": "allreduce",
        "Seq": 4,
        "Process Group Name": folders.GROUP,
        "In msg nelems": 4096,
        "dtype": "FP32",
    }
    assert json.loads(store.row_details[store.details[store.kind == observer.COPY][0]].arguments)["bytes"] == 512
    assert store.mem_bytes.tolist() == [2048, -2048] and store.mem_device_index.tolist() == [folders.DEVICE] * 2
    assert store.mem_total.tolist() == [1 << 20, 1 << 19]
    assert store.metadata["distributedInfo"]["rank"] == 5 and store.metadata["distributedInfo"]["world_size"] == 8


def test_the_device_computes_and_communicates(loaded):
    summary = device_summaries(loaded.store)[0]
    assert summary.device == f"npu:{folders.DEVICE}"
    assert (summary.kernel_ns, summary.communication_ns, summary.copy_ns) == (2_541 + 7_003 + 750, 20_001, 5_000)


def test_it_survives_saving_and_conversion(loaded, tmp_path):
    for format, name in (("saved", "again.mtp"), ("chrome", "again.json")):
        loaded.export(format, tmp_path / name)
        again = load(tmp_path / name).store
        work = [(again.names[again.name[row]], int(again.duration[row])) for row in np.flatnonzero(again.is_work)]
        store = loaded.store
        assert work == [(store.names[store.name[row]], int(store.duration[row])) for row in np.flatnonzero(store.is_work)]


def facts(store):
    """Everything of a recording that both of its forms tell."""
    rows = [
        (store.names[name], int(kind), int(start), int(end), store.threads[tid].ident, int(step))
        for name, kind, start, end, tid, step in zip(
            store.name, store.kind, store.start, store.end, store.tid, store.step, strict=True
        )
    ]
    launched = [
        (store.names[store.name[row]], store.names[store.name[store.launcher[row]]]) for row in np.flatnonzero(store.is_work)
    ]
    inputs = [store.input_infos[at].dims for at in store.shapes if at >= 0]
    stacks = [tuple(store.stacks[at]) for at in store.call_stack if at >= 0]
    memory = [column.tolist() for column in (store.mem_time, store.mem_bytes, store.mem_total, store.mem_reserved)]
    return sorted(rows), sorted(launched), inputs, stacks, memory


@pytest.mark.parametrize("form", ["ascend", "ascend-db"])
def test_a_folder_that_is_written_is_read_as_it_was(loaded, tmp_path, form):
    folder = tmp_path / "written_ascend_pt"
    loaded.export(form, folder)
    again = load(folder)
    assert again.recovery.intact, again.recovery
    assert facts(again.store) == facts(loaded.store)
    assert again.store.metadata["distributedInfo"] == loaded.store.metadata["distributedInfo"]
    with pytest.raises(FileExistsError, match="a folder is not written over"):
        loaded.export(form, folder)


def test_the_tables_have_the_recorded_times(loaded, tmp_path):
    folder = tmp_path / "written_ascend_pt"
    loaded.export("ascend", folder)
    kernels = (folder / OUTPUT / "kernel_details.csv").read_text().splitlines()
    assert [line.split(",")[2] for line in kernels[1:]] == [*(kernel[0] for kernel in folders.KERNELS), folders.COLLECTIVE[0]]
    assert '"""4,8;8,2"""' in kernels[1]  # quotes belong to the value
    steps = (folder / OUTPUT / "step_trace_time.csv").read_text().splitlines()[1].split(",")
    # Computing, exposed, overlapped, communication, free, from the first to the last work, bubble, exposed, before the first.
    assert steps == ["7", "10.294", "20.001", "0.000", "20.001", "29.706", "60.001", "0.000", "20.001", "10.000"]
    loaded.export("ascend-db", tmp_path / "databases")
    with closing(sqlite3.connect(tmp_path / "databases" / OUTPUT / "ascend_pytorch_profiler_5.db")) as recording:
        shapes = "SELECT DISTINCT value FROM COMPUTE_TASK_INFO JOIN STRING_IDS ON inputShapes = id"
        assert recording.execute(shapes).fetchall() == [('"4,8;8,2"',)]
    with closing(sqlite3.connect(tmp_path / "databases" / OUTPUT / "analysis.db")) as analysis:
        figures = analysis.execute("SELECT * FROM StepTraceTime").fetchall()
    assert figures == [(folders.DEVICE, "7", *map(float, steps[1:]))]


def test_a_recording_of_this_project_becomes_a_folder(tmp_path):
    """Ranges stay ranges, though these folders have one category for them and for ops."""
    rows = [
        {"name": "my block", "kind": observer.SCOPE, "start": 0, "end": 9_000},
        {"name": "aten::mm", "start": 1_000, "end": 5_000, "correlation": -1},
        {"name": "launch", "kind": observer.RUNTIME, "start": 2_000, "end": 2_500, "correlation": 1},
        {
            "name": "Mm",
            "kind": observer.KERNEL,
            "start": 3_000,
            "end": 8_000,
            "device_type": 20,
            "device_index": 0,
            "stream": 0,
            "correlation": 1,
            "launch_thread": 1,
            "launch_ns": 2_000,
        },
    ]
    store = EventStore.from_rows(rows, pid=99, wall_start_ns=folders.BASE, options={"use_device": "npu"})
    writers.get("ascend")(store, tmp_path / "own_ascend_pt")
    again = load(tmp_path / "own_ascend_pt")
    assert rows_of(again.store, observer.SCOPE) == [("my block", 0, 9_000)]
    assert rows_of(again.store, observer.KERNEL) == [("Mm", 3_000, 8_000)]
    assert {average.key: average.self_device_time_total for average in again.key_averages()}["aten::mm"] == 5


@pytest.mark.parametrize(
    "name, kind",
    [
        ("trans_TransData_12", "TransData"),
        ("aclnnRelu_ReluAiCore_Relu", "Relu"),
        ("aclnnLogSoftmax_LogSoftmaxAiCore_LogSoftmaxV2", "LogSoftmaxV2"),
        ("MatMulV2", "MatMulV2"),
        ("Adds_", "Adds_"),
    ],
)
def test_the_kind_of_a_kernel_is_in_its_name(name, kind):
    assert kinds.kernel_type(name) == kind


def own_store():
    """A step with two kernels, one of them on both kinds of cores, two calls, and memory that comes and goes out of turn."""
    npu = {"device_type": 20, "device_index": 0, "stream": 1, "launch_thread": 1, "step": 3}
    work = [("trans_TransData_0", 1, 3_000, 8_000, "AI_CORE"), ("aclnnX_X", 2, 9_000, 9_500, "MIX_AIV")]
    rows = [
        {"name": "ProfilerStep#3", "kind": observer.STEP, "start": 0, "end": 20_000, "step": 3},
        {"name": "aten::mm", "start": 1_000, "end": 15_000, "step": 3},
        {"name": "aclnnMm", "kind": observer.RUNTIME, "start": 2_000, "end": 2_500, "correlation": 1, "step": 3},
        {"name": "aclrtMemcpyAsync", "kind": observer.RUNTIME, "start": 2_600, "end": 2_700, "correlation": 2, "step": 3},
    ]
    for name, number, start, end, core in work:
        details = RowDetails("", json.dumps({"Accelerator Core": core}))
        times = {"start": start, "end": end, "launch_ns": 2_000 + 600 * (number - 1)}
        rows.append({"name": name, "kind": observer.KERNEL, "correlation": number, **times, "details": details, **npu})
    place = {"device_type": 20, "device_index": 0, "reserved": 1 << 21}
    moments = ((1_500, 1024, 8), (1_600, 2048, 16), (1_700, -1024, 8), (1_900, -2048, 16))
    memory = [{"time": time, "bytes": size, "addr": address, **place} for time, size, address in moments]
    return EventStore.from_rows(rows, pid=99, wall_start_ns=folders.BASE, options={"use_device": "npu"}, memory=memory)


def test_the_tables_of_an_own_recording_are_as_torch_npus(tmp_path):
    writers.get("ascend")(own_store(), tmp_path / "own_ascend_pt")
    output = tmp_path / "own_ascend_pt" / OUTPUT

    def table(name):
        with open(output / name, newline="") as file:
            return list(csv.DictReader(file))

    assert {(row["Level"], row["API Name"]) for row in table("api_statistic.csv")} == {
        ("acl", "aclnnMm"),
        ("acl", "aclrtMemcpyAsync"),
    }
    assert {row["OP Type"]: row["Core Type"] for row in table("op_statistic.csv")} == {"TransData": "AI_CORE", "X": "MIX_AIV"}
    (mm,) = table("operator_details.csv")  # steps are no operators
    device = [float(value) for key, value in mm.items() if key.startswith("Device")]
    assert (mm["Name"], device) == ("aten::mm", [5.5, 5.5, 5.0, 5.0])
    record = table("memory_record.csv")
    times = [row["Timestamp(us)"].strip() for row in record]
    assert times == sorted(times) and [float(row["Total Allocated(MB)"]) * 1024 for row in record] == [1, 3, 2, 0]
    assert {float(row["Total Reserved(MB)"]) for row in record} == {2}
    calls = [event for event in json.loads((output / "trace_view.json").read_text()) if "@" in event["name"]]
    assert [call["name"] for call in calls] == ["AscendCL@aclnnMm", "AscendCL@aclrtMemcpyAsync"]
    assert {name for name, *_ in rows_of(load(tmp_path / "own_ascend_pt").store, observer.RUNTIME)} == {
        "aclnnMm",
        "aclrtMemcpyAsync",
    }
    writers.get("ascend-db")(own_store(), tmp_path / "db_ascend_pt")
    (path,) = (tmp_path / "db_ascend_pt" / OUTPUT).glob("ascend_pytorch_profiler*.db")
    with closing(sqlite3.connect(path)) as database:
        levels = database.execute("SELECT DISTINCT e.name FROM CANN_API c JOIN ENUM_API_TYPE e ON e.id = c.type").fetchall()
        moments = database.execute("SELECT timestamp, totalReserved FROM MEMORY_RECORD").fetchall()
    assert levels == [("acl",)]
    assert moments == sorted(moments) and {reserved for _, reserved in moments} == {1 << 21}


def test_what_numbers_tell_apart_is_one_row_of_tables():
    collectives = ["hcom_allReduce__586_0_1", "hcom_allReduce__9a_12_1"]
    names = ["trans_TransData_0", "trans_TransData_17", *collectives, "trans_former", "Mm"]
    npu = {"kind": observer.KERNEL, "device_type": 20, "device_index": 0, "stream": 1, "correlation": -1}
    rows = [{"name": name, "start": 10 * at, "end": 10 * at + 1 + at, **npu} for at, name in enumerate(names)]
    store = EventStore.from_rows(rows, pid=1, wall_start_ns=0, options={"use_device": "npu"})
    assert [(group.name, group.calls, group.total_ns) for group in kernel_groups(store)] == [
        ("hcom_allReduce_*", 2, 7),
        ("Mm", 1, 6),
        ("trans_former", 1, 5),
        ("trans_TransData_*", 2, 3),
    ]


def test_a_folder_that_cannot_be_written_leaves_nothing(loaded, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        loaded.export("ascend", tmp_path / "nowhere" / "x_ascend_pt")
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "x_ascend_pt").write_text("a file")
    with pytest.raises(FileExistsError):
        loaded.export("ascend", tmp_path / "closed" / "x_ascend_pt")
    assert [path.name for path in (tmp_path / "closed").iterdir()] == ["x_ascend_pt"]


def test_commands_take_folders(tmp_path, capsys):
    folder = folders.text_folder(tmp_path / "host_ascend_pt")
    assert main(["device", str(folder)]) == 0
    assert "npu:3: busy" in capsys.readouterr().out
    assert main(["table", str(folder)]) == 0
    assert "Self NPU" in capsys.readouterr().out
    assert main(["convert", str(folder), "--to", "chrome", "-o", str(tmp_path / "x.json")]) == 0
    assert main(["convert", str(tmp_path / "x.json"), "-o", str(tmp_path / "back_ascend_pt")]) == 0
    assert rows_of(load(tmp_path / "back_ascend_pt").store, observer.KERNEL)[0] == ("trans_TransData_0", 10_000, 12_541)


def test_parts_of_a_folder_are_opened_too(tmp_path):
    text, database = folders.text_folder(tmp_path / "a_ascend_pt"), folders.database_folder(tmp_path / "b_ascend_pt")
    whole = len(load(text).store)
    assert len(load(text / OUTPUT).store) == whole
    assert len(load(text / OUTPUT / "trace_view.json").store) == whole
    assert len(load(database / OUTPUT / "ascend_pytorch_profiler_5.db").store) == whole


def test_damage_is_counted_and_the_rest_kept(tmp_path):
    folder = folders.text_folder(tmp_path / "x_ascend_pt")
    output = folder / OUTPUT
    trace = output / "trace_view.json"
    trace.write_text(trace.read_text()[:-300])
    kernels = output / "kernel_details.csv"
    kernels.write_text(kernels.read_text() + "7,lost,Relu,AI_CORE,not a time,3,0,1,,,\n")
    (folder / "profiler_info_5.json").write_text("{")
    loaded = load(folder)
    assert not loaded.recovery.complete
    assert loaded.recovery.skipped["line of kernel_details.csv without a time"] == 1
    assert any("profiler_info_5.json" in note for note in loaded.recovery.notes)
    assert len(rows_of(loaded.store, observer.KERNEL)) == 4


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda path: (path / OUTPUT).mkdir(parents=True), "has neither trace_view.json nor a database"),
        (lambda path: [folders.text_folder(path / f"rank{at}_ascend_pt") for at in (0, 1)], "holds 2 recordings"),
        (lambda path: _broken_database(path), "is no database that could be read"),
        (lambda path: _other_database(path), "is a database without ops and tasks"),
    ],
)
def test_what_holds_no_recording_is_told(tmp_path, make, message):
    make(tmp_path / "folder")
    with pytest.raises(TraceError, match=message):
        load(tmp_path / "folder")


def test_a_folder_of_another_kind_is_a_folder(tmp_path):
    with pytest.raises(IsADirectoryError, match="neither ASCEND_PROFILER_OUTPUT nor trace_view.json"):
        load(tmp_path)


@pytest.mark.parametrize(
    "change, lost",
    [
        ("DROP TABLE STRING_IDS", "no table STRING_IDS: names are numbers"),
        ("DROP TABLE TASK", "no table TASK: there is no work of devices"),
        ("UPDATE TASK SET startNs = 'soon' WHERE globalTaskId = 0", "row of TASK without a time, device or stream"),
        ("UPDATE PYTORCH_API SET globalTid = NULL WHERE callchainId = 0", "row of PYTORCH_API without a time or thread"),
        ("ALTER TABLE TASK RENAME COLUMN streamId TO lane", "row of TASK without a time, device or stream"),
    ],
)
def test_what_a_database_lacks_is_told_and_the_rest_kept(tmp_path, change, lost):
    folder = folders.database_folder(tmp_path / "x_ascend_pt")
    with closing(sqlite3.connect(folder / OUTPUT / "ascend_pytorch_profiler_5.db")) as connection:
        connection.execute(change)
        connection.commit()
    loaded = load(folder)
    assert any(lost in told for told in (*loaded.recovery.notes, *loaded.recovery.skipped))
    assert len(loaded.store) > 3


def test_a_database_with_sizes_and_types_in_each_others_columns(tmp_path):
    """As some releases of torch_npu wrote them."""
    folder = folders.database_folder(tmp_path / "x_ascend_pt")
    with closing(sqlite3.connect(folder / OUTPUT / "ascend_pytorch_profiler_5.db")) as connection:
        connection.execute("UPDATE PYTORCH_API SET inputShapes = inputDtypes, inputDtypes = inputShapes")
        connection.commit()
    linear = next(event for event in load(folder).events() if event.name == "aten::linear")
    assert linear.input_shapes == [[4, 8], [2, 8], []]


def test_marks_and_collections_of_a_database(tmp_path):
    folder = folders.database_folder(tmp_path / "x_ascend_pt")
    thread = folders.PROCESS << 32 | folders.THREAD
    with closing(sqlite3.connect(folder / OUTPUT / "ascend_pytorch_profiler_5.db")) as connection:
        connection.execute("INSERT INTO STRING_IDS VALUES (1, 'fetch'), (2, 'data')")
        connection.execute("CREATE TABLE MSTX_EVENTS (startNs, endNs, eventType, message, globalTid, domainId)")
        connection.execute("INSERT INTO MSTX_EVENTS VALUES (?, ?, 2, 1, ?, 2)", (folders.BASE, folders.BASE + 500, thread))
        connection.execute("CREATE TABLE GC_RECORD (startNs, endNs, globalTid)")
        connection.execute("INSERT INTO GC_RECORD VALUES (?, ?, ?)", (folders.BASE + 600, folders.BASE + 700, thread))
        connection.commit()
    loaded = load(folder)
    assert loaded.recovery.intact
    assert rows_of(loaded.store, observer.SCOPE) == [("fetch", 0, 500), ("GC", 600, 700)]


def test_a_folder_of_mindspore_on_a_cpu(tmp_path):
    """Its ops have an empty category, all times are text, and there is neither a table nor information."""
    output = tmp_path / "host_ascend_ms" / OUTPUT
    output.mkdir(parents=True)
    span = {"ph": "X", "tid": 0, "cat": ""}
    events = [
        {"ph": "M", "name": "process_name", "pid": 2, "tid": 0, "args": {"name": "CPU OP"}},
        {**span, "name": "MatMul", "pid": 2, "ts": "1794989802819942.076", "dur": "179.001", "args": {"type": "HostCpuOps"}},
        {"ph": "M", "name": "process_name", "pid": 3, "tid": 0, "args": {"name": "Scope Layer"}},
        {**span, "name": "Default", "pid": 3, "ts": "1794989802819942.076", "dur": "200.000", "args": {}},
    ]
    (output / "trace_view.json").write_text(json.dumps(events))
    loaded = load(output.parent)
    assert loaded.recovery.intact
    assert [(name, end - start) for name, start, end in rows_of(loaded.store, observer.OP)] == [("MatMul", 179_001)]
    assert [(name, end - start) for name, start, end in rows_of(loaded.store, observer.SCOPE)] == [("Default", 200_000)]


def _broken_database(path):
    (path / OUTPUT).mkdir(parents=True)
    (path / OUTPUT / "ascend_pytorch_profiler.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 200)


def _other_database(path):
    (path / OUTPUT).mkdir(parents=True)
    connection = sqlite3.connect(path / OUTPUT / "ascend_pytorch_profiler.db")
    connection.execute("CREATE TABLE other (id)")
    connection.commit()
    connection.close()
