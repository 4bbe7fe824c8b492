"""Ascend folders in msprof-analyze and in TensorBoard's plugin for Ascend: what they say of one that this project wrote is what
was recorded. And a folder that MindSpore writes, which this project reads.

torch-tb-profiler-ascend, whose modules are named as torch-tb-profiler's are, and mindspore have environments of their own,
which `make interop` makes; ASCEND_PLUGIN_PYTHON and MINDSPORE_PYTHON name other interpreters that have them.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from msprof_analyze_tool import TOOL, analyze, cluster_steps, sheets

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.store.store import EventStore, RowDetails

BASE = 1_736_408_883_000_000_000
COLLECTIVE = RowDetails("", '{"Collective name": "allreduce", "Seq": 0, "In msg nelems": 64, "dtype": "FP32"}')

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="msprof-analyze is not installed")


def recording(rank: int) -> EventStore:
    """Three steps, each with two kernels and a collective that overlaps the second by half."""
    rows = []
    for step in range(3):
        at = step * 1_000_000
        rows.append({"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": at, "end": at + 900_000, "step": step})
        for number, (start, end, stream) in enumerate(((100, 300, 2), (400, 600 + 50 * rank, 2), (500, 800, 3))):
            talks = stream == 3
            launch = at + 1_000 * (10 + 30 * number)
            same = {"step": step, "correlation": 3 * step + number}
            rows.append({"name": "aten::mm", "start": launch, "end": launch + 20_000, "step": step})
            rows.append({"name": "launch", "kind": observer.RUNTIME, "start": launch + 5_000, "end": launch + 9_000, **same})
            work = {
                "name": "allreduce" if talks else "MatMulV2",
                "kind": observer.KERNEL,
                "device_type": 20,
                "device_index": rank,
            }
            times = {"start": at + 1_000 * start, "end": at + 1_000 * end, "launch_thread": 1, "launch_ns": launch + 5_000}
            rows.append({**work, **times, **same, "stream": stream, "details": COLLECTIVE if talks else None})
    metadata = {"distributedInfo": {"backend": "hccl", "rank": rank, "world_size": 2}}
    return EventStore.from_rows(rows, pid=100 + rank, wall_start_ns=BASE, metadata=metadata, options={"use_device": "npu"})


@pytest.fixture(params=["ascend", "ascend-db"])
def folders(request, tmp_path):
    made = tmp_path / "job"
    made.mkdir()
    for rank in (0, 1):
        writers.get(request.param)(recording(rank), made / f"rank{rank}_2026010100000{rank}000_ascend_pt")
    return made


def test_cluster_reports_the_recorded_times(folders, tmp_path):
    said = analyze("cluster", "-d", folders, "-o", tmp_path / "out")
    assert "[ERROR]" not in said, said
    output = tmp_path / "out" / "cluster_analysis_output"
    assert collectives(output) == {(f"step{step}", rank): 0.3 for step in range(3) for rank in (0, 1)}
    rows = cluster_steps(output)
    figures = {(str(step), str(rank)): [float(figure) for figure in times] for step, rank, *times in rows}
    assert figures == {(str(step), str(rank)): [400 + 50 * rank, 300, 100 + 50 * rank] for step in range(3) for rank in (0, 1)}


def collectives(output: Path) -> dict[tuple[str, int], float]:
    """Milliseconds of the collective of each step and rank."""
    if (output / "cluster_analysis.db").exists():
        with closing(sqlite3.connect(output / "cluster_analysis.db")) as database:
            rows = database.execute(
                "SELECT step, rank_id, elapsed_time FROM ClusterCommunicationTime WHERE hccl_op_name LIKE 'hcom%'"
            ).fetchall()
        return {(step, int(rank)): time for step, rank, time in rows}
    (group,) = json.loads((output / "cluster_communication.json").read_text()).values()
    return {
        (step, int(rank)): figures["Communication Time Info"]["Elapse Time(ms)"]
        for step, named in group.items()
        for name, ranks in named.items()
        if name.startswith("hcom")
        for rank, figures in ranks.items()
    }


def test_compare_reports_the_recorded_times(folders, tmp_path):
    first, second = sorted(folders.iterdir())
    said = analyze("compare", "-d", first, "-bp", second, "-o", tmp_path / "compared")
    assert "Failed" not in said and "[ERROR]" not in said
    (book,) = (tmp_path / "compared").glob("performance_comparison_result_*.xlsx")
    # Milliseconds of three steps, of the second folder and of the first.
    assert overall(book) == {
        "Computing Time": ["1.35", "1.2"],
        "Uncovered Communication Time": ["0.45", "0.6"],
        "Free Time": ["0.9", "0.9"],
        "E2E Time": ["2.7", "2.7"],
    }


def overall(book: Path) -> dict[str, list[str]]:
    """Durations of the first sheet of a workbook, those of both folders."""
    rows = sheets(book)["OverallMetrics"]
    return {cells[0]: [cells[1], cells[4]] for cells in rows if len(cells) > 4 and cells[0].endswith("Time")}


def test_advisor_takes_them_apart_into_the_recorded_times(folders, tmp_path):
    said = analyze("advisor", "all", "-l", "en", "-d", sorted(folders.iterdir())[0], "-o", tmp_path / "advised")
    assert "Traceback" not in said and "[ERROR]" not in said and "not found" not in said, said
    assert list((tmp_path / "advised").rglob("*.html"))
    # Of the whole, computing, exposed communication and free, in the table that ends its words.
    table = said[said.index("+-----") :]
    assert re.findall(r"(\d+(?:\.\d+)?) ?ms", table)[:4] == ["2.7", "1.2", "0.6", "0.9"], table


PLUGIN = """
import json, sys
from torch_tb_profiler import io
from torch_tb_profiler.profiler.loader import RunLoader

