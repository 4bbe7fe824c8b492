"""Traces of real runs in the programs that people open them with: each takes them whole, without complaint."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from workloads import STEPS, WORKLOADS, write, write_device, write_npu

NAMES = [*WORKLOADS, "device", "npu"]
FOLDER = Path(os.environ.get("INTEROP_FOLDER", ".")).resolve()
PACKAGE = FOLDER / "node_modules" / "speedscope"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    for name in WORKLOADS:
        write(name, folder)
    write_device(folder)
    write_npu(folder)
    return folder


@pytest.fixture(scope="session")
def traces(folder):
    return {path.name.partition(".")[0]: path for path in folder.iterdir()}


def events_of(path):
    return json.loads(path.read_text())["traceEvents"]


def spans_of(path):
    """How many spans of each category a trace has."""
    return Counter(event["cat"] for event in events_of(path) if event["ph"] == "X")


@pytest.fixture(scope="session")
def figures():
    """What was counted, a line for each: figures.txt, for docs/interop.md."""
    found: list[str] = []
    yield found
    (FOLDER / "figures.txt").write_text("\n".join(found) + "\n")


def test_traces_are_there(traces, figures):
    assert sorted(traces) == sorted(NAMES)
    for name, path in traces.items():
        events = events_of(path)
        figures.append(
            f"{name}: {len(events)} events, {sum(spans_of(path).values())} spans, "
            f"{sum(e['name'] == '[memory]' for e in events)} of memory"
        )


# ------------------------------------------------------------------------------ TensorBoard


@pytest.mark.parametrize("name", NAMES)
def test_tensorboard_plugin_counts_every_event(traces, tmp_path, figures, name):
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.node import OperatorNode

    data = RunProfileData.parse(name, None, str(traces[name]), str(tmp_path))
    spans = spans_of(traces[name])
    taken = Counter(event.type for event in data.events)
    events = events_of(traces[name])
    modules = sum("Python module id" in e.get("args", {}) for e in events)
    assert taken["Operator"] == spans["cpu_op"]
    assert taken["ProfilerStep"] == (1 if name == "device" else STEPS)
    assert taken["Memory"] == sum(event["name"] == "[memory]" for event in events)
    assert (taken["Module"], taken["python_function"]) == (modules, spans["python_function"] - modules)
    assert (taken["Kernel"], taken["Memcpy"], taken["Memset"]) == (spans["kernel"], spans["gpu_memcpy"], spans["gpu_memset"])
    # Every op has its place in the tree; one that straddled another would have been dropped.
    placed = 0
    waiting = list(data.tid2tree.values())
    while waiting:
        node = waiting.pop()
        waiting += node.children
        placed += isinstance(node, OperatorNode) and node.type == "Operator"
    assert placed == spans["cpu_op"]
    if name != "device":
        assert data.memory_snapshot is not None
    figures.append(f"TensorBoard {name}: {sum(taken.values())} events, {placed} ops in the tree")


def test_tensorboard_plugin_makes_every_view(folder, figures):
    from torch_tb_profiler import io
    from torch_tb_profiler.profiler.loader import RunLoader

    run = RunLoader("run", str(folder), io.Cache()).load()
    views = {profile.worker: {view.display_name for view in profile.views} for profile in run.profiles.values()}
    assert sorted(views) == sorted(NAMES)
    for name in WORKLOADS:
        assert views[name] >= {"Overview", "Operator", "Trace", "Memory", "Module"}, name
    assert views["device"] >= {"Overview", "Operator", "Trace", "Kernel"}
    assert views["npu"] >= {"Overview", "Operator", "Trace", "Kernel", "Memory", "Module"}
    for profile in run.profiles.values():
        assert profile.operation_table_by_name["data"], profile.worker


# ------------------------------------------------------------------------------ Chrome's viewer


@pytest.mark.parametrize("name", NAMES)
def test_chromes_viewer_finds_a_pair_for_every_flow(traces, figures, name):
    """It knows a flow by its number alone: a second start is dropped, and an end takes the flow away."""
    flows = [event for event in events_of(traces[name]) if event["ph"] in "sf"]
    opened: set[int] = set()
    pairs = 0
    for event in sorted(flows, key=lambda event: (event["ts"], event["ph"] == "f")):
        assert (event["ph"] == "f") == (event["id"] in opened), event
        if event["ph"] == "s":
            opened.add(event["id"])
        else:
            opened.remove(event["id"])
            pairs += 1
    assert not opened and 2 * pairs == len(flows)
    figures.append(f"Chrome's viewer {name}: {pairs} flow pairs")


# ------------------------------------------------------------------------------ HolisticTraceAnalysis


@pytest.mark.parametrize("name", NAMES)
def test_holistic_trace_analysis_counts_every_event(traces, figures, name):
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: str(traces[name])}, include_last_profiler_step=True)
    frame, symbols = analysis.t.get_trace(0), analysis.t.symbol_table.get_sym_table()
    found = Counter(symbols[number] for number in frame["cat"])
    spans = spans_of(traces[name])
    del spans["Trace"]  # the recording itself, which HTA leaves out of every trace
    assert {category: found[category] for category in spans} == spans
    assert sorted(analysis.get_profiler_steps()) == ([1] if name == "device" else list(range(1, STEPS + 1)))
    if name == "device":
        kinds, kernels = analysis.get_gpu_kernel_breakdown(visualize=False)
        assert len(kinds) and len(kernels)
        assert len(analysis.get_cuda_kernel_launch_stats(visualize=False)[0]) == 40
    figures.append(f"HTA {name}: {len(frame)} rows")


# ------------------------------------------------------------------------------ VizTracer


def test_viztracer_combines_them_all(traces, tmp_path, figures):
    target = tmp_path / "combined.json"
    run = subprocess.run(
        [sys.executable, "-m", "viztracer", "--combine", *map(str, traces.values()), "-o", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    combined = json.loads(target.read_text())["traceEvents"]
    expected = sum((Counter(e["ph"] for e in events_of(path)) for path in traces.values()), Counter())
    assert Counter(event["ph"] for event in combined) == expected
    figures.append(f"VizTracer: {len(combined)} events of {len(traces)} traces")


def test_viztracer_makes_a_page(traces, tmp_path):
    target = tmp_path / "combined.html"
    chosen = [str(traces["gpt"]), str(traces["mlp"])]
    run = subprocess.run(
        [sys.executable, "-m", "viztracer", "--combine", *chosen, "-o", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "aten::scaled_dot_product_attention" in target.read_text()


# ------------------------------------------------------------------------------ speedscope


def mended(messages):
    """The spans that speedscope had to mend.

    It also mentions frames of one function, called by itself, that began before the recording and ended after it: they
    have one time, and it takes one's end for the other's.
    """
    pairs = re.findall(r'Tried to end "(.*?) {.*?" when "(.*?) {.*?" was on the top of the stack', messages)
    assert len(pairs) == len(messages.splitlines()), messages
    return [pair for pair in pairs if pair[0] != pair[1]]


@pytest.mark.parametrize("name", NAMES)
def test_speedscope_imports_every_span(traces, figures, name):
    if not PACKAGE.is_dir():
        pytest.skip("npm did not install speedscope: is there a node?")
    script = Path(__file__).parent / "speedscope_import.mjs"
    run = subprocess.run(["node", str(script), str(PACKAGE), str(traces[name])], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    assert mended(run.stderr) == []
    profiles = json.loads(run.stdout)
    lanes = {(e["pid"], e["tid"]) for e in events_of(traces[name]) if e["ph"] == "X"}
    assert len(profiles) == len(lanes)
    assert sum(profile["spans"] for profile in profiles) == sum(spans_of(traces[name]).values())
    figures.append(f"speedscope {name}: {sum(profile['spans'] for profile in profiles)} spans in {len(profiles)} profiles")


logging.getLogger("hta").setLevel(logging.ERROR)
