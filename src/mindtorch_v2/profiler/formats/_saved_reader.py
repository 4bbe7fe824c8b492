"""Reads saved profiles: whatever frames are whole become a recording, and the rest is accounted for."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store.store import COLUMNS, MEMORY_COLUMNS, OPTIONAL, REQUIRED, EventStore
from . import _coding
from ._bounds import MOST_LANES, MOST_VISITS, too_deep
from ._frames import END, LOG, MEMORY, META, ROWS, TABLE, frames
from ._recovery import Recovery, TraceError
from ._saved_entries import ENTRIES, LOST_ENTRIES
from ._saved_layout import (
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
from ._source import Progress
from ._trace_kinds import MODULE_NAME
from .rebuild import rebuilt, storage_notes

# What columns point into, and so must not point beyond.
_POINTS_INTO = {
    "name": "names",
    "tid": "threads",
    "fwd_tid": "threads",
    "launch_tid": "threads",
    "shapes": "input_infos",
    "stack": "stacks",
    "module": "modules",
    "op": "overloads",
    "mem_tid": "threads",
}
_STORE_TABLES = ("names", "threads", "input_infos", "stacks", "modules", "overloads")
_MOST_DEVICE_TYPE = 20  # torch's number of the last one, PrivateUse1
# Bytes that a file may grow to: its own size times this, and some to begin with.
_MOST_GROWTH, _FREE_BYTES = 1000, 256 << 20
# What is counted for a row beside its columns that are not the same everywhere, for an entry of a log, for one of a table
# that is lost, and for a byte of JSON, each of which a few bytes of a file can make many of.
_ROW_BYTES, _LOG_BYTES, _LOST_BYTES, _JSON_GROWTH = 64, 256, 64, 20


def read(
    path: str | os.PathLike[str], progress: Progress | None = None, max_bytes: int | None = None
) -> tuple[EventStore, Recovery]:
    """The recording in a saved profile and how far it could be read.

    TraceError: there is none, or what it unpacks to takes more than max_bytes. progress(bytes done, bytes in all) is
    called after every frame.
    """
    recovery = Recovery("saved")
    size = os.path.getsize(path)
    found = _Found(recovery, _FREE_BYTES + _MOST_GROWTH * size if max_bytes is None else max_bytes)
    with open(path, "rb") as file:
        for kind, body in frames(file, recovery):
            try:
                found.take(kind, body)
            except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError, struct.error) as error:
                if isinstance(error, TraceError):
                    raise
                recovery.skip("frame that makes no sense")
            if progress is not None:
                progress(min(recovery.bytes_read, size), size)
    return found.store(os.fspath(path)), recovery


def read_part(
    path: str | os.PathLike[str], part: tuple[int, int], meta: Mapping[str, Any]
) -> tuple[EventStore, dict[tuple[int, int], NDArray[np.int64]]]:
    """What a file that is being written holds between two places, as a recording, and the logs that go with it.

    meta: what is known better than the file tells.
    """
    found = _Found(Recovery("saved"), 1 << 62)
    with open(path, "rb") as file:
        for kind, body in frames(file, Recovery("saved"), part):
            found.take(kind, body)
    found.know(meta)
    return found.store(os.fspath(path)), found.logs()


class _Found:
    """What the frames of a file held."""

    def __init__(self, recovery: Recovery, most_bytes: int) -> None:
        self._recovery = recovery
        self._most_bytes = most_bytes
        self._meta: dict[str, Any] | None = None
        self._tables: dict[str, list[Any]] = {table: [] for table in TABLES}
        self._parts: dict[str, list[NDArray[Any]]] = {}
        self._counts = {ROWS: 0, MEMORY: 0}
        self._expected = {ROWS: 0, MEMORY: 0}
        self._said: dict[str, int] | None = None
        self._logs: dict[tuple[int, int], list[NDArray[np.int64]]] = {}

    def know(self, meta: Mapping[str, Any]) -> None:
        """Replace some of what the file says of the whole recording."""
        self._meta = {**(self._meta or _checked_meta({})), **meta}

    def logs(self) -> dict[tuple[int, int], NDArray[np.int64]]:
        """What was noted beside rows, by number of the log and of the thread."""
        return {key: np.concatenate(parts) for key, parts in self._logs.items()}

    def take(self, kind: int, body: bytes) -> None:
        """Use the contents of a frame."""
        if kind in (META, TABLE, END):
            self._grow(_JSON_GROWTH * len(body))
        if kind == META:
            meta = json.loads(body)
            self._meta = {**_checked_meta(meta), "order": meta.get("order", IN_ROW_ORDER), "logs": bool(meta.get("logs"))}
        elif kind == TABLE:
            self._take_table(body)
        elif kind in (ROWS, MEMORY):
            self._take_rows(kind, body)
        elif kind == LOG:
            self._take_log(body)
        elif kind == END:
            said = json.loads(body)
            self._said = {"rows": int(said["rows"]), "memory": int(said["memory"])}
        else:
            self._recovery.note(f"frames of kind {kind} are not known here")

    def _grow(self, count: int) -> None:
        """Account for so many bytes more; TraceError if that is more than the file may take."""
        self._most_bytes -= count
        if self._most_bytes < 0:
            raise TraceError("the file unpacks to more than a recording could")

    def _take_table(self, body: bytes) -> None:
        number, first, count = TABLE_HEAD.unpack_from(body)
        if number >= len(TABLES) or TABLES[number] not in ENTRIES:
            self._recovery.note(f"table {number} is not known here")
            return
        entries = json.loads(body[TABLE_HEAD.size :])
        known = self._tables[TABLES[number]]
        if len(entries) != count or first < len(known) or first > len(known) + 64 * ENTRIES_PER_FRAME:
            raise ValueError("a table out of order")
        self._grow(_LOST_BYTES * (first - len(known)))
        made = [ENTRIES[TABLES[number]](entry, self._tables) for entry in entries]
        known.extend([LOST_ENTRIES[TABLES[number]]] * (first - len(known)))
        known.extend(made)

    def _take_log(self, body: bytes) -> None:
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
            columns.append(_coding.decode(body[at : at + length], count))
            at += length
            if len(columns) > LOG_WIDTHS[number]:
                break
        if len(columns) != LOG_WIDTHS[number] or not count:
            raise ValueError("a log with other columns")
        self._logs.setdefault((number, thread), []).append(np.column_stack(columns))

    def _take_rows(self, kind: int, body: bytes) -> None:
        first, count = ROWS_HEAD.unpack_from(body)
        if count > MOST_ROWS_PER_FRAME:
            raise ValueError("too many rows in a frame")
        order = ROW_COLUMNS if kind == ROWS else MEMORY_ROW_COLUMNS
        at, columns = ROWS_HEAD.size, {}
        while at < len(body):
            number, length = COLUMN_HEAD.unpack_from(body, at)
            at += COLUMN_HEAD.size
            if number < len(order):
                columns[order[number]] = _coding.decode(body[at : at + length], count)
            at += length
        self._grow(_ROW_BYTES * count + sum(8 * count for column in columns.values() if column.strides != (0,)))
        if kind == ROWS:
            if not REQUIRED.keys() <= columns.keys():
                raise ValueError("a column is missing")
            columns["end"] = columns["start"] + columns["end"]
            if (columns["end"] < columns["start"]).any():
                raise ValueError("a negative duration")
        missing = {name: (dtype, value) for name, (dtype, value) in OPTIONAL.items()} if kind == ROWS else MEMORY_COLUMNS
        made = {name: np.broadcast_to(np.int64(value), count) for name, (_, value) in missing.items()} | columns
        typed = {name: _typed(values, name) for name, values in made.items()}
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
        """The recording."""
        recovery = self._recovery
        if self._said is None:
            recovery.complete = False
        elif self._said != {"rows": self._expected[ROWS], "memory": self._expected[MEMORY]}:
            recovery.skip("lost rows", max(self._said["rows"] - self._expected[ROWS], 0))
            recovery.skip("lost memory rows", max(self._said["memory"] - self._expected[MEMORY], 0))
        if self._meta is None and not self._counts[ROWS]:
            raise TraceError(f"nothing in {path!r} could be read")
        if self._meta is None:
            recovery.note("what was known of the whole recording is lost")
        meta = dict(self._meta or {**_checked_meta({}), "order": AS_RECORDED})
        with_logs = meta.pop("logs", False) or bool(self._logs)
        given = set(self._parts)
        columns = {name: _joined(self._parts.pop(name)) for name in given}  # one by one: not all is in memory twice
        for name, dtype in _DTYPES.items():
            columns.setdefault(name, np.empty(0, dtype))
        tables = {name: self._tables[name] for name in _STORE_TABLES}
        log_tables = {name: self._tables[name] for name in LOG_TABLES}
        self._repair(columns, tables)
        for name in ("parent", "launcher"):
            if name not in given:
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
        try:
            store = rebuilt(columns, tables, self.logs(), meta)
            store.storage_notes = storage_notes(self.logs())
            return store
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            self._recovery.note(f"calls, modules and steps are lost: {error}")
            return _frozen(columns, {name: tables[name] for name in tables if name not in LOG_TABLES}, meta)

    def _bound(self, columns: dict[str, NDArray[Any]]) -> None:
        """Leave out rows that would make every question take forever."""
        threads = len(np.unique(columns["tid"]))
        if threads > MOST_LANES and threads * len(columns["tid"]) > MOST_VISITS:
            raise TraceError(f"the file has rows of {threads} threads")
        deep = too_deep(columns["tid"], columns["start"], columns["end"])
        if deep.any():
            self._recovery.skip("nested too deeply", int(deep.sum()))
            kept = ~deep
            columns.update({name: values[kept] for name, values in columns.items() if name in ROW_COLUMNS})

    def _repair(self, columns: dict[str, NDArray[Any]], tables: dict[str, list[Any]]) -> None:
        """No column may point to what is not there."""
        for name, table in _POINTS_INTO.items():
            values = columns[name]
            beyond = int(values.max(initial=-1)) >= len(tables[table])
            if name in ("name", "tid", "mem_tid") and len(values) and int(values.min()) < 0:
                raise TraceError(f"column {name} has a row that points nowhere")
            if beyond:
                missing = min(int(values.max()) + 1 - len(tables[table]), 1 << 20)
                tables[table] += [LOST_ENTRIES[table]] * missing
                columns[name] = np.minimum(values, len(tables[table]) - 1)
                self._recovery.note(f"entries of {table} are lost")
            if int(values.min(initial=0)) < -1:
                columns[name] = np.maximum(values, -1)
        for name, most in (("kind", observer.RUNTIME), ("device_type", _MOST_DEVICE_TYPE)):
            if int(columns[name].min(initial=0)) < 0 or int(columns[name].max(initial=0)) > most:
                raise TraceError(f"a row has a {name} that is not known here")
        nameless = np.array([MODULE_NAME.fullmatch(name) is None for name in tables["names"]] + [False])[columns["name"]]
        if (nameless := nameless & (columns["kind"] == observer.MODULE)).any():
            columns["kind"] = np.where(nameless, np.int8(observer.PYTHON), columns["kind"])


def _is_ordered(columns: Mapping[str, NDArray[Any]], segments: tuple[tuple[int, int], ...]) -> bool:
    """Whether rows are as a store has them, so that what it derives from their order is right."""
    firsts = [first for first, _ in segments]
    if firsts != sorted(firsts) or firsts[0] != 0 or firsts[-1] > len(columns["start"]):
        return False
    if (np.diff(columns["mem_time"]) < 0).any():
        return False
    if len(segments) > 1:
        return "parent" in columns  # else it would have to be derived, which takes one recording
    start, end = columns["start"], columns["end"]
    before, after = start[:-1], start[1:]
    return bool(((before < after) | (before == after) & (end[:-1] >= end[1:])).all())


def _finished(columns: dict[str, NDArray[Any]], tables: dict[str, list[Any]], meta: dict[str, Any]) -> EventStore:
    """A store as it was saved."""
    count = len(columns["start"])
    for name in ("mem_event", "parent", "launcher"):
        if name in columns:
            rows = columns[name]
            limit = np.arange(count) if name == "parent" else count
            columns[name] = np.where((rows < limit) & (rows >= 0), rows, -1).astype(np.int32)
    return EventStore(columns, tables, meta)


def _frozen(columns: dict[str, NDArray[Any]], tables: dict[str, list[Any]], meta: dict[str, Any]) -> EventStore:
    """A store from rows in the order in which they were recorded, or with rows missing in between."""
    kept = columns["kind"] != observer.MEMORY
    given: dict[str, Any] = {name: columns[name][kept] for name in COLUMNS}
    if len(columns["mem_time"]):
        given.update({name: columns[name] for name in MEMORY_COLUMNS if name != "mem_total"})
        if int(columns["mem_total"].min()) >= 0 and columns["mem_total"].any():
            given["mem_total"] = columns["mem_total"]
    segments = meta.pop("segments")
    more: dict[str, Any] = {**tables, **meta, "clock_end_ns": meta["clock_end_ns"] or None}
    store = EventStore.freeze(given, **more)
    store.segments = segments[:1]
    return store


def _typed(values: NDArray[np.int64], name: str) -> NDArray[Any]:
    """The column in the type that a store has it in; ValueError if it does not fit."""
    dtype = _DTYPES[name]
    bounds = np.iinfo(dtype)
    if len(values) and not bounds.min <= int(values.min()) <= int(values.max()) <= bounds.max:
        raise ValueError(f"numbers too large for column {name}")
    if values.strides == (0,):
        return np.broadcast_to(values[:1].astype(dtype), len(values)) if len(values) else values.astype(dtype)
    return values.astype(dtype, copy=False)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """One column; one that says the same everywhere takes no memory."""
    if all(part.strides == (0,) and len(part) and part[0] == parts[0][0] for part in parts):
        return np.broadcast_to(parts[0][0], sum(map(len, parts)))
    return np.concatenate(parts)


_DTYPES: dict[str, Any] = {
    **REQUIRED,
    **{name: dtype for name, (dtype, _) in (*OPTIONAL.items(), *MEMORY_COLUMNS.items())},
    "mem_event": np.int32,
    "parent": np.int32,
    "launcher": np.int32,
}


def _checked_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The meta data of a store; TypeError or ValueError if it is none."""
    if not isinstance(meta, dict):
        raise TypeError("not the meta data of a recording")
    trace_id, segments = meta.get("trace_id"), meta.get("segments") or [[0, 0]]
    options = {key: value for key, value in dict(meta.get("options", {})).items() if _OPTIONS.get(key, _anything)(value)}
    made: dict[str, Any] = {
        "options": options,
        "metadata": dict(meta.get("metadata", {})),
        "trace_id": None if trace_id is None else str(trace_id),
        "segments": tuple((int(row), int(origin)) for row, origin in segments),
    }
    for name in ("clock_start_ns", "clock_end_ns", "wall_start_ns", "pid"):
        made[name] = int(np.int64(meta.get(name, 0)))
    return made


def _anything(value: Any) -> bool:
    return True


# What views and exporters rely on in options of these names.
_OPTIONS: dict[str, Callable[[Any], bool]] = {
    "use_device": lambda value: value is None or isinstance(value, str),
    "left_out_of_trace": lambda value: isinstance(value, list) and all(isinstance(entry, str) for entry in value),
    "gc_pauses": lambda value: (
        isinstance(value, list)
        and all(isinstance(pause, list) and len(pause) == 3 and all(type(part) is int for part in pause) for pause in value)
    ),
    "calibration": lambda value: isinstance(value, dict) and all(type(part) in (int, float) for part in value.values()),
}
