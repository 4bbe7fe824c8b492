"""The databases of an Ascend folder: ascend_pytorch_profiler_N.db, the recording, and analysis.db, what is computed of it."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import cached_property
from typing import Any

import numpy as np

from ...._dispatch import observer
from ..._io.utf8 import utf8
from . import communication, kinds, planes
from . import database_tables as tables
from .contents import Contents
from .text_files import input_texts, kernel_detail, task_type

Row = tuple[Any, ...]
_NO_NUMBER = planes.NO_NUMBER
_LEVELS = {name: number for number, name in tables.API_TYPES.items()}


def databases(contents: Contents) -> dict[str, Iterable[bytes]]:
    """The files by name."""
    rank = "" if contents.rank is None else f"_{contents.rank}"
    computed = {"StepTraceTime": _step_times(contents), **communication.table_rows(contents)}
    return {
        f"ascend_pytorch_profiler{rank}.db": _database(tables.PROFILER, _Recording(contents).rows()),
        "analysis.db": _database({table: tables.ANALYSIS[table] for table in computed}, computed.items()),
    }


def _database(schema: Mapping[str, str], filled: Iterable[tuple[str, Iterable[Row]]]) -> Iterator[bytes]:
    """A database with these tables, of which some are filled, as the bytes of its file."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for table, columns in schema.items():
            connection.execute(f"CREATE TABLE {table} ({columns})")
        for table, rows in filled:
            places = ", ".join("?" * (schema[table].count(",") + 1))
            written = connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows).rowcount
            if table in tables.NOT_EMPTY and written < 1:
                connection.execute(f"DROP TABLE {table}")
        connection.commit()
        yield connection.serialize()


def _step_times(contents: Contents) -> Iterator[Row]:
    device = contents.devices[0] if contents.devices else 0
    for step in contents.steps:
        parts = (
            step.computing,
            step.exposed,
            step.communication - step.exposed,
            step.communication,
            step.free,
            step.stage,
            0,
            step.exposed,
            step.preparing,
        )
        yield device, str(step.number), *(part / 1000 for part in parts)


