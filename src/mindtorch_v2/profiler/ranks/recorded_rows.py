"""The rows of one rank's recording as a digest needs them: columns and tables, from a saved profile or from a store."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..._core.cpython import without_signals_at_entry
from ..._dispatch import observer
from ..formats.detect import read_any
from ..formats.saved_file.columns_only import NotPlainError, read_columns
from ..formats.saved_file.frames import MAGIC
from ..store.store import EventStore

Numbers = NDArray[np.int64]

_COLUMNS = ("name", "kind", "tid", "start", "end", "step", "details", "device_type", "flops", "shapes", "mem_time", "mem_total")
_TABLES = ("names", "row_details", "input_infos")
_MISSING = {"step": 0, "details": -1, "device_type": 0, "flops": 0, "shapes": -1}
_ROW_COLUMNS = tuple(name for name in _COLUMNS if not name.startswith("mem_"))


@dataclass
class RecordedRows:
    """Rows sorted by (start, -end); memory rows by time; `details` and `inputs` as the entries of the file's tables."""

    names: Sequence[str]
    details: Sequence[Sequence[str]]  # (category, JSON of arguments)
    input_dims: Sequence[Any]  # of each entry of the table that `shapes` indexes: the dims of its tensors
    columns: dict[str, Numbers]
    metadata: dict[str, Any]
    clock_start_ns: int
    wall_start_ns: int
    damage: str = ""  # what could not be read of the file

    @property
    def to_wall(self) -> int:
        """What to add to times of rows for nanoseconds since 1970 by the clock of the host."""
        return self.wall_start_ns - self.clock_start_ns


def read_rows(file: BinaryIO, size: int) -> RecordedRows:
    """Read a recording from an open file of `size` bytes: a saved profile, or any trace that `profiler.load` reads.

    TraceError: there is no recording in it.
    """
    if file.read(len(MAGIC)) == MAGIC:
        file.seek(0)
        try:
            return _from_columns(file, size)
        except NotPlainError:
            pass
    file.seek(0)
    with local_path(file) as path:
        store, recovery = read_any(path)
    rows = rows_of_store(store)
    rows.damage = "" if recovery.intact else str(recovery)
    return rows


def read_store(file: BinaryIO) -> EventStore:
    """The whole recording of an open file."""
    with local_path(file) as path:
        return read_any(path)[0]


def rows_of_store(store: EventStore) -> RecordedRows:
    """The rows of a recording that is in memory."""
    columns = {name: np.asarray(getattr(store, name), np.int64) for name in _COLUMNS}
    dims = [info.dims for info in store.input_infos]
    return RecordedRows(
        store.names, store.row_details, dims, columns, store.metadata, store.clock_start_ns, store.wall_start_ns
    )


def _from_columns(file: BinaryIO, size: int) -> RecordedRows:
    chosen = read_columns(file, size, _COLUMNS, _TABLES)
    columns = chosen.columns
    for name in _ROW_COLUMNS:
        if name not in columns:
            if name not in _MISSING and chosen.rows:
                raise NotPlainError(f"there is no column {name}")
            columns[name] = np.broadcast_to(np.int64(_MISSING.get(name, 0)), chosen.rows)
    for name in ("mem_time", "mem_total"):
        columns.setdefault(name, np.empty(0, np.int64))
    if len(columns["mem_time"]) != len(columns["mem_total"]):
        raise NotPlainError("memory rows without totals")
    tables = {name: chosen.tables.get(name, []) for name in _TABLES}
    for name, table in (("name", "names"), ("details", "row_details"), ("shapes", "input_infos")):
        numbers = columns[name]
        if len(numbers) and not -1 <= int(numbers.min()) <= int(numbers.max()) < len(tables[table]):
            raise NotPlainError(f"column {name} points beyond its table")
    start, kind = columns["start"], columns["kind"]
    if len(kind) and not 0 <= int(kind.min()) <= int(kind.max()) < observer.KIND_COUNT:
        raise NotPlainError("a kind of row that is not known")
    if (np.diff(start) < 0).any() or (columns["end"] < start).any():
        raise NotPlainError("the rows are not in order")
    meta = chosen.meta
    dims = [entry[0] for entry in tables["input_infos"]]
    return RecordedRows(
        tables["names"],
        tables["row_details"],
        dims,
        columns,
        dict(meta.get("metadata", {})),
        int(meta.get("clock_start_ns", 0)),
        int(meta.get("wall_start_ns", 0)),
    )


class local_path:
    """The path of an open file: its own, or that of a temporary copy of a file that has none here."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> str:
        own = getattr(self._file, "name", None)
        if isinstance(self._file, io.BufferedReader) and isinstance(own, str) and os.path.exists(own):
            return own
        self._folder = tempfile.TemporaryDirectory(prefix="mtprof")
        path = os.path.join(self._folder.name, "recording")
        with open(path, "wb") as copy:
            while block := self._file.read(1 << 20):
                copy.write(block)
        return path

    @without_signals_at_entry
    def __exit__(self, *error: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()
