"""Folders that were recorded on a 910B: what is read of them is what msprof-analyze says of them.

They are test data of MindStudio Insight's public repository, which is fetched once into $INTEROP_FOLDER/msinsight.
ASCEND_RECORDED names them where they are already: a folder with text/level1/rank0_ascend_pt and so on.
"""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from msprof_analyze_tool import TOOL, analyze, cluster_steps, sheets

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.analysis.device.idle import step_overlap
from mindtorch_v2.profiler.formats.ascend.contents import Contents
from mindtorch_v2.profiler.results import writers

REPOSITORY = "https://github.com/Ascend/msinsight.git"
DATA = "test/data/pytorch"
RANKS = (0, 1)

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="msprof-analyze is not installed")


@pytest.fixture(scope="module")
def recorded() -> Path:
    """The folder with the recordings."""
    if os.environ.get("ASCEND_RECORDED"):
        return Path(os.environ["ASCEND_RECORDED"])
    folder = Path(os.environ.get("INTEROP_FOLDER", "build/interop")) / "msinsight"
    if not (folder / DATA).is_dir():
        clone = ["git", "clone", "--quiet", "--depth", "1", "--filter", "blob:none", "--sparse", REPOSITORY, str(folder)]
        for command in (clone, ["git", "-C", str(folder), "sparse-checkout", "set", DATA]):
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=300, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"}
            )
            if done.returncode:
                pytest.skip(f"{REPOSITORY} cannot be fetched: {done.stderr.strip().splitlines()[-1]}")
    return folder / DATA


@pytest.fixture(scope="module", params=["text", "db"])
def level1(request, recorded) -> Path:
    """Two ranks of a training step with four all-reduces."""
    return recorded / request.param / "level1"


@pytest.fixture(scope="module")
def stores(level1):
    loaded = [load(level1 / f"rank{rank}_ascend_pt") for rank in RANKS]
    assert all(each.recovery.intact for each in loaded)
    return [each.store for each in loaded]


def test_kernels_and_collectives_have_the_totals_of_compare(level1, stores, tmp_path):
    analyze("compare", "-d", level1 / "rank0_ascend_pt", "-bp", level1 / "rank1_ascend_pt", "-o", tmp_path)
    (book,) = tmp_path.glob("performance_comparison_result_*.xlsx")
    found = sheets(book)
    # Columns: number, type, input shapes, then total, mean, longest, shortest and calls of rank 1, then those of rank 0.
    kernels = [row for row in found["KernelCompare"][2:] if len(row) > 12]
    assert len(kernels) > 100
    for rank, column in ((1, 3), (0, 8)):
        # Totals are rounded to two decimals there.
        assert kernel_totals(stores[rank]) == {
            (row[1], row[2].strip('"')): (int(row[column + 4]), pytest.approx(float(row[column]), abs=0.00501))
            for row in kernels
            if not row[1].startswith("hcom_")
        }
    together = next(row for row in found["CommunicationCompare"] if row[1:2] == ["allreduce"])
    for rank, column in ((1, 2), (0, 8)):
        store = stores[rank]
        spent = store.duration[Contents(store).collectives]
        # Their times have parts of nanoseconds.
        assert (len(spent), int(spent.sum())) == (
            int(together[column]),
            pytest.approx(1000 * float(together[column + 1]), abs=4),
        )


def kernel_totals(store):
    """Calls and microseconds of kernels by type and shapes of their inputs."""
    contents = Contents(store)
    totals: dict[tuple[str, str], tuple[int, float]] = {}
    for row in contents.kernels.tolist():
        details = contents.details(row)
        key = details["Type"], str(details.get("Input Shapes", "N/A"))
        calls, total = totals.get(key, (0, 0.0))
        totals[key] = calls + 1, total + int(store.duration[row]) / 1000
    return totals


def test_steps_have_the_times_of_cluster(level1, stores, tmp_path):
    analyze("cluster", "-d", level1, "-o", tmp_path)
    rows = cluster_steps(tmp_path / "cluster_analysis_output")
    times = {int(rank): [float(part) for part in parts] for _, rank, *parts in rows}
    for rank, store in zip(RANKS, stores, strict=True):
        (step,) = step_overlap(store)
        overlapped = step.communication_ns - step.not_overlapped_ns
        spent = [step.computing_ns / 1000, step.communication_ns / 1000, overlapped / 1000]
        assert spent == pytest.approx(times[rank], abs=0.05)  # a fifth of a nanosecond is lost with each kernel


def test_ops_have_the_device_times_of_operator_details(recorded):
    """Of torch_npu's own table, which has a row for each call."""
    folder = recorded / "text" / "level1" / "rank0_ascend_pt"
    expected: dict[str, float] = {}
    with open(folder / "ASCEND_PROFILER_OUTPUT" / "operator_details.csv", newline="") as file:
        for row in csv.DictReader(file):
            expected[row["Name"]] = expected.get(row["Name"], 0) + float(row["Device Self Duration(us)"])
    found = {row.key: row.self_device_time_total for row in load(folder).key_averages() if row.key in expected}
    assert sum(map(bool, expected.values())) > 30
    assert found == pytest.approx(expected, abs=0.02)


def test_databases_tell_the_same_shapes(recorded):
    """The two forms are of two runs of one script; in the databases sizes and types stand in each other's columns."""
    shapes = []
    for form in ("text", "db"):
        events = load(recorded / form / "level1" / "rank0_ascend_pt").events()
        shapes.append([event.input_shapes for event in events if event.name == "aten::addmm"])
    assert shapes[0] == shapes[1] and shapes[0][0][1] == [32, 9216]


@pytest.mark.parametrize("form", ["ascend", "ascend-db"])
def test_what_is_written_again_has_the_same_times(level1, stores, tmp_path, form):
    """Of both ranks in a folder of this project, compared with the recorded one."""
    writers.get(form)(stores[0], tmp_path / "rank0_ascend_pt")
    analyze("compare", "-d", tmp_path / "rank0_ascend_pt", "-bp", level1 / "rank0_ascend_pt", "-o", tmp_path / "out")
    (book,) = (tmp_path / "out").glob("performance_comparison_result_*.xlsx")
    kernels = [row for row in sheets(book)["KernelCompare"][2:] if len(row) > 12]
    assert len(kernels) > 100
    for row in kernels:
        assert [float(cell) for cell in row[3:8]] == pytest.approx([float(cell) for cell in row[8:13]], abs=0.011)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("form", ["text", "db"])
def test_every_folder_is_read_whole(recorded, form, level):
    for rank in RANKS:
        loaded = load(recorded / form / f"level{level}" / f"rank{rank}_ascend_pt")
        store = loaded.store
        assert loaded.recovery.intact, loaded.recovery
        kernels = np.flatnonzero(store.is_work & (store.kind == observer.KERNEL) & ~store.is_collective)
        assert len(kernels) == 187 and (store.launcher[kernels] >= 0).all()
