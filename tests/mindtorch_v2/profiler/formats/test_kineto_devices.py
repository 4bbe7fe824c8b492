"""Traces of programs on devices: everything they hold survives saving and converting, in whatever form Kineto wrote it."""

import json

import numpy as np
import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load

PID, MAIN, ENGINE = 900, 900, 901
GEOMETRY = {
    "queued": 0,
    "device": 0,
    "context": 1,
    "stream": 7,
    "registers per thread": 32,
    "shared memory": 4096,
    "blocks per SM": 0.592593,
    "warps per SM": 4.740741,
    "grid": [64, 1, 1],
    "block": [256, 1, 1],
    "est. achieved occupancy %": 7,
}
NCCL = {
    "Collective name": "allreduce",
    "In msg nelems": 1024,
    "Out msg nelems": 1024,
    "Group size": 2,
    "dtype": "Float",
    "In split size": "[]",
    "Process Group Name": "0",
    "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1]",
}
OLD_NCCL = {"Collective name": "allreduce", "Process Group ID": "0", "Process Group Ranks": [0, 1], "Group size": 2}


def span(cat, name, ts, dur, tid=MAIN, pid=PID, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name, ts, dur, correlation, external, stream=7, **more):
    args = {**GEOMETRY, "stream": stream, **more, "correlation": correlation, "External id": external}
    return span("kernel", name, ts, dur, tid=stream, pid=0, **args)


def cuda_events():
    return [
        span("user_annotation", "ProfilerStep#3", 1000.0, 400.0, **{"External id": 1}),
        span("cpu_op", "aten::mm", 1010.0, 40.0, **{"External id": 2, "Record function id": 17}),
        span("cuda_runtime", "cudaLaunchKernel", 1020.0, 5.0, **{"External id": 2, "cbid": 211, "correlation": 50}),
        kernel("sgemm", 1100.0, 80.0, 50, 2),
        span("cuda_driver", "cuLaunchKernel", 1030.0, 5.0, **{"External id": 2, "cbid": 307, "correlation": 51}),
        kernel("ampere_h16816gemm", 1180.0, 20.0, 51, 2),
        span("cpu_op", "c10d::allreduce_", 1060.0, 30.0, **{"External id": 3, **NCCL}),
        span("cuda_runtime", "cudaLaunchKernelExC", 1070.0, 5.0, **{"External id": 3, "cbid": 430, "correlation": 52}),
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1200.0, 60.0, 52, 3, stream=20, **NCCL, Seq=4),
        kernel("ncclKernel_AllReduce_RING_LL_Sum_float", 1270.0, 10.0, 53, 3, stream=20, **OLD_NCCL),
        span("cuda_runtime", "cudaMemcpyAsync", 1092.0, 4.0, **{"External id": 2, "cbid": 41, "correlation": 54}),
        span(
            "gpu_memcpy",
            "Memcpy HtoD (Pageable -> Device)",
            1300.0,
            10.0,
            7,
            0,
            **{"device": 0, "stream": 7, "correlation": 54, "bytes": 20480, "memory bandwidth (GB/s)": 2.048, "External id": 2},
        ),
        span("gpu_memset", "Memset (Device)", 1320.0, 1.0, 7, 0, device=0, stream=7, correlation=55, bytes=512),
        span("gpu_user_annotation", "ProfilerStep#3", 1100.0, 230.0, 7, 0, **{"External id": 1}),
        span(
            "cuda_sync", "Context Sync", 1340.0, 6.0, -1, 0, cuda_sync_kind="Context Sync", stream=-1, correlation=56, device=0
        ),
        span("overhead", "Activity Buffer Request", 1001.0, 3.0, 0, -1, finished=True),
        {"ph": "C", "name": "GPU 0 Utilization", "pid": 0, "tid": 0, "ts": 1100.0, "args": {"GPU Utilization": 0.5}},
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": PID,
            "tid": MAIN,
            "ts": 1015.0,
            "args": {
                "Total Reserved": 4096,
                "Total Allocated": 512,
                "Bytes": 512,
                "Addr": 77,
                "Device Id": 0,
                "Device Type": 1,
            },
        },
    ]


