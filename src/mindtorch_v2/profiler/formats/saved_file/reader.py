"""Reads saved profiles: the whole frames of a file become a store, and a Recovery accounts for the rest."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store.store import COLUMNS, MEMORY_COLUMNS, OPTIONAL, REQUIRED, EventStore, IntType
from .._bounds import MOST_LANES, MOST_VISITS, too_deep
from .._recovery import Recovery, TraceError
from .._source import Progress
from ..trace.kinds import MODULE_NAME
from . import coding
from .entries import ENTRIES, lost_entry
from .frames import END, LOG, MEMORY, META, ROWS, TABLE, frames
from .layout import (
    AS_RECORDED,
    COLUMN_HEAD,
    ENTRIES_PER_FRAME,
    IN_ROW_ORDER,
    LOG_HEAD,
    LOG_TABLES,
    LOG_WIDTHS,
    MEMORY_ROW_COLUMNS,
    MOST_ROWS_PER_FRAME,
    ROW_COLUMNS,
    ROWS_HEAD,
    TABLE_HEAD,
    TABLES,
)

# The tables that columns index.
_TABLE_OF = {
    "name": "names",
    "tid": "threads",
    "fwd_tid": "threads",
    "launch_tid": "threads",
    "shapes": "input_infos",
    "stack": "stacks",
    "module": "modules",
    "op": "overloads",
    "mem_tid": "threads",
    "details": "row_details",
}
_STORE_TABLES = ("names", "threads", "input_infos", "stacks", "modules", "overloads", "row_details", "other_events")
_MOST_DEVICE_TYPE = 20  # torch's number of the last one, PrivateUse1
# A file may unpack to _FREE_BYTES and _MOST_GROWTH times its own size.
_MOST_GROWTH, _FREE_BYTES = 1000, 256 << 20
# Bytes that are counted for a row beside its columns, for an entry of a log, for a lost entry of a table, and for a byte of
# JSON: a few bytes of a file can make many of each.
_ROW_BYTES, _LOG_BYTES, _LOST_BYTES, _JSON_GROWTH = 64, 256, 64, 20
_POINTER_BYTES = 8


def read(
    path: str | os.PathLike[str], progress: Progress | None = None, max_bytes: int | None = None
) -> tuple[EventStore, Recovery]:
    """Read a saved profile; the Recovery says how far that was possible.

    TraceError: there is no recording in the file, or it unpacks to more than max_bytes. progress(bytes done, bytes in all)
    is called after every frame.
    """
    recovery = Recovery("saved")
    size = os.path.getsize(path)
    contents = _Contents(recovery, _FREE_BYTES + _MOST_GROWTH * size if max_bytes is None else max_bytes)
    with open(path, "rb") as file:
        for kind, body in frames(file, recovery):
            try:
                contents.add_frame(kind, body)
            except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError, struct.error) as error:
                if isinstance(error, TraceError):
                    raise
                recovery.skip("frame that makes no sense")
            if progress is not None:
                progress(min(recovery.bytes_read, size), size)
    return contents.store(os.fspath(path)), recovery


def read_part(
    path: str | os.PathLike[str], part: tuple[int, int], meta: Mapping[str, Any]
) -> tuple[EventStore, dict[tuple[int, int], NDArray[np.int64]]]:
    """The recording between two offsets of a file that is being written, and its logs.

    meta: replaces fields of the file's own.
    """
    contents = _Contents(Recovery("saved"), 1 << 62)
    with open(path, "rb") as file:
        for kind, body in frames(file, Recovery("saved"), part):
            contents.add_frame(kind, body)
    contents.update_meta(meta)
    return contents.store(os.fspath(path)), contents.logs()


class _Contents:
    """The contents of a file, added frame by frame; then `store` makes the recording."""

    def __init__(self, recovery: Recovery, most_bytes: int) -> None:
        self._recovery = recovery
        self._most_bytes = most_bytes
        self._meta: dict[str, Any] | None = None
        self._tables: dict[str, list[Any]] = {table: [] for table in TABLES}
        self._parts: dict[str, list[NDArray[Any]]] = {}
        self._counts = {ROWS: 0, MEMORY: 0}
        self._expected = {ROWS: 0, MEMORY: 0}
        self._announced: dict[str, int] | None = None  # numbers of rows, by the END frame
        self._logs: dict[tuple[int, int], list[NDArray[np.int64]]] = {}

    def update_meta(self, meta: Mapping[str, Any]) -> None:
        """Replace some fields of the META frame."""
        self._meta = {**(self._meta or _checked_meta({})), **meta}

    def logs(self) -> dict[tuple[int, int], NDArray[np.int64]]:
        """The logs by number of the log and of the thread."""
        return {key: np.concatenate(parts) for key, parts in self._logs.items()}

    def add_frame(self, kind: int, body: bytes) -> None:
        """Add a frame; an error of any kind means that its contents make no sense, and TraceError that it is too large."""
        if kind in (META, TABLE, END):
            self._grow(_JSON_GROWTH * len(body))
        if kind == META:
            meta = json.loads(body)
            self._meta = {**_checked_meta(meta), "order": meta.get("order", IN_ROW_ORDER), "logs": bool(meta.get("logs"))}
        elif kind == TABLE:
            self._add_table(body)
        elif kind in (ROWS, MEMORY):
            self._add_rows(kind, body)
        elif kind == LOG:
            self._add_log(body)
        elif kind == END:
            end = json.loads(body)
            self._announced = {"rows": int(end["rows"]), "memory": int(end["memory"])}
        else:
            self._recovery.note(f"frames of kind {kind} are not known here")

    def _grow(self, count: int) -> None:
        """Account for so many bytes more; TraceError if that is more than the file may take."""
        self._most_bytes -= count
        if self._most_bytes < 0:
            raise TraceError("the file unpacks to more than a recording could")

    def _add_table(self, body: bytes) -> None:
        number, first, count = TABLE_HEAD.unpack_from(body)
        if number >= len(TABLES) or TABLES[number] not in ENTRIES:
            self._recovery.note(f"table {number} is not known here")
            return
        entries = json.loads(body[TABLE_HEAD.size :])
        known = self._tables[TABLES[number]]
        if len(entries) != count or first < len(known) or first > len(known) + 64 * ENTRIES_PER_FRAME:
            raise ValueError("a table out of order")
        self._grow(_LOST_BYTES * (first - len(known)))
        lost = [lost_entry(TABLES[number])] * (first - len(known))
        if TABLES[number] == "stack_nodes":  # an entry refers to those before it, and a few bytes of it may be a long stack
            known.extend(lost)
            for entry in entries:
                known.append(ENTRIES["stack_nodes"](entry, self._tables))
                self._grow(_POINTER_BYTES * len(known[-1]))
            return
        converted = [ENTRIES[TABLES[number]](entry, self._tables) for entry in entries]
        known.extend(lost)
        known.extend(converted)

    def _add_log(self, body: bytes) -> None:
        number, thread, count = LOG_HEAD.unpack_from(body)
        if number not in LOG_WIDTHS:
            self._recovery.note(f"log {number} is not known here")
            return
        if count > MOST_ROWS_PER_FRAME:
            raise ValueError("too many rows in a frame")
        self._grow(_LOG_BYTES * count)
        at, columns = LOG_HEAD.size, []
        while at < len(body):
            _, length = COLUMN_HEAD.unpack_from(body, at)
            at += COLUMN_HEAD.size
            columns.append(coding.decode(body[at : at + length], count))
            at += length
            if len(columns) > LOG_WIDTHS[number]:
                break
        if len(columns) != LOG_WIDTHS[number] or not count:
            raise ValueError("a log with other columns")
        self._logs.setdefault((number, thread), []).append(np.column_stack(columns))

    def _add_rows(self, kind: int, body: bytes) -> None:
        first, count = ROWS_HEAD.unpack_from(body)
        if count > MOST_ROWS_PER_FRAME:
            raise ValueError("too many rows in a frame")
        order = ROW_COLUMNS if kind == ROWS else MEMORY_ROW_COLUMNS
        at, columns = ROWS_HEAD.size, {}
        while at < len(body):
            number, length = COLUMN_HEAD.unpack_from(body, at)
            at += COLUMN_HEAD.size
            if number < len(order):
                columns[order[number]] = coding.decode(body[at : at + length], count)
            at += length
        self._grow(_ROW_BYTES * count + sum(8 * count for column in columns.values() if column.strides != (0,)))
        if kind == ROWS:
            if not REQUIRED.keys() <= columns.keys():
                raise ValueError("a column is missing")
            columns["end"] = columns["start"] + columns["end"]
            if (columns["end"] < columns["start"]).any():
                raise ValueError("a negative duration")
        missing = {name: (dtype, value) for name, (dtype, value) in OPTIONAL.items()} if kind == ROWS else MEMORY_COLUMNS
        complete = {name: np.broadcast_to(np.int64(value), count) for name, (_, value) in missing.items()} | columns
        typed = {name: _typed(values, name) for name, values in complete.items()}
        if self._expected[kind] != first:
            self._recovery.skip("lost rows" if kind == ROWS else "lost memory rows", max(first - self._expected[kind], 0))
        self._expected[kind] = first + count
        for name, values in typed.items():
            before = self._parts.setdefault(name, [])
            if not before and self._counts[kind]:
                before.append(np.broadcast_to(np.array(-1, values.dtype), self._counts[kind]))
            before.append(values)
        self._counts[kind] += count

    def store(self, path: str) -> EventStore:
        """Make the recording; rows that were lost are counted in the Recovery."""
        recovery = self._recovery
        if self._announced is None:
            recovery.complete = False
        elif self._announced != {"rows": self._expected[ROWS], "memory": self._expected[MEMORY]}:
            recovery.skip("lost rows", max(self._announced["rows"] - self._expected[ROWS], 0))
            recovery.skip("lost memory rows", max(self._announced["memory"] - self._expected[MEMORY], 0))
        if self._meta is None and not self._counts[ROWS]:
            raise TraceError(f"nothing in {path!r} could be read")
        if self._meta is None:
            recovery.note("what was known of the whole recording is lost")
        meta = dict(self._meta or {**_checked_meta({}), "order": AS_RECORDED})
        with_logs = meta.pop("logs", False) or bool(self._logs)
        recorded = set(self._parts)
        columns = {name: _joined(self._parts.pop(name)) for name in recorded}  # popped, so that only one is in memory twice
        for name, dtype in _DTYPES.items():
            columns.setdefault(name, np.empty(0, dtype))
        tables = {name: self._tables[name] for name in _STORE_TABLES}
        log_tables = {name: self._tables[name] for name in LOG_TABLES}
        self._repair(columns, tables)
        for name in ("parent", "launcher"):
            if name not in recorded:
                columns.pop(name, None)
        self._bound(columns)
        order = meta.pop("order")
        if order == AS_RECORDED and with_logs:
            return self._rebuilt(columns, {**tables, **log_tables}, meta)
        if order == IN_ROW_ORDER and not recovery.skipped:
            if _is_ordered(columns, meta["segments"]):
                return _finished(columns, tables, meta)
            recovery.note("the rows were not in order")
        return _frozen(columns, tables, meta)

    def _rebuilt(self, columns: dict[str, NDArray[Any]], tables: dict[str, list[Any]], meta: dict[str, Any]) -> EventStore:
        from .rebuild import (  # here, because it needs the recorder, and few files are streamed ones
            rebuild_store,
            storage_notes,
        )

        try:
            store = rebuild_store(columns, tables, self.logs(), meta)
            store.storage_notes = storage_notes(self.logs())
            return store
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            self._recovery.note(f"calls, modules and steps are lost: {error}")
            return _frozen(columns, {name: tables[name] for name in tables if name not in LOG_TABLES}, meta)

    def _bound(self, columns: dict[str, NDArray[Any]]) -> None:
        """Leave out rows that are nested so deeply that queries would take forever."""
        threads = len(np.unique(columns["tid"]))
        if threads > MOST_LANES and threads * len(columns["tid"]) > MOST_VISITS:
            raise TraceError(f"the file has rows of {threads} threads")
        deep = too_deep(columns["tid"], columns["start"], columns["end"])
        if deep.any():
            self._recovery.skip("nested too deeply", int(deep.sum()))
            columns.update({name: values[~deep] for name, values in columns.items() if name in ROW_COLUMNS})

    def _repair(self, columns: dict[str, NDArray[Any]], tables: dict[str, list[Any]]) -> None:
        """Replace indices without an entry, and kinds that do not fit the name; TraceError for those without a replacement."""
        for name, table in _TABLE_OF.items():
            values = columns[name]
            beyond = int(values.max(initial=-1)) >= len(tables[table])
            if name in ("name", "tid", "mem_tid") and len(values) and int(values.min()) < 0:
                raise TraceError(f"column {name} has a row that points nowhere")
            if beyond:
                missing = min(int(values.max()) + 1 - len(tables[table]), 1 << 20)
                tables[table] += [lost_entry(table)] * missing
                columns[name] = np.minimum(values, len(tables[table]) - 1)
                self._recovery.note(f"entries of {table} are lost")
            if int(values.min(initial=0)) < -1:
                columns[name] = np.maximum(values, -1)
        for name, most in (("kind", observer.KIND_COUNT - 1), ("device_type", _MOST_DEVICE_TYPE)):
            if int(columns[name].min(initial=0)) < 0 or int(columns[name].max(initial=0)) > most:
                raise TraceError(f"a row has a {name} that is not known here")
        not_module = np.array([MODULE_NAME.fullmatch(name) is None for name in tables["names"]] + [False])
        wrong = not_module[columns["name"]] & (columns["kind"] == observer.MODULE)
        if wrong.any():
            columns["kind"] = np.where(wrong, np.int8(observer.PYTHON), columns["kind"])


def _is_ordered(columns: Mapping[str, NDArray[Any]], segments: tuple[tuple[int, int], ...]) -> bool:
    """Whether rows are in the order of a store, which its derived columns rely on."""
    firsts = [first for first, _ in segments]
    if firsts != sorted(firsts) or firsts[0] != 0 or firsts[-1] > len(columns["start"]):
        return False
    if (np.diff(columns["mem_time"]) < 0).any():
        return False
    if len(segments) > 1:
        return "parent" in columns  # else it would be derived, which works for a single recording only
    start, end = columns["start"], columns["end"]
    before, after = start[:-1], start[1:]
    return bool(((before < after) | (before == after) & (end[:-1] >= end[1:])).all())


def _finished(columns: dict[str, NDArray[Any]], tables: dict[str, list[Any]], meta: dict[str, Any]) -> EventStore:
    """A store of rows that are in the order of one."""
    count = len(columns["start"])
    for name in ("mem_event", "parent", "launcher"):
        if name in columns:
            rows = columns[name]
            limit = np.arange(count) if name == "parent" else count
            columns[name] = np.where((rows < limit) & (rows >= 0), rows, -1).astype(np.int32)
    return EventStore(columns, tables, meta)


def _frozen(columns: dict[str, NDArray[Any]], tables: dict[str, list[Any]], meta: dict[str, Any]) -> EventStore:
    """A store from rows in the order in which they were recorded, or with rows missing in between."""
    spans = columns["kind"] != observer.MEMORY  # freeze() adds rows of memory itself
    frozen: dict[str, Any] = {name: columns[name][spans] for name in COLUMNS}
    if len(columns["mem_time"]):
        frozen.update({name: columns[name] for name in MEMORY_COLUMNS if name != "mem_total"})
        if int(columns["mem_total"].min()) >= 0 and columns["mem_total"].any():
            frozen["mem_total"] = columns["mem_total"]
    segments = meta.pop("segments")
    more: dict[str, Any] = {**tables, **meta, "clock_end_ns": meta["clock_end_ns"] or None}
    store = EventStore.freeze(frozen, **more)
    store.segments = segments[:1]
    return store


def _typed(values: NDArray[np.int64], name: str) -> NDArray[Any]:
    """The column in the dtype of a store; ValueError if it does not fit."""
    dtype = _DTYPES[name]
    bounds = np.iinfo(dtype)
    if len(values) and not bounds.min <= int(values.min()) <= int(values.max()) <= bounds.max:
        raise ValueError(f"numbers too large for column {name}")
    if values.strides == (0,):
        return np.broadcast_to(values[:1].astype(dtype), len(values)) if len(values) else values.astype(dtype)
    return values.astype(dtype, copy=False)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """The parts as one column; one of equal values is broadcast from a single one."""
    if all(part.strides == (0,) and len(part) and part[0] == parts[0][0] for part in parts):
        return np.broadcast_to(parts[0][0], sum(map(len, parts)))
    return np.concatenate(parts)


_DTYPES: dict[str, IntType] = {
    **REQUIRED,
    **{name: dtype for name, (dtype, _) in (*OPTIONAL.items(), *MEMORY_COLUMNS.items())},
    "mem_event": np.int32,
    "parent": np.int32,
    "launcher": np.int32,
}


def _checked_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The META frame as the meta data of a store; TypeError or ValueError if it is none."""
    if not isinstance(meta, dict):
        raise TypeError("not the meta data of a recording")
    trace_id, segments = meta.get("trace_id"), meta.get("segments") or [[0, 0]]
    options = {key: value for key, value in dict(meta.get("options", {})).items() if _OPTIONS.get(key, _anything)(value)}
    checked: dict[str, Any] = {
        "options": options,
        "metadata": dict(meta.get("metadata", {})),
        "trace_id": None if trace_id is None else str(trace_id),
        "segments": tuple((int(row), int(origin)) for row, origin in segments),
    }
    for name in ("clock_start_ns", "clock_end_ns", "wall_start_ns", "pid"):
        checked[name] = int(np.int64(meta.get(name, 0)))
    return checked


def _anything(value: Any) -> bool:
    return True


# Checks of the options that views and exporters read.
_OPTIONS: dict[str, Callable[[Any], bool]] = {
    "use_device": lambda value: value is None or isinstance(value, str),
    "left_out_of_trace": lambda value: isinstance(value, list) and all(isinstance(entry, str) for entry in value),
    "gc_pauses": lambda value: (
        isinstance(value, list)
        and all(isinstance(pause, list) and len(pause) == 3 and all(type(part) is int for part in pause) for pause in value)
    ),
    "first_uses": lambda value: (
        isinstance(value, list) and all(isinstance(use, list) and [*map(type, use)] == [int, int, str, int] for use in value)
    ),
    "unrecorded_steps": lambda value: isinstance(value, list) and all(type(ns) is int and ns >= 0 for ns in value),
    "hidden_calls": lambda value: type(value) is int and value >= 0,
    "calibration": lambda value: isinstance(value, dict) and all(type(part) in (int, float) for part in value.values()),
}
