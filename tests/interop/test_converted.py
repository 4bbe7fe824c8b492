"""A CUDA trace in PyTorch's form, before and after `convert`: other programs read the same from both."""

import json

import pytest
from hta.trace_analysis import TraceAnalysis

from mindtorch_v2.profiler import load


def span(cat, name, ts, dur, pid, tid, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def cuda_trace():
    """Two steps: gemms on stream 7, all-reduces on stream 20 that begin while a gemm runs, copies, and idle time between."""
    events, number = [], 100
    for step in (1, 2, 3):
        begin = step * 1000.0
        events.append(span("user_annotation", f"ProfilerStep#{step}", begin, 900.0, 50, 50, **{"External id": step}))
        events.append(span("gpu_user_annotation", f"ProfilerStep#{step}", begin + 100, 500.0, 0, 7, **{"External id": step}))
        for at, (name, stream, start, length) in enumerate(
            [
                ("ampere_sgemm_128x64_nn", 7, 100.0, 150.0),
                ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 20, 200.0, 120.0),
                ("ampere_sgemm_128x64_nn", 7, 400.0, 100.0),
                ("Memcpy HtoD (Pageable -> Device)", 7, 550.0, 50.0),
            ]
        ):
            number += 1
            external = {"External id": number, "correlation": number}
            events.append(span("cpu_op", "aten::mm", begin + 10 + 20 * at, 18.0, 50, 50, **{"External id": number}))
            copies = name.startswith("Memcpy")
            call = "cudaMemcpyAsync" if copies else "cudaLaunchKernel"
            events.append(span("cuda_runtime", call, begin + 12 + 20 * at, 5.0, 50, 50, cbid=211, **external))
            place = {"device": 0, "context": 1, "stream": stream}
            if copies:
                more = {"bytes": 4096, "memory bandwidth (GB/s)": 0.08}
                events.append(span("gpu_memcpy", name, begin + start, length, 0, stream, **external, **place, **more))
            else:
                more = {"grid": [8, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 30, "queued": 0}
                events.append(span("kernel", name, begin + start, length, 0, stream, **external, **place, **more))
            for phase, pid, tid, ts in (("s", 50, 50, begin + 12 + 20 * at), ("f", 0, stream, begin + start)):
                flow = {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": "ac2g", "name": "ac2g"}
                events.append(flow | ({"bp": "e"} if phase == "f" else {}))
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "A100", "numSms": 108}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
        "traceEvents": events,
    }


def shares(folder):
    analysis = TraceAnalysis(trace_dir=str(folder), include_last_profiler_step=True)
    times = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    kinds, _ = analysis.get_gpu_kernel_breakdown(visualize=False)
    overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]
    by_kind = dict(zip(kinds["kernel_type"], kinds["percentage"], strict=True))
    return {key: value for key, value in times.items() if "time" in key}, by_kind, dict(overlap)


def test_shares_in_holistic_trace_analysis_are_the_same(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    (before / "trace.json").write_text(json.dumps(cuda_trace()))
    load(before / "trace.json").save(tmp_path / "saved.mtp")
    load(tmp_path / "saved.mtp").export_chrome_trace(after / "trace.json")
    original, converted = shares(before), shares(after)
    assert converted == original
    assert original[0]["compute_time_pctg"] == pytest.approx(100 * 3 * 250 / 2500, abs=0.1)
