"""Profiles of the device: kernels on lanes of their own, hanging off the ops that launched them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import ProfilerActivity, load, profile, schedule, supported_activities
from mindtorch_v2.profiler.analysis.device.summary import copy_groups, device_summaries
from mindtorch_v2.profiler.recording import device_columns

from .models import MODELS, losses

BOTH = [ProfilerActivity.CPU, ProfilerActivity.NPU]


def trained(model, steps=3, **options):
    with profile(activities=BOTH, schedule=schedule(wait=0, warmup=1, active=steps, repeat=1), **options) as prof:
        losses(model, "adamw", "npu", steps + 1, after=prof.step)
    return prof


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("source", ["events", "mspti"])
def test_kernels_of_a_stream_follow_each_other_and_their_launches_and_add_up(npu, request, source, model):
    if source == "events":
        request.getfixturevalue("by_events")
    prof = trained(model)
    store = prof.profiler.store
    rows = np.flatnonzero(store.device_type != 0)
    assert len(rows) > 50
    assert (store.start[rows] >= store.launch_ns[rows]).all()
    assert (store.launcher[rows] >= 0).all()
    for lane in np.unique(store.tid[rows]):
        own = rows[store.tid[rows] == lane]
        own = own[np.lexsort((store.end[own], store.start[own]))]
        assert (store.start[own][1:] >= store.end[own][:-1]).all()
    whole = store.duration[rows].sum() / 1000
    averages = prof.key_averages()
    assert sum(row.self_device_time_total for row in averages if row.device_type == "NPU") == pytest.approx(whole)
    assert sum(row.self_device_time_total for row in averages if row.device_type == "CPU") == pytest.approx(whole)


def test_ops_know_their_kernels(npu, by_events):
    x, w = torch.ones(4, 8, device="npu"), torch.ones(8, 2, device="npu")
    with profile(activities=BOTH) as prof:
        (x @ w).relu()
    kernels = {event.name: [kernel.name for kernel in event.kernels] for event in prof.events() if event.kernels}
    assert kernels["aten::mm"] == ["Mm"]
    assert kernels["aten::relu"] == ["Relu"]
    mm = next(event for event in prof.events() if event.name == "aten::mm")
    matmul = next(event for event in prof.events() if event.name == "aten::matmul")
    assert matmul.device_time_total == mm.device_time_total > 0
    assert matmul.self_device_time_total == 0
    on_device = [event for event in prof.events() if event.device_type == "NPU"]
    assert {event.name for event in on_device} == {"Mm", "Relu"}
    assert all(event.device_index == 0 for event in on_device)


@pytest.mark.parametrize("activity", [ProfilerActivity.NPU, ProfilerActivity.PrivateUse1, ProfilerActivity.CUDA])
def test_every_name_of_the_device_activity_works(npu, by_events, activity):
    with profile(activities=[ProfilerActivity.CPU, activity]) as prof:
        torch.ones(3, device="npu") + 1
    assert "Adds" in {event.name for event in prof.events()}


def test_an_npu_in_use_is_recorded_unless_asked_otherwise(npu, by_events):
    torch.npu.init()
    assert ProfilerActivity.PrivateUse1 in supported_activities()
    with profile() as prof:
        torch.ones(3, device="npu") + 1
    assert "Adds" in {event.name for event in prof.events()}
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        torch.ones(3, device="npu") + 1
    assert {event.device_type for event in prof.events()} == {"CPU"}


def test_table_has_the_devices_columns_and_sorts_by_them(npu):
    prof = trained("mlp", profile_memory=True)
    averages = prof.key_averages()
    for key in ("self_npu_time_total", "npu_time_total", "self_device_time_total", "device_time_total"):
        text = averages.table(sort_by=key, row_limit=5)
        assert "Self NPU" in text and "NPU Mem" in text and "Self NPU time total" in text
    text = averages.table(sort_by="self_npu_time_total")
    order = [row for row in text.splitlines() if "us" in row or "ms" in row]
    assert order


def test_trace_has_lanes_and_arrows(npu, tmp_path):
    prof = trained("mlp")
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in ("privateuse1_runtime", "cuda_runtime")}
    assert len(kernels) > 50
    assert min(calls) == 1
    assert any(round(kernel["dur"] * 1000) % 1000 for kernel in kernels)  # finer than the microseconds of a mark
    for kernel in kernels:
        assert kernel["pid"] == kernel["args"]["device"] == 0
        assert kernel["tid"] == kernel["args"]["stream"]
        assert calls[kernel["args"]["correlation"]]["ts"] <= kernel["ts"]
    arrows = [e for e in events if e.get("cat") == "ac2g"]
    starts, ends = ({e["id"]: (e["pid"], e["tid"], e["ts"]) for e in arrows if e["ph"] == phase} for phase in "sf")
    assert len(arrows) == 2 * len(starts) and starts.keys() == ends.keys()  # every arrow has one of each
    work = [*kernels, *(e for e in events if e.get("cat") in ("gpu_memcpy", "gpu_memset"))]
    assert {(e["pid"], e["tid"], e["ts"]) for e in calls.values()} >= set(starts.values())
    assert {(e["pid"], e["tid"], e["ts"]) for e in work} >= set(ends.values())
    copies = [e for e in events if e.get("cat") == "gpu_memcpy"]
    assert all({"device", "stream", "correlation", "bytes"} <= e["args"].keys() for e in copies)
    assert all(e["args"]["memory bandwidth (GB/s)"] > 0 for e in copies if e["dur"])
    assert {e["name"] for e in copies} >= {"Memcpy DtoH"}


@pytest.mark.parametrize("streamed", [False, True])
def test_copies_tell_their_bytes(npu, tmp_path, streamed):
    path = tmp_path / "copies.mtp"
    with profile(activities=BOTH, stream_to=path if streamed else None) as prof:
        torch.ones(100, 10).to("npu").cpu()
    if not streamed:
        prof.save(path)
    copies = {group.name: (group.calls, group.bytes) for group in copy_groups(load(path).store)}
    assert copies == {"Memcpy HtoD": (1, 4000), "Memcpy DtoH": (1, 4000)}


def test_stacks_of_device_time(npu, tmp_path):
    prof = trained("mlp", with_stack=True)
    prof.export_stacks(str(tmp_path / "s.txt"), "self_privateuse1_time_total")
    lines = (tmp_path / "s.txt").read_text().splitlines()
    assert any("models.py" in line for line in lines)
    assert sum(int(line.rpartition(" ")[2]) for line in lines) > 0


def test_device_memory(npu):
    with profile(activities=BOTH, profile_memory=True) as prof:
        x = torch.zeros(1000, device="npu")
        del x
    made = next(event for event in prof.events() if event.name == "aten::zeros")
    assert made.device_memory_usage == 4096  # rounded up to blocks of 512
    store = prof.profiler.store
    assert store.mem_bytes[store.mem_device_type != 0].sum() == 0
    assert set(store.mem_reserved[store.mem_device_type != 0].tolist()) == {torch.npu.memory_reserved()}


def test_nothing_waits_for_the_device_before_stop(npu, by_events):
    """Launches return while the device works: recording adds events to the stream and no synchronization."""
    x = torch.ones(256, 256, device="npu")
    torch.npu.synchronize()
    waits = []
    driver = npu
    call = driver.call
    driver.call = lambda name, *args: (waits.append(name) if "Synchronize" in name else None, call(name, *args))[1]
    try:
        prof = profile(activities=BOTH)
        prof.start()
        for _ in range(5):
            x = x @ x
        assert waits == []
        prof.stop()
        assert waits
    finally:
        del driver.call
    store = prof.profiler.store
    assert (store.kind == observer.KERNEL).sum() == 5


def test_two_streams_have_two_lanes(npu):
    first, second = torch.npu.Stream(), torch.npu.Stream()
    x = torch.ones(64, 64, device="npu")
    torch.npu.synchronize()
    with profile(activities=BOTH) as prof:
        for stream in (first, second):
            with torch.npu.stream(stream):
                x @ x
    lanes = {event.device_resource_id for event in prof.events() if event.device_type == "NPU"}
    assert lanes == {first.number, second.number}


def test_blocks_are_told_apart_by_their_device_and_in_order_of_time():
    columns = {}
    rows = [(5, 512, 0x1000, 7, 0, 9), (5, -512, 0x1000, 7, 0, 9), (6, 512, 0x1000, 7, 0, 9), (7, -512, 0x1000, 7, 1, 9)]
    device_columns.add_memory(columns, rows, {7: 0})
    assert columns["mem_bytes"].tolist() == [512, -512, 512]  # what device 1 let go of was given out before
    assert columns["mem_device_index"].tolist() == [0, 0, 0]


def test_a_profile_that_has_not_started_has_no_events(npu):
    prof = torch.autograd.profiler.profile(use_device="npu")
    prof._prepare_trace()
    assert len(prof.store) == 0


def test_traces_name_the_device(npu, tmp_path):
    x = torch.ones(3, device="npu")
    with profile(activities=BOTH) as prof:
        x + 1
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    (device,) = (each for each in json.loads((tmp_path / "t.json").read_text())["deviceProperties"] if each["id"] == 0)
    assert device["name"] == torch.npu.get_device_name(0)
    assert device["totalGlobalMem"] == torch.npu.mem_get_info(0)[1]
    assert device_summaries(load(tmp_path / "t.json").store)[0].name == device["name"]


@pytest.mark.parametrize("source", ["events", "mspti"])
def test_a_ring_keeps_the_newest_launches(npu, request, source):
    if source == "events":
        request.getfixturevalue("by_events")
    x = torch.ones(3, device="npu")
    with profile(activities=BOTH, max_memory_mb=0.1, mode="ring") as prof:
        for _ in range(300):
            x + 1
        prof._retention.flush()
        x * 2
    store = prof.profiler.store
    work = np.flatnonzero(store.is_work)
    assert 0 < len(work) < 301
    assert prof.dropped_events > 0
    assert (store.launcher[work] >= 0).all()
    assert "Muls" in store.names[store.name[work[np.argmax(store.end[work])]]]
    with pytest.raises(NotImplementedError, match="for a device use mode='ring'"):
        profile(activities=BOTH, max_memory_mb=1, mode="aggregate")


def test_drift_of_the_clock_is_followed_while_recording(in_process):
    code = """
        import time
        from mindtorch_v2.profiler.recording import device_clock
        import mindtorch_v2 as torch
        from mindtorch_v2._dispatch import observer

        x = torch.ones(3, device="npu")
        timing = observer.device_timing("npu")
        clock = device_clock.DeviceClock(time.perf_counter_ns, timing)
        clock.compare(0)
        marks = []
        for _ in range(4):
            time.sleep(0.02)
            mark = timing.new_event()
            before = time.perf_counter_ns()
            mark.record(torch.npu.current_stream())
            torch.npu.synchronize()
            marks.append((before, mark, time.perf_counter_ns()))
            clock.compare(0, patient=True)
        error = [max(before - host, host - after, 0) for before, mark, after in marks
                 for host in [clock.host_time(0, mark.timestamp_ns())]]
        first = clock._offsets[0][0][1]
        last = clock._offsets[0][-1][1]
        print(max(error) < 2_000_000, last - first < -5_000_000)
    """
    run = in_process(code, ASCEND_SIM_FAULT="drift:100000")  # a tenth too fast
    assert run.stdout == "True True\n", run.stdout + run.stderr
