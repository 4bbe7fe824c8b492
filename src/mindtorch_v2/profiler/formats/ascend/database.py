"""Reads the databases of Ascend's profilers (ascend_pytorch_profiler_N.db), as events in Kineto's form."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote

from ...store.store import EventStore
from .. import kineto
from .._recovery import Recovery, TraceError
from .._source import Progress
from . import database_tables as tables
from . import kinds, planes
from .translate import Translator

_BATCH = 4096
_NPU = 20  # torch's number of the device type
_CATEGORIES = {tables.OPS: "cpu_op", tables.QUEUE: "enqueue", tables.CALLS: "python_function"}

# What is missing without a table, of those that every recording of a card has.
_NEEDED = {"STRING_IDS": "names are numbers", "PYTORCH_API": "there are no ops", "TASK": "there is no work of devices"}

_PARTS = "COMMUNICATION_TASK_INFO"

Event = dict[str, Any]


def read(
    path: str,
    progress: Progress | None = None,
    max_bytes: int | None = None,
    *,
    collectives: Mapping[str, Mapping[str, Any]] | None = None,
    recovery: Recovery | None = None,
) -> tuple[EventStore, Recovery]:
    """Read a database. TraceError if it is none, or has neither ops nor tasks.

    collectives: what other files tell of collectives, by name.
    """
    size = os.path.getsize(path)
    if max_bytes is not None and size > max_bytes:
        raise TraceError(f"{path!r} holds more than the {max_bytes} bytes that were allowed")
    recovery = Recovery("ascend") if recovery is None else recovery
    recovery.bytes_read += size
    try:
        with closing(sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1", uri=True)) as connection:
            recorded = _Database(connection, recovery, collectives or {})
            if not recorded.has("PYTORCH_API") and not recorded.has("TASK"):
                raise TraceError(f"{path!r} is a database without ops and tasks")
            store = kineto.from_events(_batches(recorded.events()), recovery, Translator())
    except sqlite3.DatabaseError as error:
        raise TraceError(f"{path!r} is no database that could be read: {error}") from None
    if progress is not None:
        progress(size, size)
    return store, recovery


def _batches(events: Iterator[Event]) -> Iterator[list[Event]]:
    while batch := list(islice(events, _BATCH)):
        yield batch


class _Task(NamedTuple):
    """What is known of a kernel beside its times."""

    name: str
    details: dict[str, Any]


class _Database:
    """Questions to one database. Tables and columns that it lacks have no rows and no values."""

    def __init__(
        self, connection: sqlite3.Connection, recovery: Recovery, collectives: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._connection = connection
        self._told_of_collectives = collectives
        self._recovery = recovery
        listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._columns = {
            name: {column[1] for column in connection.execute(f'PRAGMA table_info("{name}")')}
            for (name,) in listed.fetchall()
            if isinstance(name, str) and '"' not in name
        }
        for table, loss in _NEEDED.items():
            if table not in self._columns:
                recovery.note(f"the database has no table {table}: {loss}")
        self.texts: dict[Any, str] = dict(self.rows("STRING_IDS", "id", "value"))
        self._thread = next((thread for (thread,) in self.rows("PYTORCH_API", "globalTid") if type(thread) is int), 0)
        self._process = self._thread >> 32
        self._group_lanes: dict[Any, int] = {}

    def has(self, table: str) -> bool:
        """Whether there is such a table."""
        return table in self._columns

    def rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """These columns of a table, None for those that it does not have."""
        known = self._columns.get(table)
        if known is None:
            return iter(())
        wanted = ", ".join(f'"{column}"' if column in known else "NULL" for column in columns)
        return iter(self._connection.execute(f'SELECT {wanted} FROM "{table}"'))

    def text(self, number: Any) -> str:
        """A text by its number."""
        return self.texts.get(number, f"<unknown {number}>")

    def events(self) -> Iterator[Event]:
        """Everything as events."""
        yield from self._host()
        yield from self._steps()
        yield from self._marks()
        yield from self._collections()
        yield from self._runtime()
        yield from self._tasks()
        yield from self._collectives()
        yield from self._parts()
        yield from self._memory()

    # ------------------------------------------------------------------ the host

    def _host(self) -> Iterator[Event]:
        stacks = self._stacks()
        launched: dict[Any, list[Any]] = {}
        for number, connection in self.rows("CONNECTION_IDS", "id", "connectionId"):
            launched.setdefault(number, []).append(connection)
        columns = ("startNs", "endNs", "globalTid", "connectionId", "name", "sequenceNumber", "fwdThreadId")
        for start, end, thread, connection, name, sequence, forward, dtypes, shapes, chain, kind in self.rows(
            "PYTORCH_API", *columns, "inputDtypes", "inputShapes", "callchainId", "type"
        ):
            event = self._span("PYTORCH_API", self.text(name), start, end, thread)
            if event is None:
                continue
            event["cat"] = _CATEGORIES.get(kind, "user_annotation")
            args: dict[str, Any] = {}
            if kind in (tables.OPS, tables.MARKS):
                args["Sequence number"] = -1 if sequence is None else sequence
                args["Fwd thread id"] = forward or 0
                sizes, types = self._inputs(shapes, dtypes)
                if sizes is not None:
                    args["Input Dims"] = sizes
                if types is not None:
                    args["Input type"] = types
                if chain in stacks:
                    args["Call stack"] = stacks[chain]
                for number in launched.get(connection, ()):
                    yield {**event, "ph": "s", "cat": "async_npu", "id": number}
            yield {**event, "args": args}

    def _inputs(self, shapes: Any, dtypes: Any) -> tuple[str | None, str | None]:
        """Sizes and types of an op's inputs. Some releases of torch_npu wrote each into the other's column."""
        sizes, types = (None if number is None else self.text(number) for number in (shapes, dtypes))
        if sizes is not None and types is not None and _has_letters(sizes) and not _has_letters(types):
            return types, sizes
        return sizes, types

    def _stacks(self) -> dict[Any, str]:
        frames: dict[Any, dict[int, str]] = {}
        for chain, frame, depth in self.rows("PYTORCH_CALLCHAINS", "id", "stack", "stackDepth"):
            if type(depth) is int:
                frames.setdefault(chain, {})[depth] = self.text(frame)
        return {chain: ";\r\n".join(text for _, text in sorted(by_depth.items())) for chain, by_depth in frames.items()}

    def _steps(self) -> Iterator[Event]:
        known = {self.text(row[0]) for row in self.rows("PYTORCH_API", "name")}
        for number, start, end in self.rows("STEP_TIME", "id", "startNs", "endNs"):
            name = f"ProfilerStep#{number}"
            event = None if name in known else self._span("STEP_TIME", name, start, end, self._thread)
            if event is not None:
                yield {**event, "cat": "cpu_op"}

    def _marks(self) -> Iterator[Event]:
        """What programs marked by mstx; a mark at one moment ends where it starts."""
        for start, end, thread, message, domain in self.rows(
            "MSTX_EVENTS", "startNs", "endNs", "globalTid", "message", "domainId"
        ):
            event = self._span("MSTX_EVENTS", self.text(message), start, start if end is None else end, thread)
            if event is not None:
                yield {**event, "cat": "user_annotation", "args": {"domain": self.texts.get(domain, "default")}}

    def _collections(self) -> Iterator[Event]:
        for start, end, thread in self.rows("GC_RECORD", "startNs", "endNs", "globalTid"):
            event = self._span("GC_RECORD", "GC", start, end, thread)
            if event is not None:
                yield {**event, "cat": "user_annotation"}

    def _runtime(self) -> Iterator[Event]:
        levels = dict(self.rows("ENUM_API_TYPE", "id", "name"))
        for start, end, kind, thread, connection, name in self.rows(
            "CANN_API", "startNs", "endNs", "type", "globalTid", "connectionId", "name"
        ):
            event = self._span("CANN_API", self.text(name), start, end, thread)
            if event is not None:
                yield {**event, "cat": "privateuse1_runtime", "args": {"level": levels.get(kind), "correlation": connection}}

    def _span(self, table: str, name: str, start: Any, end: Any, thread: Any) -> Event | None:
        """A span of a thread, which is given as (process << 32) | thread; None, and counted, if it cannot be."""
        try:
            begin, length = int(start), int(end) - int(start)
            process, number = thread >> 32, thread & 0xFFFFFFFF
        except (TypeError, ValueError):
            self._recovery.skip(f"row of {table} without a time or thread")
            return None
        return {"ph": "X", "name": name, "pid": process, "tid": number, "ts": _micro(begin), "dur": _micro(length)}

    # ------------------------------------------------------------------ the device

    def _tasks(self) -> Iterator[Event]:
        kernels = self._kernels()
        copied = {
            task: (size, tables.DIRECTIONS.get(operation))
            for task, size, operation in self.rows("MEMCPY_INFO", "globalTaskId", "size", "memcpyOperation")
            if type(size) is int
        }
        names = {task: self.text(name) for task, name in self.rows("TASK_NAMES", "globalTaskId", "name")}
        collective_tasks = {task for (task,) in self.rows("COMMUNICATION_TASK_INFO", "globalTaskId")}
        numbers = ("taskId", "contextId", "modelId")
        for start, end, device, connection, task, kind, stream, *numbered in self.rows(
            "TASK", "startNs", "endNs", "deviceId", "connectionId", "globalTaskId", "taskType", "streamId", *numbers
        ):
            known, task_type = kernels.get(task), self.text(kind)
            if task_type.startswith(f"{kinds.MARK} "):
                mark = self._device_span("TASK", task_type[len(kinds.MARK) + 1 :], (start, end), device, stream, None)
                if mark is not None:
                    yield {**mark, "cat": "gpu_user_annotation"}
                continue
            name = known.name if known else names.get(task, task_type)
            # Parts of a kernel have its type, too: where kernels are listed, only those are.
            category = "kernel" if known else kinds.task_category(task_type, task_type)
            if category == "kernel" and kernels and not known:
                category = None
            args: dict[str, Any] = {**(known.details if known else {}), "Task Type": task_type, "stream": stream}
            if task in copied:
                args["bytes"], direction = copied[task]
                if direction is not None and task not in names:
                    args[kinds.COPY_NAME] = direction
            event = self._device_span("TASK", name, (start, end), device, stream, connection)
            if event is not None:
                if category is None or (task in collective_tasks and not known):
                    category, event["pid"] = kinds.TASK, kinds.process(self._process, kinds.HARDWARE, device)
                    args |= dict(zip(("Task Id", "Subtask Id", "Model Id"), numbered, strict=True))
                yield {**event, "cat": category, "args": {**event["args"], **args}}

    def _kernels(self) -> dict[Any, _Task]:
        kernels: dict[Any, _Task] = {}
        for task, name, *values in self.rows("COMPUTE_TASK_INFO", "globalTaskId", "name", *tables.KERNEL_DETAILS):
            details = {
                label: value if column in tables.KERNEL_NUMBERS else self.text(value).strip('"')
                for (column, label), value in zip(tables.KERNEL_DETAILS.items(), values, strict=True)
                if value is not None and self.texts.get(value) != "N/A"
            }
            kernels[task] = _Task(self.text(name), details)
        for task, name, value in self.rows("TASK_PMU_INFO", "globalTaskId", "name", "value"):
            if task in kernels:
                kernels[task].details[self.text(name)] = value
        return kernels

    def _collectives(self) -> Iterator[Event]:
        devices = [device for (device,) in self.rows("NPU_INFO", "id")]
        dtypes = dict(self.rows("ENUM_HCCL_DATA_TYPE", "id", "name"))
        lanes = self._group_lanes
        for name, start, end, connection, group, dtype, count, device in self.rows(
            "COMMUNICATION_OP", "opName", "startNs", "endNs", "connectionId", "groupName", "dataType", "count", "deviceId"
        ):
            text = self.text(name)
            lane = lanes.setdefault(group, -1 - len(lanes))
            place = device if device is not None else devices[0] if devices else 0
            event = self._device_span("COMMUNICATION_OP", text, (start, end), place, lane, connection)
            if event is None:
                continue
            args: dict[str, Any] = {**self._told_of_collectives.get(text, {}), "Process Group Name": self.text(group)}
            args |= {"In msg nelems": count, "dtype": dtypes.get(dtype)}
            named = kinds.collective(text)
            if named is not None:
                args["Collective name"], args["Seq"] = named
            if len(lanes) == -lane:
                yield _lane_name(place, lane)
            yield {**event, "cat": "kernel", "args": {**event["args"], **args}}

    def _parts(self) -> Iterator[Event]:
        """The tasks that collectives are made of, on lanes of planes."""
        places = ("startNs", "endNs", "deviceId", "streamId", "taskId", "contextId", "modelId")
        ran = {task: values for task, *values in self.rows("TASK", "globalTaskId", *places)} if self.has(_PARTS) else {}
        enums = [dict(self.rows(f"ENUM_HCCL_{name}_TYPE", "id", "name")) for name in ("TRANSPORT", "DATA", "LINK")]
        columns = ("transportType", "dataType", "linkType", "notifyId", "srcRank", "dstRank", "size", "bandwidth")
        for task, kind, plane, group, *values in self.rows(
            _PARTS, "globalTaskId", "taskType", "planeId", "groupName", *columns
        ):
            start, end, device, *numbers = ran.get(task, [None] * 7)
            lane = self._group_lanes.get(group)
            tid = plane if lane is None or type(plane) is not int else plane + 1 + (-1 - lane << 8)
            event = self._device_span(_PARTS, self.text(kind), (start, end), device, tid, None)
            if event is None:
                continue
            known = [enum.get(value) for enum, value in zip(enums, values, strict=False)]
            transport, dtype, link = (value or "INVALID_TYPE" for value in known)
            notified, source, target, size, bandwidth = values[3:]
            args = dict(zip(("stream id", "task id", "context id", "model id"), numbers, strict=True))
            args |= {"notify_id": planes.notify_text(notified), "task type": event["name"]}
            args |= {"src rank": source, "dst rank": target, "transport type": transport, "size(Byte)": size}
            args |= {"data type": dtype, "link type": link, planes.PLANE: plane}
            if bandwidth is not None:
                args["bandwidth(GB/s)"] = bandwidth
            if lane is not None:
                args[planes.GROUP] = -1 - lane
            process = kinds.process(self._process, kinds.COMMUNICATION, device)
            yield {**event, "pid": process, "cat": kinds.TASK, "args": args}

    def _device_span(self, table: str, name: str, times: tuple[Any, Any], device: Any, lane: Any, number: Any) -> Event | None:
        if not all(type(value) is int for value in (*times, device, lane)):
            self._recovery.skip(f"row of {table} without a time, device or stream")
            return None
        start, end = times
        args = {"device": device, "correlation": number, "External id": number} if type(number) is int else {"device": device}
        return {
            "ph": "X",
            "name": name,
            "pid": device,
            "tid": lane,
            "ts": _micro(start),
            "dur": _micro(end - start),
            "args": args,
        }

    def _memory(self) -> Iterator[Event]:
        ends: list[Callable[[str], str]] = [str, lambda column: column.replace("allocation", "release")]
        columns = ["allocationTime", "allocationTotalAllocated", "allocationTotalReserved"]
        wanted = [end(column) for end in ends for column in columns]
        for block, (size, device, *values) in enumerate(self.rows("OP_MEMORY", "size", "deviceId", *wanted), 1):
            for sign, (time, allocated, reserved) in ((1, values[:3]), (-1, values[3:])):
                if time is None:
                    continue
                event = self._span("OP_MEMORY", "[memory]", time, time, self._thread)
                if event is None or type(size) is not int:
                    continue
                args = {"Bytes": sign * size, "Addr": block, "Device Type": _NPU, "Device Id": device}
                args |= {"Total Allocated": allocated or 0, "Total Reserved": reserved or 0}
                del event["dur"]
                yield {**event, "ph": "i", "cat": "cpu_instant_event", "args": args}


def _lane_name(device: int, lane: int) -> Event:
    name = f"Group {-1 - lane} Communication"
    return {"ph": "M", "name": "thread_name", "pid": device, "tid": lane, "args": {"name": name}}


def _has_letters(text: str) -> bool:
    """Types of inputs have letters, sizes have not."""
    return any(map(str.isalpha, text))


def _micro(nanoseconds: int) -> Decimal:
    return Decimal(nanoseconds) / 1000