def write(path, events, **fields):
    path.write_text(json.dumps({"schemaVersion": 1, **fields, "traceEvents": events}))
    return path


def through(path, folder):
    """The events of a trace that was read, saved, read again and converted."""
    load(path).save(folder / "a.mtp")
    load(folder / "a.mtp").export_chrome_trace(folder / "b.json")
    return json.loads((folder / "b.json").read_text())


COUNTED_ANEW = {"External id", "Ev Idx"}


def comparable(document):
    base = document.get("baseTimeNanoseconds", 0)
    found = []
    for event in document["traceEvents"]:
        if event["ph"] in "XCi" and event.get("cat") != "Trace" and not event["name"].startswith(("Iteration", "Record W")):
            args = {key: value for key, value in event["args"].items() if key not in COUNTED_ANEW and value is not False}
            args.setdefault("Record function id", 0)
            place = (event["pid"], event["tid"], round(event["ts"] * 1000) + base, round(event.get("dur", 0) * 1000))
            found.append((event["ph"], event.get("cat"), event["name"], *place, json.dumps(args, sort_keys=True)))
    return sorted(found, key=str)


def test_everything_of_a_cuda_trace_survives_saving_and_converting(tmp_path):
    fields = {"deviceProperties": [{"id": 0, "name": "A100"}], "host_name": "gpu-host", "distributedInfo": {"rank": 3}}
    path = write(tmp_path / "t.json", cuda_events(), **fields)
    converted = through(path, tmp_path)
    assert comparable(converted) == comparable({"traceEvents": cuda_events()})
    assert {key: converted[key] for key in fields} == fields


# All that NCCL's rows tell: those of PyTorch 2.1 with kernels of NCCL 2.18, and those of 2.13 with kernels since 2.19.
COLLECTIVE = {
    "Collective name": "all_to_allv",
    "In msg nelems": 4096,
    "Out msg nelems": 5120,
    "Group size": 4,
    "dtype": "BFloat16",
    "In split size": "[1024, 1024, 0, 2048]",
    "Out split size": "[2048, 1024, 1024, 1024]",
}
COMMUNICATIONS = {
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)": {
        **COLLECTIVE,
        "Process Group ID": "3",
        "Process Group Ranks": [0, 1, 2, 3],
        "Rank": 1,
    },
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)": {
        **COLLECTIVE,
        "Process Group Name": "3",
        "Process Group Description": "mesh_ep",
        "Process Group Ranks": "[0, 1, 2, 3]",
        "Global rank start": 0,
        "Global rank stride": 1,
        "Src Rank": 2,
        "Dst Rank": 0,
        "Seq": 17,
        "Is asynchronized op": True,
        "Comms Id": 72057594037927935,
        "Rank": 1,
    },
}


@pytest.mark.parametrize("name", COMMUNICATIONS, ids=["old", "new"])
def test_arguments_of_collectives_survive_loading_saving_and_loading(tmp_path, name):
    arguments = COMMUNICATIONS[name]
    path = write(tmp_path / "t.json", [*cuda_events(), kernel(name, 1400.0, 90.0, 57, 3, stream=20, **arguments)])
    load(path).save(tmp_path / "a.mtp")
    load(tmp_path / "a.mtp").save(tmp_path / "b.mtp")
    for file in (path, tmp_path / "a.mtp", tmp_path / "b.mtp"):
        profile = load(file)
        (event,) = (event for event in profile.events() if event.name == name)
        fields = event.event_metadata
        assert (fields.collective_name, fields.in_msg_nelems, fields.dtype, fields.rank) == ("all_to_allv", 4096, "BFloat16", 1)
        profile.export_chrome_trace(tmp_path / "c.json")
        written = json.loads((tmp_path / "c.json").read_text())["traceEvents"]
        (told,) = (each["args"] for each in written if each["name"] == name)
        assert {key: told.get(key) for key in arguments} == arguments


