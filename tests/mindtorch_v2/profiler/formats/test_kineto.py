"""Reading traces: PyTorch's own averages of the same session, exact times, and every shape a trace may have."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.formats.detect import read_any
from mindtorch_v2.profiler.formats.kineto import read

RECORDED = ("mlp_plain", "mlp_everything", "cnn_verbose", "gpt_steps", "threads")
SUMS = ("cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage")


def torchs(fixtures, name):
    return json.loads(gzip.decompress((fixtures / f"{name}.averages.json.gz").read_bytes()))


def keyed(rows, get=getattr):
    return {(get(row, "key"), str(get(row, "input_shapes")), get(row, "is_user_annotation")): row for row in rows}


# ------------------------------------------------------------------------------ parity with PyTorch


@pytest.mark.parametrize("grouping", ["by name", "by shapes"])
@pytest.mark.parametrize("name", RECORDED)
def test_averages_are_those_that_torch_gave(fixtures, name, grouping):
    expected = keyed(torchs(fixtures, name)[grouping], dict.__getitem__)
    profile = load(fixtures / f"{name}.json.gz")
    averages = keyed(profile.key_averages(group_by_input_shape=grouping == "by shapes"))
    assert list(averages) == list(expected)
    for key, row in averages.items():
        wanted = expected[key]
        assert row.count == wanted["count"], key
        for attribute in SUMS:
            assert getattr(row, attribute) == pytest.approx(wanted[attribute], rel=1e-3, abs=1e-3), (key, attribute)


@pytest.mark.parametrize("name", RECORDED)
def test_self_times_are_torchs_where_spans_nest(fixtures, name):
    """Where a record_function span overlaps the Python functions that open and close it, torch subtracts the overlap
    twice, down to negative self times; here an event's self time is never negative."""
    expected = keyed(torchs(fixtures, name)["by name"], dict.__getitem__)
    profile = load(fixtures / f"{name}.json.gz")
    averages = keyed(profile.key_averages())
    differing = [
        key
        for key in averages
        if averages[key].self_cpu_time_total != pytest.approx(expected[key]["self_cpu_time_total"], rel=1e-3, abs=1e-3)
    ]
    store = profile.store
    raw = store.duration - store.children_ns
    clipped = {store.names[at] for at in store.name[raw < 0].tolist()}
    assert {key for key, _, _ in differing} <= clipped
    assert len(differing) <= 3


def test_stacks_are_torchs(fixtures):
    expected = torchs(fixtures, "cnn_verbose")["by stack"]
    averages = load(fixtures / "cnn_verbose.json.gz").key_averages(group_by_stack_n=5)
    stacks = {(row.key, tuple(row.stack)) for row in averages}
    wanted = {(row["key"], tuple(row["stack"])) for row in expected}
    # For a backward node torch takes the first op that carries its number, here it is the op that made the node.
    assert len(wanted - stacks) <= len(wanted) * 0.05
    assert not [key for key, _ in wanted - stacks if key.startswith(("torch/", "nn.Module"))]


def test_steps_threads_and_links_of_a_torch_trace(fixtures):
    store = load(fixtures / "gpt_steps.json.gz").store
    assert set(store.step.tolist()) == {1, 2}
    assert (store.kind == observer.STEP).sum() == 2
    assert len(store.links[0]) > 50
    threads = load(fixtures / "threads.json.gz").store
    forward, backward = threads.links
    assert len(forward) and len({thread.ident for thread in threads.threads}) > 1
    # A node's forward op ran on the thread that the arrow starts from.
    assert (threads.tid[forward] == threads.fwd_tid[backward]).all()


def test_options_and_metadata_of_a_torch_trace(fixtures):
    store, recovery = read_any(fixtures / "mlp_everything.json.gz")
    assert recovery.intact and str(recovery) == "complete"
    assert store.options["with_stack"] and store.options["profile_memory"] and store.options["record_shapes"]
    assert len(store.trace_id) == 32
    assert store.metadata["host_name"] and "traceName" not in store.metadata
    assert store.wall_start_ns > 1_700_000_000_000_000_000
    assert store.pid == store.threads[0].ident
    assert store.threads[0].name == "python"
    assert "recovery" not in load(fixtures / "mlp_everything.json.gz").store.metadata


