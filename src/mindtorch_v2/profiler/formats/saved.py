"""This project's own file format: small, exact, and readable up to where a file was cut off.

docs/saved-format.md describes it. `Writer` encodes one frame at a time, so that a recording can be streamed while it runs;
`save` writes a finished one.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._io.files import write_file
from ..store.store import COLUMNS, EventStore
from ._source import Progress
from .saved_file import coding
from .saved_file.frames import END, LOG, MEMORY, META, MOST_PAYLOAD, ROWS, TABLE, frame, header
from .saved_file.layout import (
    AS_RECORDED,
    COLUMN_HEAD,
    ENTRIES_PER_FRAME,
    FRAMES,
    IN_ROW_ORDER,
    LEAST_ROWS_PER_FRAME,
    LOG_HEAD,
    LOG_TABLES,
    MEMORY_ROW_COLUMNS,
    ROW_COLUMNS,
    ROWS_HEAD,
    ROWS_PER_FRAME,
    TABLE_HEAD,
    TABLES,
)
from .saved_file.reader import read

__all__ = ["Writer", "export", "load", "read", "save"]

_NUMBERS = ("stack_nodes", "stacks")  # tables whose entries are whole numbers


class Writer:
    """Encodes the frames of a file, one after another; the caller writes them.

    Entries of tables come before the rows that refer to them, and may be added at any time. The last META counts.
    """

    def __init__(self, recorded: bool = False) -> None:
        self._order = AS_RECORDED if recorded else IN_ROW_ORDER
        self._counts = dict.fromkeys(TABLES, 0)
        self._frame_numbers: dict[str, int] = {}
        self._node_numbers: dict[tuple[str, ...], int] = {(): -1}
        self._rows = self._memory = 0

    def header(self) -> bytes:
        """The bytes that a file begins with."""
        return header()

    def meta(self, values: Mapping[str, Any]) -> bytes:
        """Fields of the whole recording; a later frame replaces an earlier one."""
        return frame(META, _json({**values, "order": self._order}))

    def table(self, table: str, entries: Sequence[Any]) -> Iterator[bytes]:
        """Further entries of names, threads, input_infos, stacks, modules or overloads."""
        if table == "stacks":
            known = len(self._frame_numbers)
            nodes = self._new_nodes(entries)
            yield from self.table("frames", list(islice(self._frame_numbers, known, None)))
            yield from self.table("stack_nodes", nodes)
            entries = [self._node_numbers[stack] for stack in entries]
        for at in range(0, len(entries), ENTRIES_PER_FRAME):
            yield from self._table_part(table, entries[at : at + ENTRIES_PER_FRAME])

    def _new_nodes(self, stacks: Sequence[tuple[str, ...]]) -> list[tuple[int, int]]:
        """(node above, frame) of each node that these stacks are the first to need. Stacks share the nodes of their callers."""
        nodes, numbers = self._node_numbers, self._frame_numbers
        new: list[tuple[int, int]] = []
        for whole in stacks:
            stack, missing = whole, []
            while stack not in nodes:
                missing.append(stack)
                stack = stack[1:]
            above = nodes[stack]
            for inner in reversed(missing):
                new.append((above, numbers.setdefault(inner[0], len(numbers))))
                above = nodes[inner] = len(nodes) - 1
        return new

    def _table_part(self, table: str, part: Sequence[Any]) -> Iterator[bytes]:
        head = TABLE_HEAD.pack(TABLES.index(table), self._counts[table], len(part))
        body = head + _json(part if table in _NUMBERS else [_plain(entry) for entry in part])
        if len(body) > MOST_PAYLOAD and len(part) > 1:  # long names
            half = len(part) // 2
            yield from self._table_part(table, part[:half])
            yield from self._table_part(table, part[half:])
            return
        yield frame(TABLE, body)
        self._counts[table] += len(part)

    def rows(self, columns: Mapping[str, NDArray[Any]]) -> Iterator[bytes]:
        """Further rows. A reader fills columns that are left out with the default of OPTIONAL."""
        count = len(columns["start"])
        coded = {**columns, "end": np.asarray(columns["end"]) - columns["start"]}
        for at in range(0, count, ROWS_PER_FRAME):
            part = {name: values[at : at + ROWS_PER_FRAME] for name, values in coded.items()}
            yield frame(ROWS, _rows_body(self._rows, part, ROW_COLUMNS))
            self._rows += len(part["start"])

    def memory(self, columns: Mapping[str, NDArray[Any]]) -> Iterator[bytes]:
        """Further allocations and frees."""
        for at in range(0, len(columns["mem_time"]), ROWS_PER_FRAME):
            part = {name: values[at : at + ROWS_PER_FRAME] for name, values in columns.items()}
            yield frame(MEMORY, _rows_body(self._memory, part, MEMORY_ROW_COLUMNS))
            self._memory += len(part["mem_time"])

    def log(self, number: int, thread: int, table: NDArray[np.int64]) -> Iterator[bytes]:
        """Further entries of a log, one row each, from which a reader rebuilds rows, stacks and modules."""
        for at in range(0, len(table), ROWS_PER_FRAME):
            part = table[at : at + ROWS_PER_FRAME]
            body = io.BytesIO()
            body.write(LOG_HEAD.pack(number, thread, len(part)))
            for column in range(table.shape[1]):
                data = coding.encode(part[:, column])
                body.write(COLUMN_HEAD.pack(column, len(data)) + data)
            yield frame(LOG, body.getvalue())

    def counts(self) -> tuple[dict[str, int], int, int, int, int]:
        """How much has been encoded so far, for go_back()."""
        return dict(self._counts), len(self._frame_numbers), len(self._node_numbers), self._rows, self._memory

    def go_back(self, counts: tuple[dict[str, int], int, int, int, int]) -> None:
        """Forget the frames since counts(): they did not get into the file."""
        tables, frames, nodes, self._rows, self._memory = counts
        self._counts = dict(tables)
        while len(self._frame_numbers) > frames:
            self._frame_numbers.popitem()
        while len(self._node_numbers) > nodes:
            self._node_numbers.popitem()

    def end(self) -> bytes:
        """The last frame of a complete file, with the numbers of rows."""
        return frame(END, _json({"rows": self._rows, "memory": self._memory}))


def save(store: EventStore, path: str | os.PathLike[str], *, metadata: Mapping[str, str] | None = None) -> None:
    """Write a recording to `path`. A failure leaves an existing file as it was.

    metadata: JSON text by key, added to the metadata of the recording.
    """
    merged = {**store.metadata, **{key: json.loads(value) for key, value in (metadata or {}).items()}}
    write_file(path, blocks(store, merged))


export = save  # the name that results/writers.py looks up


def load(path: str | os.PathLike[str], progress: Progress | None = None) -> EventStore:
    """The recording in a saved profile; TraceError if there is none."""
    return read(path, progress)[0]


def blocks(store: EventStore, metadata: Mapping[str, Any]) -> Iterator[bytes]:
    writer = Writer()
    yield writer.header()
    yield writer.meta(
        {
            "options": store.options,
            "metadata": metadata,
            "trace_id": store.trace_id,
            "pid": store.pid,
            "clock_start_ns": store.clock_start_ns,
            "clock_end_ns": store.clock_end_ns,
            "wall_start_ns": store.wall_start_ns,
            "segments": store.segments,
        }
    )
    for table in TABLES:
        if table not in ("frames", "stack_nodes", *LOG_TABLES):
            yield from writer.table(table, getattr(store, table))
    columns = {name: getattr(store, name) for name in COLUMNS}
    if len(store.segments) > 1:  # joined recordings, of which parents cannot be derived from times
        columns["parent"], columns["launcher"] = store.parent, store.launcher
    yield from _interleaved(writer, columns, {name: getattr(store, name) for name in MEMORY_ROW_COLUMNS})
    yield writer.end()


def _interleaved(writer: Writer, rows: Mapping[str, NDArray[Any]], memory: Mapping[str, NDArray[Any]]) -> Iterator[bytes]:
    """Frames of rows, each followed by the memory of its rows, so that half a file has half of both."""
    count = len(rows["start"])
    size = min(max(-(-count // FRAMES), LEAST_ROWS_PER_FRAME), ROWS_PER_FRAME)
    latest = np.maximum.accumulate(memory["mem_event"])  # the last event that the memory rows up to here belong to
    done = 0
    for at in range(0, max(count, 1), size):
        yield from writer.rows({name: values[at : at + size] for name, values in rows.items()})
        upto = int(np.searchsorted(latest, at + size)) if at + size < count else len(latest)
        yield from writer.memory({name: values[done:upto] for name, values in memory.items()})
        done = upto


def _rows_body(first: int, columns: Mapping[str, NDArray[Any]], order: Sequence[str]) -> bytes:
    body = io.BytesIO()
    count = len(next(iter(columns.values())))
    body.write(ROWS_HEAD.pack(first, count))
    for number, name in enumerate(order):
        if name in columns:
            data = coding.encode(np.asarray(columns[name]))
            body.write(COLUMN_HEAD.pack(number, len(data)) + data)
    return body.getvalue()


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    """A table entry for JSON, which has no complex numbers."""
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    return [_plain(entry) for entry in value] if isinstance(value, tuple | list) else value