def test_a_range_on_a_device_has_no_stream_and_keeps_its_range(tmp_path):
    converted = through(write(tmp_path / "t.json", cuda_events()), tmp_path)["traceEvents"]
    by_category = {event.get("cat"): event for event in converted if event["ph"] == "X"}
    on_host, on_device = by_category["user_annotation"], by_category["gpu_user_annotation"]
    assert on_device["args"] == {"External id": on_host["args"]["External id"]}
    kernels = [event for event in converted if event.get("cat") == "kernel"]
    assert [event["args"]["stream"] for event in kernels] == [7, 7, 20, 20]


def test_kernels_are_linked_to_their_ops_by_their_launch_or_their_external_id(tmp_path):
    store = load(write(tmp_path / "t.json", cuda_events())).store
    kernels = np.flatnonzero(store.kind == observer.KERNEL)
    ops = [store.names[store.name[row]] for row in store.launcher[kernels]]
    assert ops == ["aten::mm", "aten::mm", "c10d::allreduce_", "c10d::allreduce_"]


def test_categories_of_2021(tmp_path):
    old = {
        "cpu_op": "Operator",
        "user_annotation": "Operator",
        "kernel": "Kernel",
        "gpu_memcpy": "Memcpy",
        "gpu_memset": "Memset",
        "cuda_runtime": "Runtime",
    }
    events = []
    for event in cuda_events():
        if event["ph"] == "X" and event["cat"] in old:
            device = event["pid"] == 0
            args = {("external id" if key == "External id" else key): value for key, value in event["args"].items()}
            tid = f"stream {event['tid']}" if device else str(event["tid"])
            events.append({**event, "cat": old[event["cat"]], "tid": tid, "args": args})
        elif event["name"] == "[memory]":
            events.append(event)
    store, new = load(write(tmp_path / "old.json", events)).store, load(write(tmp_path / "new.json", cuda_events())).store

    def rows(store):
        wanted = np.isin(store.kind, [observer.OP, observer.STEP, observer.KERNEL, observer.COPY, observer.FILL])
        place = [store.threads[tid].ident for tid in store.tid[wanted]]
        names = [store.names[name] for name in store.name[wanted]]
        return list(zip(names, store.kind[wanted], place, store.start[wanted], store.device_type[wanted], strict=True))

    assert rows(store) == rows(new)
    assert store.step.tolist() == [3] * len(store)
    # The thread of ops and that of memory, a text and a number in these files, are one.
    assert store.mem_tid[0] == store.tid[store.names.index("aten::mm")]


def test_stacks_of_2021_end_in_the_root(tmp_path):
    innermost_first = "torch/nn/linear.py(9): forward;train.py(5): step;train.py(20): <module>"
    root_first = ";".join(reversed(innermost_first.split(";")))
    for text in (innermost_first, root_first, innermost_first + ";"):
        event = span("cpu_op", "aten::mm", 0.0, 5.0, **{"Call stack": text})
        store = load(write(tmp_path / "t.json", [event])).store
        assert store.stacks == [tuple(innermost_first.split(";"))]


def test_lanes_of_mtia(tmp_path):
    events = [
        span("cpu_op", "aten::add", 0.0, 50.0, **{"External id": 1}),
        span(
            "mtia_runtime", "runFunction - job_prep_and_submit_for_execution", 10.0, 5.0, correlation=9, device=2, stream_id=101
        ),
        span("mtia_runtime", "synchronize", 60.0, 1.0, tid=3568, pid=2, correlation=10, device=2, stream_id=101),
        span("mtia_ccp_events", "add-dtype_Float", 20.0, 30.0, tid=408, pid=2, correlation=9, stream=101, column="0", row="0"),
        span("mtia_ccp_events", "dma_request", 55.0, 2.0, tid=801, pid=2, direction="DEVICE_TO_HOST", size=16),
        span("mtia_ccp_events", "event_wait", 57.0, 9.0, tid=408, pid=2, stream=101, wait_on_stream=102),
    ]
    store = load(write(tmp_path / "t.json", events)).store
    rows = [
        (store.names[name], kind, device, index)
        for name, kind, device, index in zip(store.name, store.kind, store.device_type, store.device_index, strict=True)
    ]
    assert rows == [
        ("aten::add", observer.OP, 0, -1),
        ("runFunction - job_prep_and_submit_for_execution", observer.RUNTIME, 0, -1),
        ("add-dtype_Float", observer.KERNEL, 19, 2),
        ("dma_request", observer.COPY, 19, 2),
    ]
    assert store.launcher[2] == 0
    assert comparable(through(tmp_path / "t.json", tmp_path)) == comparable({"traceEvents": events})


