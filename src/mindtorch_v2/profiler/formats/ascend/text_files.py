"""The text files of an Ascend folder: trace_view.json and the tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import orjson

from ...._dispatch import observer
from ..._io.csv_cells import csv_cell
from ..._io.strict_json import dumps
from ...store.intervals import Intervals
from ...store.store import InputInfo
from . import kinds, planes
from .contents import Contents

SEPARATOR = ";\r\n"
_KB, _MB = 1024, 1024 * 1024
OVERLAP_LANES = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")
_NAMED = {"Type", "Accelerator Core", "Wait Time(us)", "Block Num", "Block Dim"}
_OWN = {"device", "stream", "Task Type"}  # of the details, what other columns and the trace have


def trace_view(contents: Contents) -> Iterator[bytes]:
    """trace_view.json: an array of events, whose times are text."""
    before = b"["
    for event in _events(contents):
        yield before + dumps(event).encode()
        before = b",\n"
    yield b"[]" if before == b"[" else b"]"


def _events(contents: Contents) -> Iterator[dict[str, Any]]:
    yield from _lanes(contents)
    yield from _host(contents)
    yield from _collections(contents)
    yield from _runtime(contents)
    yield from _hardware(contents)
    yield from _ranges(contents)
    yield from _collectives(contents)
    yield from _overlap(contents)
    yield from _others(contents)


def micro(nanoseconds: int) -> str:
    """A time as text: microseconds with three decimals."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"


def _span(contents: Contents, row: int, process: int, thread: int, name: str, args: dict[str, Any]) -> dict[str, Any]:
    start, end = int(contents.store.start[row]), int(contents.store.end[row])
    times = {"ts": micro(contents.wall(start)), "dur": (end - start) / 1000}
    return {"ph": "X", "name": name, "pid": process, "tid": thread, **times, "args": args}


def _process(contents: Contents, place: int, device: int = 0) -> int:
    return kinds.process(contents.store.pid, place, device)


def _lanes(contents: Contents) -> Iterator[dict[str, Any]]:
    store, pid = contents.store, contents.store.pid
    devices = contents.devices
    processes = [(pid, "Python", "CPU", 0), (_process(contents, kinds.CANN), "CANN", "CPU", kinds.CANN)]
    for device in devices:
        for name, place in (
            ("Ascend Hardware", kinds.HARDWARE),
            ("HCCL", kinds.COMMUNICATION),
            ("Overlap Analysis", kinds.OVERLAP),
        ):
            label = name if len(devices) == 1 else f"{name} {device}"
            processes.append((_process(contents, place, device), label, "NPU", place))
    for process, name, label, place in processes:
        for what, args in (
            ("process_name", {"name": name}),
            ("process_labels", {"labels": label}),
            ("process_sort_index", {"sort_index": place}),
        ):
            yield {"ph": "M", "name": what, "pid": process, "tid": 0, "args": args}
    lanes: set[tuple[int, int, str]] = set()
    for row in [*contents.ops.tolist(), *contents.calls.tolist()]:
        lanes.add((pid, contents.lane(row), f"Thread {contents.lane(row)}"))
    for row in [*contents.kernels.tolist(), *contents.copies.tolist(), *contents.ranges.tolist()]:
        process = _process(contents, kinds.HARDWARE, contents.device(row))
        lanes.add((process, contents.lane(row), f"Stream {contents.lane(row)}"))
    for row in contents.collectives.tolist():
        number = contents.groups[int(store.tid[row])]
        process = _process(contents, kinds.COMMUNICATION, contents.device(row))
        lanes.add((process, number, f"Group {number} Communication"))
    for device, number, name in planes.Lanes(contents).names():
        lanes.add((_process(contents, kinds.COMMUNICATION, device), number, name))
    for device in devices:
        process = _process(contents, kinds.OVERLAP, device)
        lanes |= {(process, lane, name) for lane, name in enumerate(OVERLAP_LANES)}
    for process, thread, name in sorted(lanes):
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}}


