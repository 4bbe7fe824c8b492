"""Ascend folders in msprof-analyze: what it says of one that this project wrote is what was recorded."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.store.store import EventStore, RowDetails

TOOL = Path(sys.executable).with_name("msprof-analyze")
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


@pytest.fixture
def folders(tmp_path):
    made = tmp_path / "job"
    made.mkdir()
    for rank in (0, 1):
        writers.get("ascend")(recording(rank), made / f"rank{rank}_ascend_pt")
    return made


def analyze(*arguments: object) -> str:
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_cluster_reports_the_recorded_times(folders, tmp_path):
    analyze("cluster", "-d", folders, "-o", tmp_path / "out")
    with open(tmp_path / "out" / "cluster_analysis_output" / "cluster_step_trace_time.csv") as file:
        rows = list(csv.DictReader(file))
    figures = {
        (row["Step"], row["Index"]): [float(row[name]) for name in ("Computing", "Communication", "Overlapped")] for row in rows
    }
    assert figures == {(str(step), str(rank)): [400 + 50 * rank, 300, 100 + 50 * rank] for step in range(3) for rank in (0, 1)}


def test_compare_and_advisor_open_them(folders, tmp_path):
    said = analyze(
        "compare", "-d", folders / "rank0_ascend_pt", "-bp", folders / "rank1_ascend_pt", "-o", tmp_path / "compared"
    )
    assert "Failed" not in said and list((tmp_path / "compared").glob("performance_comparison_result_*.xlsx"))
    analyze("advisor", "all", "-d", folders / "rank0_ascend_pt", "-o", tmp_path / "advised")