if __name__ == "__main__":
    run = RunLoader("run", sys.argv[1], io.Cache(), "Ascend").load()
    profiles = {profile.worker: profile for profile in run.profiles.values()}
    together = profiles.pop("All")
    print(json.dumps({
        "ranks": {
            worker: {
                "views": [view.display_name for view in profile.views],
                "columns": [column["name"] for column in profile.kernel_table["data"]["columns"]],
                "kernels": profile.kernel_table["data"]["rows"],
            }
            for worker, profile in profiles.items()
        },
        "overlap": together.steps_to_overlap["data"]["all"],
        "collectives": {worker: table["rows"] for worker, table in together.comm_ops["data"].items()},
    }))
"""


def interpreter(variable: str, environment: str) -> str:
    """An interpreter that has what this one cannot have beside its own packages."""
    python = os.environ.get(variable) or os.path.abspath(
        os.path.join(os.environ.get("INTEROP_FOLDER", ""), environment, "bin", "python")
    )
    if not os.path.exists(python):
        pytest.skip(f"{variable} is not set, and there is no {python}")
    return python


@pytest.mark.parametrize("folders", ["ascend"], indirect=True)
def test_the_plugin_of_tensorboard_shows_the_recorded_kernels(folders, tmp_path):
    python = interpreter("ASCEND_PLUGIN_PYTHON", "ascend")
    (tmp_path / "plugin.py").write_text(PLUGIN)
    done = subprocess.run([python, tmp_path / "plugin.py", folders], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout.splitlines()[-1])
    assert sorted(shown["ranks"]) == ["rank0", "rank1"]
    for rank in (0, 1):
        run = shown["ranks"][f"rank{rank}"]
        assert {"Operator", "Kernel", "Trace"} <= set(run["views"])
        durations = [float(row[run["columns"].index("Duration(us)")]) for row in run["kernels"]]
        assert sorted(durations) == sorted([200.0, 200.0 + 50 * rank, 300.0] * 3)
        # Computing alone, both, communication alone, neither, of a step; name, calls, bytes, time of the collectives.
        assert shown["overlap"][f"rank{rank}"] == [300, 100 + 50 * rank, 200 - 50 * rank, 100]
        assert shown["collectives"][f"rank{rank}"] == [["hcom_allreduce__", 3, 0, 0, 900.0, 300, 0, 0]]


MINDSPORE = """
import sys

import numpy as np
import mindspore
from mindspore.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
mindspore.set_device("CPU")
model = mindspore.nn.SequentialCell(mindspore.nn.Dense(4, 3), mindspore.nn.ReLU(), mindspore.nn.Dense(3, 2))
optimizer = mindspore.nn.Adam(model.trainable_params())
gradients = mindspore.value_and_grad(lambda x: model(x).sum(), None, optimizer.parameters)
batch = mindspore.Tensor(np.ones((2, 4), np.float32))
with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
    on_trace_ready=tensorboard_trace_handler(sys.argv[1]),
    with_stack=True,
    profile_memory=True,
) as prof:
    for _ in range(3):
        loss, found = gradients(batch)
        optimizer(found)
        loss.asnumpy()
        prof.step()
"""


def test_a_folder_of_mindspore_is_read_whole(tmp_path):
    (tmp_path / "train.py").write_text(MINDSPORE)
    command = [interpreter("MINDSPORE_PYTHON", "mindspore"), tmp_path / "train.py", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "out").glob("*_ascend_ms")
    events = json.loads((folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text())
    spans = [event for event in events if event["ph"] == "X"]
    loaded = load(folder)
    assert loaded.recovery.intact, loaded.recovery
    assert len(loaded.store) == len(spans) > 0
    assert int(loaded.store.duration.sum()) == sum(round(float(event["dur"]) * 1000) for event in spans)
    assert "MatMul" in loaded.store.names