def _host(contents: Contents) -> Iterator[dict[str, Any]]:
    store, pid = contents.store, contents.store.pid
    stacks = store.call_stack
    forward = store.fwd_tid.tolist()
    for row in contents.ops.tolist():
        args: dict[str, Any] = {
            "Sequence number": int(store.seq[row]),
            "Fwd thread id": 1 + forward[row] if forward[row] >= 0 else 0,
        }
        if store.shapes[row] >= 0:
            args |= input_texts(store.input_infos[store.shapes[row]])
        if stacks[row] >= 0:
            args["Call stack"] = SEPARATOR.join(store.stacks[stacks[row]])
        if store.kind[row] == observer.SCOPE:
            args[kinds.SCOPE_ARGUMENT] = "user_annotation"
        yield {**_span(contents, row, pid, contents.lane(row), contents.name(row), args), "cat": "cpu_op"}
    for number, row in enumerate(contents.calls.tolist()):
        args = {"Python id": number + 1}
        yield {**_span(contents, row, pid, contents.lane(row), contents.name(row), args), "cat": "python_function"}
    created, nodes = store.links
    for number, (row, node) in enumerate(zip(created.tolist(), nodes.tolist(), strict=True), 1):
        for phase, end in (("s", row), ("f", node)):
            place = {"pid": pid, "tid": contents.lane(end), "ts": micro(contents.wall(store.start[end]))}
            yield {"ph": phase, "bp": "e", "name": "fwdbwd", "id": number, "cat": "fwdbwd", **place}


def input_texts(info: InputInfo) -> dict[str, str]:
    """Shapes and types of an op's inputs as these files have them."""
    dims = [",".join(map(str, sizes)) if all(type(size) is int for size in sizes) else "" for sizes in info.dims]
    return {"Input Dims": SEPARATOR.join(dims), "Input type": SEPARATOR.join(info.types)}


def _runtime(contents: Contents) -> Iterator[dict[str, Any]]:
    process = _process(contents, kinds.CANN)
    for row in contents.runtime.tolist():
        details, thread, connection = contents.details(row), contents.lane(row), contents.connection(row)
        name = contents.name(row)
        args = {"Thread Id": thread, "Mode": details.get("Mode", "launch"), "level": contents.level(row)}
        if "level" not in details and "@" not in name:  # CANN has the layer before the name, and tools look for it
            args[kinds.CALL_NAME], name = name, f"AscendCL@{name}"
        if connection is None:
            yield _span(contents, row, process, thread, name, args)
            continue
        event = _span(contents, row, process, thread, name, {**args, "connection_id": connection})
        yield event
        place = {"pid": process, "tid": thread, "ts": event["ts"]}
        yield {"name": f"HostToDevice{connection}", "ph": "s", "cat": "HostToDevice", "id": str(connection), **place}


def _hardware(contents: Contents) -> Iterator[dict[str, Any]]:
    store = contents.store
    for row in [*contents.kernels.tolist(), *contents.copies.tolist()]:
        process, details = _process(contents, kinds.HARDWARE, contents.device(row)), contents.details(row)
        name = contents.name(row)
        args = {"Task Type": task_type(contents, row)}
        if store.kind[row] != observer.KERNEL:
            if type(details.get("bytes")) is int:
                args["data size(Byte)"] = details["bytes"]
            if not name.startswith(("MEMCPY", "MEMSET")):
                args[kinds.COPY_NAME], name = name, "MEMCPY_ASYNC" if store.kind[row] == observer.COPY else "MEMSET_ASYNC"
        yield from _with_flows(contents, row, _span(contents, row, process, contents.lane(row), name, args))


def _ranges(contents: Contents) -> Iterator[dict[str, Any]]:
    for row in contents.ranges.tolist():
        process = _process(contents, kinds.HARDWARE, contents.device(row))
        yield _span(contents, row, process, contents.lane(row), contents.name(row), {"Task Type": kinds.MARK})