class _Recording:
    """The rows of a recording's tables. Texts get numbers as they are met, so their table comes last."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._texts: dict[str, int] = {}
        self._chains: dict[int, int] = {}  # stacks that ops have, by their place in the store
        work = np.concatenate([contents.kernels, contents.copies, contents.collectives])
        connections = contents.store.correlation[work]
        unused = int(connections.max(initial=0)) + 1
        # By a number the op that launched the work is found. Work without one gets its own, and so does work that has the
        # number of another op's work.
        self._connection: dict[int, int] = {}
        owners: dict[int, int] = {}
        self._launched: dict[int, list[int]] = {}
        for place, (row, known) in enumerate(zip(work.tolist(), connections.tolist(), strict=True)):
            launcher = int(contents.store.launcher[row])
            number = known if known >= 0 and owners.setdefault(known, launcher) == launcher else unused + place
            self._connection[row] = number
            numbers = self._launched.setdefault(launcher, [])
            if number not in numbers:
                numbers.append(number)

    def rows(self) -> Iterator[tuple[str, Iterable[Row]]]:
        """Tables with their rows."""
        contents, store = self._contents, self._contents.store
        yield "ENUM_API_TYPE", tables.API_TYPES.items()
        yield "ENUM_HCCL_DATA_TYPE", tables.HCCL_TYPES.items()
        yield "ENUM_HCCL_LINK_TYPE", tables.LINK_TYPES.items()
        yield "ENUM_HCCL_TRANSPORT_TYPE", tables.TRANSPORT_TYPES.items()
        yield "ENUM_HCCL_RDMA_TYPE", tables.RDMA_TYPES.items()
        yield "ENUM_MSTX_EVENT_TYPE", tables.MSTX_EVENTS.items()
        yield "ENUM_MEMCPY_OPERATION", tables.MEMCPY_OPERATIONS.items()
        version = {
            "SCHEMA_VERSION": "1.1.0",
            "SCHEMA_VERSION_MAJOR": "1",
            "SCHEMA_VERSION_MINOR": "1",
            "SCHEMA_VERSION_MICRO": "0",
        }
        yield "META_DATA", version.items()
        yield "HOST_INFO", [("0", utf8(str(store.metadata.get("host_name") or platform.node())).decode())]
        yield "NPU_INFO", [(device, "NPU") for device in contents.devices]
        rank = -1 if contents.rank is None else contents.rank
        yield "RANK_DEVICE_MAP", [(rank, device) for device in contents.devices]
        yield "SESSION_TIME_INFO", [(contents.wall(store.clock_start_ns), contents.wall(store.clock_end_ns))]
        yield "STEP_TIME", self._steps()
        yield "PYTORCH_API", self._host()
        yield "CONNECTION_IDS", self._connections()
        yield "PYTORCH_CALLCHAINS", self._stacks()
        yield "GC_RECORD", ((start, end, store.pid << 32) for start, end in contents.collections)
        yield "CANN_API", self._runtime()
        yield "TASK", self._tasks()
        yield "COMPUTE_TASK_INFO", self._kernels()
        yield "TASK_PMU_INFO", self._counters()
        yield "MEMCPY_INFO", self._copies()
        yield "TASK_NAMES", ((row, self._text(name)) for row, name in self._copy_names())
        yield "COMMUNICATION_OP", self._collectives()
        yield "COMMUNICATION_TASK_INFO", self._parts()
        yield "OP_MEMORY", self._memory()
        yield "MEMORY_RECORD", self._totals()
        yield "STRING_IDS", ((number, utf8(text).decode()) for text, number in self._texts.items())

    def _text(self, value: str) -> int:
        return self._texts.setdefault(value, tables.FIRST_TEXT + len(self._texts))

    def _times(self, row: int) -> tuple[int, int]:
        store = self._contents.store
        return self._contents.wall(store.start[row]), self._contents.wall(store.end[row])

    def _thread(self, row: int) -> int:
        return self._contents.store.pid << 32 | self._contents.lane(row) & 0xFFFFFFFF

    # ------------------------------------------------------------------ the host

    def _steps(self) -> Iterator[Row]:
        store = self._contents.store
        for row in np.flatnonzero(store.kind == observer.STEP).tolist():
            yield int(store.step[row]), *self._times(row)

    def _host(self) -> Iterator[Row]:
        contents, store = self._contents, self._contents.store
        forward, stacks = store.fwd_tid.tolist(), store.call_stack
        for row in contents.ops.tolist():
            start, end = self._times(row)
            dtypes = shapes = chain = None
            if store.shapes[row] >= 0:
                inputs = input_texts(store.input_infos[store.shapes[row]])
                dtypes, shapes = self._text(inputs["Input type"]), self._text(inputs["Input Dims"])
            if stacks[row] >= 0:
                chain = self._chains.setdefault(int(stacks[row]), len(self._chains))
            yield (
                str(start),
                str(end),
                self._thread(row),
                tables.FIRST_CONNECTION + row if row in self._launched else None,
                self._text(contents.name(row)),
                int(store.seq[row]),
                1 + forward[row] if forward[row] >= 0 else 0,
                dtypes,
                shapes,
                chain,
                tables.MARKS if store.kind[row] == observer.SCOPE else tables.OPS,
            )
        for row in contents.calls.tolist():
            start, end = self._times(row)
            name = self._text(contents.name(row))
            yield str(start), str(end), self._thread(row), None, name, *[None] * 5, tables.CALLS

    def _connections(self) -> Iterator[Row]:
        for row, numbers in self._launched.items():
            if row >= 0:
                yield from ((tables.FIRST_CONNECTION + row, number) for number in numbers)

    def _stacks(self) -> Iterator[Row]:
        for stack, chain in self._chains.items():
            for depth, frame in enumerate(self._contents.store.stacks[stack]):
                yield chain, self._text(frame), depth

    def _runtime(self) -> Iterator[Row]:
        contents = self._contents
        for row in contents.runtime.tolist():
            level = _LEVELS.get(contents.level(row), _LEVELS["node"])
            yield *self._times(row), level, self._thread(row), contents.connection(row), self._text(contents.name(row))

    # ------------------------------------------------------------------ the device

    def _tasks(self) -> Iterator[Row]:
        contents = self._contents
        for row in [*contents.kernels.tolist(), *contents.copies.tolist()]:
            kind = contents.store.kind[row]
            copied = "MEMCPY_ASYNC" if kind == observer.COPY else "MEMSET_ASYNC"
            yield (
                *self._times(row),
                contents.device(row),
                self._connection[row],
                row,
                contents.store.pid,
                self._text(task_type(contents, row) if kind == observer.KERNEL else copied),
                _NO_NUMBER,
                contents.lane(row),
                row,
                _NO_NUMBER,
            )
        for row in contents.ranges.tolist():
            kind = self._text(f"{kinds.MARK} {contents.name(row)}")  # a task has no other name
            place = (_NO_NUMBER, contents.lane(row), row, _NO_NUMBER)
            yield *self._times(row), contents.device(row), _NO_NUMBER, row, contents.store.pid, kind, *place
        for number, task in self._other_tasks:
            times, kind = (contents.wall(task.start), contents.wall(task.end)), self._text(planes.task_type(task))
            place = (task.context, task.stream, task.task, task.model)
            yield *times, task.device, task.connection, number, contents.store.pid, kind, *place

    @cached_property
    def _other_tasks(self) -> list[tuple[int, planes.Task]]:
        """Tasks that are no rows, numbered behind the rows."""
        return list(enumerate(planes.tasks(self._contents), len(self._contents.store.start)))

    def _kernels(self) -> Iterator[Row]:
        contents = self._contents
        columns = [part.split()[0] for part in tables.PROFILER["COMPUTE_TASK_INFO"].split(", ")]
        for row in contents.kernels.tolist():
            details = {**contents.details(row), "Type": contents.kernel_type(row), "Accelerator Core": contents.core(row)}
            details.setdefault("Block Num", details.get("Block Dim", 0))
            known: dict[str, Any] = {"name": self._text(contents.name(row)), "globalTaskId": row}
            for column in columns[2:]:
                label = tables.KERNEL_DETAILS.get(column, "")
                value = kernel_detail(label, details.get(label, "N/A"))
                if column in tables.KERNEL_NUMBERS:
                    known[column] = value if type(value) is int else 0
                else:
                    known[column] = self._text(str(value))
            yield tuple(known.values())

    def _counters(self) -> Iterator[Row]:
        """What the recording tells of kernels as numbers and other tables have no column for."""
        contents = self._contents
        elsewhere = {*tables.KERNEL_DETAILS.values(), "Block Dim", "device", "stream", "correlation", "External id"}
        for row in contents.kernels.tolist():
            for name, value in contents.details(row).items():
                if name not in elsewhere and type(value) in (int, float):
                    yield row, self._text(name), value

    def _copies(self) -> Iterator[Row]:
        contents = self._contents
        for row in contents.copies.tolist():
            size = contents.details(row).get("bytes")
            if type(size) is int:
                named = f"{contents.name(row)} {contents.details(row).get(kinds.COPY_NAME)}"
                yield row, size, next((number for number, text in tables.DIRECTIONS.items() if text in named), 65535)

    def _copy_names(self) -> Iterator[tuple[int, str]]:
        named = ((row, self._contents.name(row)) for row in self._contents.copies.tolist())
        return ((row, name) for row, name in named if kinds.is_copy_name(name))

    def _collectives(self) -> Iterator[Row]:
        contents = self._contents
        dtypes = {name: number for number, name in tables.HCCL_TYPES.items()}
        for row in contents.collectives.tolist():
            details, name = contents.details(row), contents.collective_name(row)
            yield (
                self._text(name),
                *self._times(row),
                self._connection[row],
                self._text(contents.group_name(row)),
                row,
                0,
                0,
                dtypes.get(str(details.get("dtype")).upper()),
                self._text("N/A"),
                details.get("In msg nelems"),
                self._text(name.partition("__")[0] + "_"),
                contents.device(row),
            )

    def _parts(self) -> Iterator[Row]:
        contents = self._contents
        enums = [
            {name: number for number, name in known.items()}
            for known in (tables.TRANSPORT_TYPES, tables.HCCL_TYPES, tables.LINK_TYPES)
        ]
        owners = planes.Owners(contents)
        for number, task in self._other_tasks:
            args = task.part
            if not args:
                continue
            row = owners.of(task)
            name, group = ("N/A", "N/A") if row is None else (contents.collective_name(row), contents.group_name(row))
            source, target, size, bandwidth = (
                value if type(value := args.get(key)) in (int, float) else None
                for key in ("src rank", "dst rank", "size(Byte)", "bandwidth(GB/s)")
            )
            transport, dtype, link = (
                known.get(str(args.get(key)), tables.INVALID)
                for known, key in zip(enums, ("transport type", "data type", "link type"), strict=True)
            )
            what = (self._text(name), number, self._text(task.part_name), args[planes.PLANE], self._text(group))
            ranks = (planes.notify(args.get("notify_id")), tables.INVALID, source, target)
            yield *what, *ranks, transport, size, dtype, link, row, 1, bandwidth

    def _memory(self) -> Iterator[Row]:
        for block in self._contents.blocks():
            length = None if block.released is None else block.released - block.allocated
            times = (block.allocated, block.released, block.released, length, length)
            before = (block.total, block.reserved, block.total)
            after = (block.released_total, block.released_reserved, block.released_total)
            yield self._text(block.name), block.size, *times, *before, *after, 0, block.device

    def _totals(self) -> Iterator[Row]:
        for time, total, reserved, device in self._contents.moments():
            yield self._text("PTA"), time, total, reserved, total, 0, device