# ------------------------------------------------------------------------------ devices


def test_a_gpu_trace(fixtures):
    store, recovery = read_any(fixtures / "gpu_by_hand.json")
    assert recovery.intact and len(store.other_events) == 2
    rows = {store.names[name]: row for row, name in enumerate(store.name.tolist())}
    kernel, copy, fill = (
        rows[n] for n in ("ampere_sgemm_32x32_sliced1x4_tn", "Memcpy DtoH (Device -> Pageable)", "Memset (Device)")
    )
    assert store.kind[[kernel, copy, fill]].tolist() == [observer.KERNEL, observer.COPY, observer.FILL]
    assert store.device_type[[kernel, copy, fill]].tolist() == [1, 1, 1]
    assert store.threads[store.tid[kernel]] == (7, "stream 7") and store.threads[store.tid[fill]] == (20, "stream 20")
    assert store.end[kernel] - store.start[kernel] == 25_500 and store.start[kernel] % 1000 == 1
    launch = rows["cudaLaunchKernel"]
    assert store.kind[launch] == observer.RUNTIME and store.device_type[launch] == 0
    assert store.correlation[kernel] == store.correlation[launch] == 501
    assert store.launch_ns[kernel] == store.start[launch] and store.launch_tid[kernel] == store.tid[launch]
    assert store.names[store.name[store.launcher[kernel]]] == "aten::addmm"
    assert store.options["use_device"] == "cuda"
    assert store.metadata["distributedInfo"]["rank"] == 1
    assert store.mem_device_type.tolist() == [1, 0, 1] and store.mem_total.tolist() == [10240, 2048, 8192]
    averages = {row.key: row for row in load(fixtures / "gpu_by_hand.json").key_averages() if row.device_type == "CPU"}
    assert averages["aten::addmm"].device_time_total == pytest.approx(28.75)
    assert averages["aten::linear"].device_memory_usage == 2048


@pytest.mark.parametrize("category, device", [("privateuse1_runtime", 20), ("xpu_runtime", 12), ("cuda_runtime", 1)])
def test_the_runtime_tells_the_device(trace, span, category, device):
    path = trace([span("launch", 1, 1, category, correlation=1), span("k", 5, 1, "kernel", pid=0, tid=3, device=0, stream=3)])
    store = load(path).store
    assert store.device_type.tolist() == [0, device]


# ------------------------------------------------------------------------------ times


@pytest.mark.parametrize(
    "text, nanoseconds",
    [
        ("0.001", 1),
        ("3935887416625.373", 3935887416625373),
        ("7889237999999.999", 7889237999999999),
        ("1720000000123456.789", 1720000000123456789),
        ("1720000000123456", 1720000000123456000),
        ("12", 12000),
        ("1e3", 1000000),
    ],
)
def test_times_are_exact(trace, text, nanoseconds):
    path = trace(f'[{{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": {text}, "dur": 0.007}}]')
    store = load(path).store
    assert (store.start[0], store.end[0]) == (nanoseconds, nanoseconds + 7)


def test_every_thousandth_of_the_longest_times_is_exact(trace):
    thousandths = np.arange(7_889_237_999_999_000, 7_889_238_000_000_000)
    events = ",".join(
        f'{{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": {at // 1000}.{at % 1000:03d}, "dur": 0.000}}'
        for at in thousandths.tolist()
    )
    assert (load(trace(f"[{events}]")).store.start == thousandths).all()


# ------------------------------------------------------------------------------ shapes of traces