def task_type(contents: Contents, row: int) -> str:
    """What the recording says, if that tells a kernel or a copy from other tasks."""
    told = str(contents.details(row).get("Task Type"))
    if contents.store.kind[row] != observer.KERNEL:
        return told if kinds.task_category(told, "MEMCPY_ASYNC") else "SDMA_SQE"
    return told if kinds.task_category(told, "") == "kernel" else "AI_CORE"


def _collectives(contents: Contents) -> Iterator[dict[str, Any]]:
    for row in contents.collectives.tolist():
        process, details = _process(contents, kinds.COMMUNICATION, contents.device(row)), contents.details(row)
        args = {"model id": 4294967295, "data_type": details.get("dtype"), "count": details.get("In msg nelems")}
        lane = contents.groups[int(contents.store.tid[row])]
        yield from _with_flows(contents, row, _span(contents, row, process, lane, contents.collective_name(row), args))


def _with_flows(contents: Contents, row: int, event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A device row, and the flows that lead to it: from CANN's call by its number, from the op by the row's start."""
    store, connection, launcher = contents.store, contents.connection(row), int(contents.store.launcher[row])
    if connection is not None:
        event["args"]["connection_id"] = connection
    yield event
    end = {"pid": event["pid"], "tid": event["tid"], "ts": event["ts"]}
    if connection is not None:
        yield {"name": f"HostToDevice{connection}", "ph": "f", "cat": "HostToDevice", "id": str(connection), "bp": "e", **end}
    if launcher >= 0:
        flow = {"bp": "e", "name": "torch_to_npu", "id": contents.wall(store.start[row]), "cat": "async_npu"}
        begin = {"pid": store.pid, "tid": contents.lane(launcher), "ts": micro(contents.wall(store.start[launcher]))}
        yield {"ph": "s", **flow, **begin}
        yield {"ph": "f", **flow, **end}


def _collections(contents: Contents) -> Iterator[dict[str, Any]]:
    if not contents.collections:
        return
    process = _process(contents, kinds.PYTHON_GC)
    lane = {"ph": "M", "pid": process, "tid": 0}
    yield {**lane, "name": "process_name", "args": {"name": "Python GC"}}
    yield {**lane, "name": "process_labels", "args": {"labels": "CPU"}}
    yield {**lane, "name": "process_sort_index", "args": {"sort_index": kinds.PYTHON_GC}}
    yield {**lane, "name": "thread_name", "args": {"name": "Python GC"}}
    for start, end in contents.collections:
        yield {"ph": "X", "name": "GC", "pid": process, "tid": 0, "ts": micro(start), "dur": (end - start) / 1000}


def _overlap(contents: Contents) -> Iterator[dict[str, Any]]:
    for device in contents.devices:
        process = _process(contents, kinds.OVERLAP, device)
        computing, talking = contents.computing(device), contents.communicating(device)
        both = computing | talking
        free = Intervals(both.end[:-1], both.start[1:])
        for lane, (name, spans) in enumerate(zip(OVERLAP_LANES, (computing, talking, talking - computing, free), strict=True)):
            for start, end in zip(spans.start.tolist(), spans.end.tolist(), strict=True):
                yield _bare(contents, process, lane, name, start, end)


def _bare(contents: Contents, process: int, lane: int, name: str, start: int, end: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "pid": process,
        "tid": lane,
        "ts": micro(contents.wall(start)),
        "dur": (end - start) / 1000,
    }


def _others(contents: Contents) -> Iterator[dict[str, Any]]:
    """Counters and tasks of a folder that was read."""
    lanes = planes.Lanes(contents)
    for other in contents.store.other_events:
        fields = orjson.loads(other.fields)
        if fields.get("cat") == kinds.OVERLAP_SPAN:
            continue  # computed anew
        if fields.get("cat") == kinds.TASK and planes.is_part(fields):
            fields = lanes.placed(contents, fields)
        length = {"dur": other.duration / 1000} if other.duration >= 0 else {}
        yield {**fields, "ts": micro(contents.wall(other.start)), **length}


# ---------------------------------------------------------------------- tables


def tables(contents: Contents) -> dict[str, Iterable[bytes]]:
    """The CSV files by name."""
    files = {
        "kernel_details.csv": _kernel_details(contents),
        "op_statistic.csv": _op_statistic(contents),
        "step_trace_time.csv": _step_trace_time(contents),
        "operator_details.csv": _operator_details(contents),
        "api_statistic.csv": _api_statistic(contents),
    }
    if len(contents.store.mem_time):
        files["operator_memory.csv"] = _operator_memory(contents)
        files["memory_record.csv"] = _memory_record(contents)
    return {name: _csv(rows) for name, rows in files.items()}


def _csv(rows: Iterable[Iterable[Any]]) -> Iterator[bytes]:
    for row in rows:
        line = io.StringIO(newline="")
        csv.writer(line).writerow([value if isinstance(value, _Time) else csv_cell(value) for value in row])
        yield line.getvalue().encode("utf-8", "replace")


class _Time(str):
    """A cell with a time, which has a tab behind it, so that spreadsheets keep all digits."""

    __slots__ = ()


def _time(nanoseconds: int) -> _Time:
    return _Time(f"{micro(nanoseconds)}\t")


def _kernel_details(contents: Contents) -> Iterator[list[Any]]:
    store = contents.store
    rows = np.sort(np.concatenate([contents.kernels, contents.collectives])).tolist()
    known: dict[str, None] = {}
    for row in contents.kernels.tolist():
        known |= dict.fromkeys(contents.details(row))
    more = [key for key in known if key not in _NAMED and key not in _OWN]
    header = [
        "Step Id",
        "Device_id",
        "Name",
        "Type",
        "Accelerator Core",
        "Start Time(us)",
        "Duration(us)",
        "Wait Time(us)",
        "Block Num",
    ]
    yield [*header, *more]
    before: dict[int, int] = {}
    for row in rows:
        start, end, device = int(store.start[row]), int(store.end[row]), contents.device(row)
        wait = max(start - before.get(device, start), 0)
        before[device] = max(end, before.get(device, 0))
        details = contents.details(row)
        talks = bool(store.is_collective[row])
        name = contents.collective_name(row) if talks else contents.name(row)
        kind = name.partition("__")[0] + "_" if talks else contents.kernel_type(row)
        core = "HCCL" if talks else contents.core(row)
        blocks = details.get("Block Num", details.get("Block Dim", 0))
        times = [_time(contents.wall(start)), micro(end - start), micro(wait)]
        yield [
            int(store.step[row]),
            device,
            name,
            kind,
            core,
            *times,
            blocks,
            *("N/A" if talks else kernel_detail(key, details.get(key, "N/A")) for key in more),
        ]


def kernel_detail(name: str, value: Any) -> Any:
    """What is told of a kernel as CANN writes it: shapes are in quotes, by which tools find the same kernel elsewhere."""
    return f'"{value}"' if name.endswith("Shapes") and value != "N/A" else value


def _op_statistic(contents: Contents) -> Iterator[list[Any]]:
    yield [
        "Device_id",
        "OP Type",
        "Core Type",
        "Count",
        "Total Time(us)",
        "Min Time(us)",
        "Avg Time(us)",
        "Max Time(us)",
        "Ratio(%)",
    ]
    spent: dict[tuple[int, str, str], list[int]] = {}
    for row in contents.kernels.tolist():
        key = (contents.device(row), contents.kernel_type(row), contents.core(row))
        spent.setdefault(key, []).append(int(contents.store.duration[row]))
    whole = sum(map(sum, spent.values())) or 1
    for key, times in sorted(spent.items(), key=lambda item: -sum(item[1])):
        yield [*key, len(times), *_statistics(times), f"{100 * sum(times) / whole:.3f}"]


def _statistics(times: list[int]) -> list[str]:
    """Sum, shortest, mean and longest in microseconds."""
    return [micro(sum(times)), micro(min(times)), f"{sum(times) / len(times) / 1000:.3f}", micro(max(times))]


def _step_trace_time(contents: Contents) -> Iterator[list[Any]]:
    yield [
        *("Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Stage", "Bubble"),
        *("Communication(Not Overlapped and Exclude Receive)", "Preparing"),
    ]
    for step in contents.steps:
        overlapped = step.communication - step.exposed
        parts = (
            step.computing,
            step.exposed,
            overlapped,
            step.communication,
            step.free,
            step.stage,
            0,
            step.exposed,
            step.preparing,
        )
        yield [step.number, *(micro(part) for part in parts)]


def _operator_details(contents: Contents) -> Iterator[list[Any]]:
    store = contents.store
    yield [
        *(
            "Name",
            "Input Shapes",
            "Call Stack",
            "Host Self Duration(us)",
            "Host Total Duration(us)",
            "Device Self Duration(us)",
        ),
        *("Device Total Duration(us)", "Device Self Duration With AICore(us)", "Device Total Duration With AICore(us)"),
    ]
    stacks = store.call_stack
    on_device = (store.self_device_ns, store.total_device_ns, *contents.time_on_cores)
    for row in contents.ops[store.kind[contents.ops] != observer.STEP].tolist():
        shapes = input_texts(store.input_infos[store.shapes[row]])["Input Dims"] if store.shapes[row] >= 0 else ""
        stack = SEPARATOR.join(store.stacks[stacks[row]]) if stacks[row] >= 0 else ""
        host = [micro(int(store.self_ns[row])), micro(int(store.duration[row]))]
        yield [contents.name(row), shapes, stack, *host, *(micro(int(times[row])) for times in on_device)]


def _api_statistic(contents: Contents) -> Iterator[list[Any]]:
    yield ["Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)", "Variance"]
    spent: dict[tuple[str, str], list[int]] = {}
    for row in contents.runtime.tolist():
        key = (contents.level(row), contents.name(row).rpartition("@")[2])
        spent.setdefault(key, []).append(int(contents.store.duration[row]))
    for key, times in sorted(spent.items(), key=lambda item: -sum(item[1])):
        total, shortest, mean, longest = _statistics(times)
        yield [*key, total, len(times), mean, shortest, longest, f"{np.var(np.array(times) / 1000):.3f}"]


def _operator_memory(contents: Contents) -> Iterator[list[Any]]:
    kinds_of_time = (
        "Allocation Time(us)",
        "Release Time(us)",
        "Active Release Time(us)",
        "Duration(us)",
        "Active Duration(us)",
    )
    totals = [f"{when} Total {what}(MB)" for when in ("Allocation", "Release") for what in ("Allocated", "Reserved", "Active")]
    yield ["Name", "Size(KB)", *kinds_of_time, *totals, "Stream Ptr", "Device Type"]
    for block in contents.blocks():
        times: list[str] = [_time(block.allocated), *[""] * 4]
        if block.released is not None:
            released, length = _time(block.released), _time(block.released - block.allocated)
            times = [_time(block.allocated), released, released, length, length]
        before = [_megabytes(block.total), _megabytes(block.reserved), _megabytes(block.total)]
        after = [_megabytes(block.released_total), _megabytes(block.released_reserved), _megabytes(block.released_total)]
        yield [block.name, block.size / _KB, *times, *before, *after, 0, f"NPU:{block.device}"]


def _memory_record(contents: Contents) -> Iterator[list[Any]]:
    yield [
        "Component",
        "Timestamp(us)",
        "Total Allocated(MB)",
        "Total Reserved(MB)",
        "Total Active(MB)",
        "Stream Ptr",
        "Device Type",
    ]
    for time, total, reserved, device in contents.moments():
        figures = [_megabytes(total), _megabytes(reserved), _megabytes(total)]
        yield ["PTA", _time(time), *figures, 0, f"NPU:{device}"]


def _megabytes(size: int | None) -> Any:
    return "" if size is None else size / _MB
