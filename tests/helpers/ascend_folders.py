"""Small folders as Ascend's profilers write them: one step with two ops, three kernels, a copy and a collective."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

PROCESS, THREAD, QUEUE_THREAD, DEVICE = 4242, 4242, 4300, 3
BASE = 1_736_408_883_000_000_000  # nanoseconds since 1970
GROUP = "17522688603477080586"

# (name, thread, start, end) in nanoseconds after BASE.
STEP = ("ProfilerStep#7", THREAD, 0, 100_000)
OPS = [
    ("aten::linear", THREAD, 1_000, 20_000),
    ("aten::relu", THREAD, 21_000, 30_000),
    ("HcclAllreduce", THREAD, 31_000, 33_000),
    ("aten::copy_", THREAD, 34_000, 36_000),
]
CALLS = [  # of CANN, with connection ids
    ("launch", QUEUE_THREAD, 5_000, 6_000, 11),
    ("launch", QUEUE_THREAD, 6_500, 7_000, 12),
    ("launch", QUEUE_THREAD, 22_000, 23_000, 13),
    ("aclrtMemcpyAsync", THREAD, 34_500, 35_000, 14),
    ("hcom_allReduce_", QUEUE_THREAD, 32_000, 32_500, 15),
]
# (name, type, stream, start, end, connection id, number of the op that launched it)
KERNELS = [
    ("trans_TransData_0", "TransData", 2, 10_000, 12_541, 11, 0),
    ("aclnnAddmm_MatMulV2", "MatMulV2", 2, 13_000, 20_003, 12, 0),
    ("aclnnRelu_Relu", "Relu", 2, 25_000, 25_750, 13, 1),
]
COPY = ("MEMCPY_ASYNC", 2, 40_000, 45_000, 14, 3)
COLLECTIVE = ("hcom_allReduce__586_4_1", 50_000, 70_001, 15, 2)
TIMES = {"Start Timestamp(us)": (BASE + 50_000) / 1000, "Elapse Time(ms)": 0.020001, "Transit Time(ms)": 0.0125}
TIMES |= {"Wait Time(ms)": 0.0025, "Synchronization Time(ms)": 0.001, "Idle Time(ms)": 0.005001}
LINK = {"Transit Size(MB)": 0.25, "Transit Time(ms)": 0.0125, "Bandwidth(GB/s)": 20.0, "Large Packet Ratio": 0}
PACKETS = {"0.125": [2, 0.0125]}
BETWEEN = {"Transport Type": "HCCS", "Transit Size(MB)": 0.25, "Transit Time(ms)": 0.0125, "Bandwidth(GB/s)": 20.0}
BETWEEN |= {"Op Name": COLLECTIVE[0]}
MATRIX = {"step7": {"p2p": {}, "collective": {f"allreduce-total@{GROUP}": {"5-6": BETWEEN}}}}
BLOCK = ("aten::linear", 2048, 2_000, 90_000)  # bytes, allocated, released
STACK = ["/home/me/train.py(12): forward", "/home/me/train.py(40): <module>"]
INFO = {
    "config": {"common_config": {"record_shapes": True, "profile_memory": True, "with_stack": True}, "experimental_config": {}},
    "rank_id": 5,
}
METADATA = {
    "distributed_args": {"world_size": 8},
    "parallel_group_info": {GROUP: {"group_name": "default", "group_rank": 5, "global_ranks": list(range(8))}},
}


def micro(nanoseconds: int) -> str:
    """A time as these files write it."""
    return f"{(BASE + nanoseconds) // 1000}.{(BASE + nanoseconds) % 1000:03}"


def text_folder(path: Path) -> Path:
    """A `*_ascend_pt` folder with text files."""
    output = _outer(path)
    (output / "trace_view.json").write_text(json.dumps(_trace_view()))
    links = {"HCCS": {**LINK, "Size Distribution": PACKETS}, "SDMA": {**LINK, "Size Distribution": {}}}
    figures = {"Communication Time Info": TIMES, "Communication Bandwidth Info": links}
    named = {f"{COLLECTIVE[0]}@{GROUP}": figures, "Total Op Info": {}}
    (output / "communication.json").write_text(json.dumps({"step7": {"p2p": {}, "collective": named}}))
    (output / "communication_matrix.json").write_text(json.dumps(MATRIX))
    header = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num,Input Shapes,aiv_vec_ratio"
    lines = [
        f'7,{name},{kind},AI_VECTOR_CORE,{micro(start)}\t,{(end - start) / 1000:.3f},0,32,"""4,8;8,2""",0.25'
        for name, kind, _, start, end, _, _ in KERNELS
    ]
    (output / "kernel_details.csv").write_text("\r\n".join([header, *lines]) + "\r\n")
    name, size, allocated, released = BLOCK
    (output / "operator_memory.csv").write_text(
        "Name,Size(KB),Allocation Time(us),Release Time(us),Allocation Total Allocated(MB),Allocation Total Reserved(MB),"
        "Release Total Allocated(MB),Release Total Reserved(MB),Device Type\n"
        f"{name},{size / 1024},{micro(allocated)}\t,{micro(released)}\t,1.0,2.0,0.5,2.0,NPU:{DEVICE}\n"
    )
    return path


def _outer(path: Path) -> Path:
    output = path / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (path / "profiler_info_5.json").write_text(json.dumps(INFO))
    (path / "profiler_metadata.json").write_text(json.dumps(METADATA))
    return output


def _process(place: int) -> int:
    return PROCESS << 10 | place << 5 | DEVICE


def _trace_view() -> list[dict[str, object]]:
    events: list[dict[str, object]] = []

    def span(process: int, thread: int, name: str, start: int, end: int, args: object, **more: object) -> None:
        times = {"ts": micro(start), "dur": (end - start) / 1000}
        events.append({"ph": "X", "name": name, "pid": process, "tid": thread, **times, "args": args, **more})

    def flow(phase: str, number: int, process: int, thread: int, time: int) -> None:
        place = {"pid": process, "tid": thread, "ts": micro(time)}
        events.append({"ph": phase, "bp": "e", "name": "torch_to_npu", "id": number, "cat": "async_npu", **place})

    inputs = {"Input Dims": "4,8;\r\n2,8;\r\n", "Input type": "float;\r\nfloat;\r\nNone", "Call stack": ";\r\n".join(STACK)}
    for number, (name, thread, start, end) in enumerate([*OPS, STEP]):
        args = {"Sequence number": -1, "Fwd thread id": 0, **(inputs if not number else {})}
        span(PROCESS, thread, name, start, end, args, cat="cpu_op")
    span(PROCESS, THREAD, "Enqueue", 3_000, 3_500, {"correlation_id": 1}, cat="enqueue")
    span(PROCESS, QUEUE_THREAD, "Dequeue@addmm", 4_000, 8_000, {"correlation_id": 1}, cat="dequeue")
    for place, name, lane in (
        (13, "Ascend Hardware", "Stream 2"),
        (15, "HCCL", "Group 0 Communication"),
        (7, "CANN", "Thread 1"),
    ):
        process = _process(place)
        events.append({"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}})
        tid = 2 if place == 13 else 0
        events.append({"ph": "M", "name": "thread_name", "pid": process, "tid": tid, "args": {"name": lane}})
    events.append({"ph": "M", "name": "thread_name", "pid": _process(15), "tid": 1, "args": {"name": "Plane 0"}})
    for name, thread, start, end, connection in CALLS:
        span(_process(7), thread, f"Node@{name}", start, end, {"level": "node", "connection_id": connection})
    for name, _, stream, start, end, connection, op in KERNELS:
        span(_process(13), stream, name, start, end, {"Task Type": "AI_CORE", "connection_id": connection})
        flow("s", BASE + start, PROCESS, OPS[op][1], OPS[op][2])
        flow("f", BASE + start, _process(13), stream, start)
    name, stream, start, end, connection, op = COPY
    span(
        _process(13),
        stream,
        name,
        start,
        end,
        {"Task Type": "PCIE_DMA_SQE", "connection_id": connection, "data size(Byte)": 512},
    )
    flow("s", BASE + start, PROCESS, OPS[op][1], OPS[op][2])
    span(_process(13), stream, "EVENT_RECORD", 46_000, 46_020, {"Task Type": "EVENT_RECORD_SQE"})
    name, start, end, connection, op = COLLECTIVE
    span(_process(15), 0, name, start, end, {"connection_id": connection, "data_type": "FP32", "count": 4096})
    flow("s", BASE + start, PROCESS, OPS[op][1], OPS[op][2])
    span(_process(15), 1, "Notify_Wait", start, start + 500, {"size(Byte)": 4})
    span(_process(23), 0, "Computing", 10_000, 12_541, {})
    events.append({"ph": "C", "name": "AI Core Freq", "pid": _process(14), "tid": 0, "ts": micro(0), "args": {"MHz": 1800}})
    return events


def _write_analysis(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE CommAnalyzerTime (hccl_op_name, group_name, start_timestamp, elapse_time, transit_time, wait_time, "
        "synchronization_time, idle_time, step, type)"
    )
    name, step = (COLLECTIVE[0], GROUP), ("step7", "collective")
    connection.execute("INSERT INTO CommAnalyzerTime VALUES (?,?,?,?,?,?,?,?,?,?)", (*name, *TIMES.values(), *step))
    connection.execute(
        "CREATE TABLE CommAnalyzerBandwidth (hccl_op_name, group_name, transport_type, transit_size, transit_time, bandwidth, "
        "large_packet_ratio, package_size, count, total_duration, step, type)"
    )
    for transport, packets in (("HCCS", ("0.125", *PACKETS["0.125"])), ("SDMA", (0, 0, 0))):
        row = (*name, transport, *LINK.values(), *packets, *step)
        connection.execute("INSERT INTO CommAnalyzerBandwidth VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", row)
    connection.execute(
        "CREATE TABLE CommAnalyzerMatrix (hccl_op_name, group_name, src_rank, dst_rank, transport_type, transit_size, "
        "transit_time, bandwidth, step, type, op_name)"
    )
    *figures, op = BETWEEN.values()
    row = ("allreduce-total", GROUP, "5", "6", *figures, *step, op)
    connection.execute("INSERT INTO CommAnalyzerMatrix VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)
    connection.commit()
    connection.close()


def database_folder(path: Path) -> Path:
    """The same as a database."""
    output = _outer(path)
    _write_analysis(output / "analysis.db")
    connection = sqlite3.connect(output / "ascend_pytorch_profiler_5.db")
    texts: dict[str, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, 1000 + len(texts))

    def table(name: str, columns: str, rows: list[tuple[object, ...]]) -> None:
        connection.execute(f"CREATE TABLE {name} ({columns})")
        if rows:
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)

    launched = {op: [] for op in range(len(OPS))}
    for *_, number, op in [*KERNELS, COPY, COLLECTIVE]:
        launched[op].append(number)
    table("CONNECTION_IDS", "id, connectionId", [(op, number) for op, numbers in launched.items() for number in numbers])
    dims, types = text("4,8;\r\n2,8;\r\n"), text("float;\r\nfloat;\r\nNone")
    ops = [
        (
            str(BASE + start),
            str(BASE + end),
            PROCESS << 32 | thread,
            op,
            text(name),
            -1,
            0,
            *((types, dims, 0) if not op else (None,) * 3),
            50001,
        )
        for op, (name, thread, start, end) in enumerate(OPS)
    ]
    queue = [
        (str(BASE + 3_000), str(BASE + 3_500), PROCESS << 32 | THREAD, None, text("Enqueue"), *(None,) * 5, 50002),
        (str(BASE + 4_000), str(BASE + 8_000), PROCESS << 32 | QUEUE_THREAD, None, text("Dequeue@addmm"), *(None,) * 5, 50002),
    ]
    names = "startNs, endNs, globalTid, connectionId, name, sequenceNumber, fwdThreadId"
    names += ", inputDtypes, inputShapes, callchainId, type"
    table("PYTORCH_API", names, [*ops, *queue])
    table("PYTORCH_CALLCHAINS", "id, stack, stackDepth", [(0, text(frame), depth) for depth, frame in enumerate(STACK)])
    table("STEP_TIME", "id, startNs, endNs", [(7, BASE + STEP[2], BASE + STEP[3])])
    calls = [(BASE + s, BASE + e, 10000, PROCESS << 32 | t, number, text(f"Node@{name}")) for name, t, s, e, number in CALLS]
    table("CANN_API", "startNs, endNs, type, globalTid, connectionId, name", calls)
    table("ENUM_API_TYPE", "id, name", [(10000, "node")])
    tasks = [
        (BASE + s, BASE + e, DEVICE, n, task, text("KERNEL_AIVEC"), stream)
        for task, (_, _, stream, s, e, n, _) in enumerate(KERNELS)
    ]
    tasks.append((BASE + COPY[2], BASE + COPY[3], DEVICE, COPY[4], 77, text("MEMCPY_ASYNC"), COPY[1]))
    tasks.append((BASE + 46_000, BASE + 46_020, DEVICE, 99, 78, text("EVENT_RECORD"), 2))
    table("TASK", "startNs, endNs, deviceId, connectionId, globalTaskId, taskType, streamId", tasks)
    table("MEMCPY_INFO", "globalTaskId, size, memcpyOperation", [(77, 512, 1)])
    core, shapes = text("AI_VECTOR_CORE"), text('"4,8;8,2"')
    info = [(text(name), task, 32, core, text(kind), shapes) for task, (name, kind, *_) in enumerate(KERNELS)]
    table("COMPUTE_TASK_INFO", "name, globalTaskId, blockDim, taskType, opType, inputShapes", info)
    table("TASK_PMU_INFO", "globalTaskId, name, value", [(task, text("aiv_vec_ratio"), 0.25) for task in range(len(KERNELS))])
    name, start, end, number, _ = COLLECTIVE
    columns = "opName, startNs, endNs, connectionId, groupName, dataType, count, deviceId"
    table("COMMUNICATION_OP", columns, [(text(name), BASE + start, BASE + end, number, text(GROUP), 4, 4096, DEVICE)])
    table("ENUM_HCCL_DATA_TYPE", "id, name", [(4, "FP32")])
    name, size, allocated, released = BLOCK
    mib = 1 << 20
    columns = "name, size, allocationTime, releaseTime, allocationTotalAllocated, allocationTotalReserved"
    columns += ", releaseTotalAllocated, releaseTotalReserved, deviceId"
    table(
        "OP_MEMORY", columns, [(text(name), size, BASE + allocated, BASE + released, mib, 2 * mib, mib // 2, 2 * mib, DEVICE)]
    )
    table("STRING_IDS", "id, value", [(number, value) for value, number in texts.items()])
    connection.commit()
    connection.close()
    return path