def python_call(name, ts, dur, number, **more):
    return span("python_function", name, ts, dur, **{"Python id": number, "Python parent id": None, **more})


def test_modules_come_from_their_calls_also_in_the_backward_pass(tmp_path):
    events = [
        python_call("nn.Module: Net_0", 0.0, 100.0, 1, **{"Python module id": 0}),
        python_call("nn.Module: Linear_1", 10.0, 50.0, 2, **{"Python module id": 1}),
        span("cpu_op", "aten::mm", 20.0, 10.0, **{"Sequence number": 4, "Fwd thread id": 0}),
        span("cpu_op", "aten::relu", 70.0, 10.0),
        span(
            "cpu_op",
            "autograd::engine::evaluate_function: MmBackward0",
            200.0,
            50.0,
            ENGINE,
            **{"Sequence number": 4, "Fwd thread id": 1},
        ),
        span("cpu_op", "MmBackward0", 205.0, 40.0, ENGINE, **{"Sequence number": 4, "Fwd thread id": 1}),
        span("cpu_op", "aten::mm", 210.0, 10.0, ENGINE),
        span("cpu_op", "aten::add_", 300.0, 10.0),
    ]
    store = load(write(tmp_path / "t.json", events)).store
    found = [
        (store.names[name], store.modules[module] if module >= 0 else None)
        for name, module, python in zip(store.name, store.module, store.is_python, strict=True)
        if not python
    ]
    inner = "Net_0.Linear_1"
    assert found == [
        ("aten::mm", inner),
        ("aten::relu", "Net_0"),
        ("autograd::engine::evaluate_function: MmBackward0", None),
        ("MmBackward0", inner),
        ("aten::mm", inner),
        ("aten::add_", None),
    ]


@pytest.mark.parametrize(("rest", "steps"), [([], [0, 0, 1, 1, 1]), (["MulBackward0"], [0, 0, 1, 1, 2, 2, 2])])
def test_steps_come_from_the_optimizer_if_nothing_else_tells(tmp_path, rest, steps):
    """What follows the last step() of an optimizer is a step of its own only with another backward pass in it."""
    events = []
    for number in range(2):
        begin = number * 100.0
        events.append(span("cpu_op", "aten::mm", begin, 10.0))
        events.append(span("user_annotation", "Optimizer.step#SGD.step", begin + 20, 30.0))
    events.append(span("cpu_op", "aten::item", 290.0, 5.0))
    for name in rest:
        events.append(span("cpu_op", f"autograd::engine::evaluate_function: {name}", 300.0, 20.0))
        events.append(span("cpu_op", name, 305.0, 10.0))
    assert load(write(tmp_path / "t.json", events)).store.step.tolist() == steps


@pytest.mark.parametrize("text", ["[]", "5", "{", '"x"'])
def test_details_of_a_saved_profile_must_be_objects(text):
    """They are written into traces as they are."""
    from mindtorch_v2.profiler.formats.saved_file.entries import ENTRIES

    with pytest.raises((TypeError, ValueError)):
        ENTRIES["row_details"](["", text], {})
    with pytest.raises((TypeError, ValueError)):
        ENTRIES["other_events"]([0, 0, text], {})