def test_our_own_trace_comes_back(live, tmp_path):
    path = tmp_path / "own.json.gz"
    live.export_chrome_trace(path)
    profile = load(path)
    assert profile.recovery.intact
    ours, back = live.profiler.store, profile.store
    for mine, theirs in zip(live.key_averages(True), profile.key_averages(True), strict=True):
        assert (mine.key, mine.count, str(mine.input_shapes)) == (theirs.key, theirs.count, str(theirs.input_shapes))
        assert mine.cpu_time_total == pytest.approx(theirs.cpu_time_total)
        assert mine.self_cpu_memory_usage == theirs.self_cpu_memory_usage
    assert (ours.duration == back.duration).all() and (ours.kind == back.kind).all()
    assert ours.wall_start_ns - ours.clock_start_ns + ours.start[0] == back.wall_start_ns - back.clock_start_ns + back.start[0]
    assert {ours.modules[at] for at in ours.module[ours.module >= 0].tolist()} == set(back.modules)
    assert back.metadata["note"] == 'quo"te'
    again = tmp_path / "again.json"
    profile.export_chrome_trace(again)
    assert load(again).key_averages().table() == profile.key_averages().table()


def test_a_bare_array_with_or_without_its_end(trace, span):
    events = json.dumps([span("a", 0, 9), span("b", 1, 2)])
    whole, whole_recovery = read(trace(events))
    open_ended, recovery = read(trace(events[:-1]))
    assert len(whole) == len(open_ended) == 2
    assert whole_recovery.complete and not recovery.complete


def test_beginnings_and_ends_are_spans(trace, span):
    def mark(phase, ts, name="x", **more):
        return {"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": ts, **more}

    events = [
        mark("B", 1.001, "outer", args={"Sequence number": 4}),
        mark("B", 2.5, "inner"),
        mark("E", 3.75),
        {"ph": "E", "pid": 1, "tid": 1, "ts": 9.002},
        mark("E", 10),
        mark("B", 11, "left open"),
        mark("B", 12, "inside"),
    ]
    store, recovery = read(trace(events))
    columns = (store.name.tolist(), store.start.tolist(), store.end.tolist())
    spans = {store.names[name]: (start, end) for name, start, end in zip(*columns, strict=True)}
    assert spans["outer"] == (1001, 9002) and spans["inner"] == (2500, 3750)
    assert spans["left open"] == (11000, 12000)
    assert recovery.skipped["end without a beginning"] == 1
    assert any("without an end" in reason for reason in recovery.skipped)
    assert store.seq[list(spans).index("outer")] == 4


def test_categories_that_nobody_knows_are_spans_and_other_phases_are_counted(trace, span):
    events = [
        span("a", 0, 5, "my own"),
        {"ph": "X", "name": "no category", "pid": "x", "tid": "main", "ts": 1, "dur": 1},
        {"ph": "C", "name": "counter", "pid": 1, "tid": 1, "ts": 1, "args": {"v": 1}},
    ]
    store, recovery = read(trace(events))
    assert sorted(store.names) == ["a", "no category"]
    assert not recovery.skipped and len(store.other_events) == 1
    assert {thread.name for thread in store.threads} == {"thread 1", "main of process x"}


def test_inputs_are_values(trace, span):
    args = {
        "Input Dims": [[2, 3], [], [[1], [2, 2]], []],
        "Input type": ["float", "Scalar", "TensorList", "ScalarList"],
        "Input Strides": [[3, 1], [], [[1], [2, 1]], []],
        "Concrete Inputs": ["", "2.", "", "[8, 16]"],
    }
    [info] = load(trace([span("aten::x", 0, 1, **args), span("aten::x", 2, 1, **args)])).store.input_infos
    assert info.dims == ((2, 3), (), ((1,), (2, 2)), ())
    assert info.concrete == (None, 2.0, None, (8, 16))
    assert info.types[2] == "TensorList" and info.strides[0] == (3, 1)


def test_a_zero_long_file_of_events(trace):
    store, recovery = read(trace([]))
    assert len(store) == 0 and recovery.intact
    assert load(trace([])).key_averages().table() == ""


def test_progress_reaches_the_end(fixtures):
    seen = []
    path = fixtures / "gpt_steps.json.gz"
    load(path, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_blocks_that_end_anywhere_give_the_same(monkeypatch, fixtures):
    from mindtorch_v2.profiler.formats import _source

    whole = load(fixtures / "mlp_everything.json.gz").store
    for size in (997, 4096, 50_001):
        monkeypatch.setattr(_source, "BLOCK", size)
        store, recovery = read_any(fixtures / "mlp_everything.json.gz")
        assert recovery.intact
        assert (store.start == whole.start).all() and list(store.names) == list(whole.names)
