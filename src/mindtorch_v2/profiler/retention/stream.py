"""`profile(stream_to=path)`: what is recorded goes to a file while the recording runs, so that a crash loses little.

The file is a saved profile whose rows come in the order in which they ended, with logs of Python calls, modules and other
things beside them (see docs/saved-format.md). All windows of a profile go to one file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .._io.files import path_text
from ..assembly import freeze
from ..assembly.python_rows import Shortener
from ..formats import rebuild
from ..formats._saved_layout import (
    BEGINS,
    FOREIGN,
    GC_LOG,
    MODULE_LOG,
    OUT_LOG,
    PARAMETER_LOG,
    PYTHON_LOG,
    STEP_LOG,
    STOPS,
    TASK_LOG,
    TOUCHED_LOG,
)
from ..formats._saved_reader import read_part
from ..formats.saved import Writer
from ..recording.python_calls.stream import WIDTH, Piece
from ..recording.recorder import ForeignRows
from ..store.store import OPTIONAL, EventStore, StorageNotes, ThreadInfo
from .base import RetentionPolicy, Window
from .drain import Drained, MemoryDrain, Table, take
from .stream_file import StreamFile, check_target
from .stream_tables import Pen, StreamTables


class Stream(RetentionPolicy):
    """Writes the windows of a profile to one file."""

    def __init__(self, path: str | os.PathLike[str], flush_interval_s: float) -> None:
        # More often than once per interval, so that what a kill loses is younger than that, writing included.
        super().__init__(flush_interval_s / 4, flush_interval_s / 2)
        self.path = path_text(path)
        check_target(self.path)
        self._file = StreamFile(self.path)
        self._writer = Writer(recorded=True)
        self._tables = StreamTables()
        self._threads: dict[ThreadInfo, int] = {}
        self._shorten = Shortener()
        self._first: dict[str, int] = {}  # clock_start_ns and wall_start_ns of the first window
        self._begun_at = 0
        self._process = 0
        self._memory = MemoryDrain()
        self._pens: dict[int, Pen] = {}
        self._steps = self._parameters = 0

    # ------------------------------------------------------------------ windows

    def opened(self) -> None:
        """Begin a window in the file."""
        window = self.window
        assert window is not None
        recorder = window.recorder
        if self._process not in (0, self._pid):
            raise RuntimeError(f"{self.path!r} is written by the process that this one was forked from: stream elsewhere")
        self._process = self._pid
        if not self._first:
            self._first = {"clock_start_ns": recorder.clock_start_ns, "wall_start_ns": recorder.wall_start_ns}
            self._file.add([self._writer.header()])
        self._file.open()
        self._memory = MemoryDrain()
        self._pens.clear()
        self._steps = self._parameters = 0
        self._begun_at = self._file.size
        tables = [block for name, entries in self._tables.fresh() for block in self._writer.table(name, entries)]
        self._write([self._meta(0), *tables])

    def keep(self) -> None:
        """Write what was recorded since the last time."""
        window = self.window
        assert window is not None
        last = window.recorder.clock_end_ns is not None
        marks = len(window.recorder.steps)
        taken = take(window.recorder)
        memory = self._memory.take(window.recorder, last)
        self._write([*self._frames(window, taken, memory, marks)])

    def closed(self) -> None:
        """End a window in the file; until another one begins, the file is complete."""
        window = self.window
        assert window is not None
        if window.device is not None:
            self._write([*self._device_frames(window)])
        self._write([self._meta(window.recorder.clock_end_ns or 0)])
        self._file.close(self._writer.end())
        self._tables.forget_steps()

    def store(self) -> EventStore:
        """The window, read back from the file."""
        return self._read()[0]

    def storage_notes(self) -> StorageNotes:
        """What the window noted of storages."""
        return rebuild.storage_notes(self._read()[1])

    def _read(self) -> tuple[EventStore, rebuild.Logs]:
        window = self.window
        assert window is not None
        if self._open:
            self.flush()
        if self._file.waiting:
            raise OSError(f"the recording cannot be read back: {self._file.failure}")
        recorder = window.recorder
        end = recorder.clock_end_ns if recorder.clock_end_ns is not None else recorder.clock()
        meta = {
            "clock_start_ns": recorder.clock_start_ns,
            "wall_start_ns": recorder.wall_start_ns,
            "clock_end_ns": end,
            "trace_id": window.meta["trace_id"],
        }
        return read_part(self.path, (self._begun_at, self._file.size), meta)

    @property
    def dropped_events(self) -> int:
        """Events that could not be written."""
        return self._file.dropped

    # ------------------------------------------------------------------ frames

    def _write(self, frames: list[bytes]) -> None:
        self._file.add(frames)
        self._file.write()

    def _meta(self, end: int) -> bytes:
        window = self.window
        assert window is not None
        said = dict(self.metadata())
        if self._file.dropped:
            said["dropped_events"] = self._file.dropped
        return self._writer.meta(
            {
                **window.meta,
                **self._first,
                "clock_end_ns": end,
                "metadata": said,
                "pid": self._pid,
                "segments": [[0, self._first["clock_start_ns"]]],
                "logs": True,
            }
        )

    def _frames(self, window: Window, taken: list[Drained], memory: Table, marks: int) -> Iterator[bytes]:
        """Everything in the order in which a reader wants it: tables before what points into them."""
        recorder, writer, tables = window.recorder, self._writer, self._tables
        if self._file.giving_up:
            self._file.dropped += sum(len(one.rows) for one in taken)
            return
        columns, logs = [], []
        for one in taken:
            pen = self._pens.get(id(one.tap))
            if pen is None:
                pen = self._pens[id(one.tap)] = Pen(one.tap)
            if not len(one.rows) and not len(one.modules) and not one.calls:
                continue
            thread = self._number_of(ThreadInfo(one.tap.ident, one.tap.name))
            if len(one.rows):
                columns.append({**pen.columns(one.rows, tables, recorder), "tid": np.full(len(one.rows), thread, np.int32)})
            if len(one.modules):
                logs.append((MODULE_LOG, thread, pen.modules(one.modules, tables)))
            logs += [(PYTHON_LOG, thread, self._call_rows(piece)) for piece in one.calls]
            if one.tap.tasks is not None:
                logs.append((TASK_LOG, thread, pen.turns(one.tap.tasks, tables)))
            if len(one.touched):
                logs.append((TOUCHED_LOG, thread, freeze.with_written(one.touched)))
        numbers = {info.ident: number for info, number in self._threads.items()}
        for ident in np.unique(memory[:, 0]).tolist():
            if ident not in numbers:  # a thread that allocated and ran no op
                numbers[ident] = self._number_of(ThreadInfo(ident, f"thread {ident}"))
        logs += self._other_logs(window, numbers, marks)
        columns += self._foreign(window)
        for name, entries in tables.fresh():
            yield from writer.table(name, entries)
        for number, thread, table in logs:
            yield from writer.log(number, thread, table)
        if columns:
            yield from writer.rows(_concatenated(columns))
        if len(memory):
            tid = np.array([numbers[ident] for ident in memory[:, 0].tolist()], np.int32)
            yield from writer.memory(
                {"mem_time": memory[:, 1], "mem_bytes": memory[:, 2], "mem_addr": memory[:, 3], "mem_tid": tid}
            )

    def _number_of(self, info: ThreadInfo) -> int:
        number = self._threads.get(info)
        if number is None:
            number = self._threads[info] = len(self._threads)
            self._tables.add("threads", info)
        return number

    def _call_rows(self, piece: Piece) -> Table:
        """A part of a stream of Python calls as numbers."""
        parts: list[tuple[list[Any], list[int], list[int]]] = []
        if piece.begun is not None:
            start, opened, places = piece.begun
            parts.append(([BEGINS, *opened], [len(opened), *places], [start] * (1 + len(opened))))
        parts.append((piece.events[0::WIDTH], piece.events[1::WIDTH], piece.events[2::WIDTH]))
        if piece.ended is not None:
            parts.append(([STOPS], [0], [piece.ended]))
        what = [one for objects, _, _ in parts for one in objects]
        table = np.empty((len(what), 3), np.int64)
        table[:, 0] = self._tables.calls(what, self._shorten)
        table[:, 1] = [place for _, places, _ in parts for place in places]
        table[:, 2] = [time for _, _, times in parts for time in times]
        return table

    def _other_logs(self, window: Window, numbers: Mapping[int, int], marks: int) -> list[tuple[int, int, Table]]:
        """Step marks, the garbage collector's pauses, parameters, and calls with `out=`, as far as they are new."""
        recorder, found = window.recorder, []
        # All but the last mark leave the recorder's list, so that it stays short however many steps there are.
        found.append((STEP_LOG, 0, _table(recorder.steps[self._steps : marks], 2)))
        del recorder.steps[: max(marks - 1, 0)]
        self._steps = min(marks, 1)
        pauses = window.gc_watch.pauses
        taken = pauses[: len(pauses)]
        del pauses[: len(taken)]
        found.append((GC_LOG, 0, _table(taken, 3)))
        parameters = {
            address for tap in list(recorder.taps) if tap.modules is not None for address in list(tap.modules.parameters)
        }
        if len(parameters) > self._parameters:
            self._parameters = len(parameters)
            found.append((PARAMETER_LOG, 0, _table([(address,) for address in parameters], 1)))
        if window.out_calls is not None:
            for moment, ident, op in window.out_calls.take():
                if ident in numbers:
                    found.append((OUT_LOG, numbers[ident], _table([(moment, op)], 2)))
        return [log for log in found if len(log[2])]

    def _foreign(self, window: Window) -> list[dict[str, Any]]:
        """What other processes have recorded on behalf of this one."""
        given: list[ForeignRows] = window.recorder.foreign[:]
        del window.recorder.foreign[: len(given)]
        found = []
        for ident, name, columns, tables in given:
            more = freeze.foreign_columns(window.recorder, columns, tables, self._tables)
            count = len(more["start"])
            if count:
                thread = self._number_of(ThreadInfo(ident, name))
                found.append({**more, "tid": np.full(count, thread, np.int32), "correlation": np.full(count, FOREIGN)})
        return found

    def _device_frames(self, window: Window) -> Iterator[bytes]:
        """What ran on a device, which is known when the window has ended."""
        assert window.device is not None
        columns: dict[str, Any] = {name: np.empty(0, np.int64) for name in ("name", "kind", "tid", "start", "end")}
        threads = list(self._threads)
        window.device.add_to_columns(columns, threads, self._tables.name, lambda start: freeze.steps(window.recorder, start))
        for info in threads[len(self._threads) :]:
            self._number_of(info)
        for table, entries in self._tables.fresh():
            yield from self._writer.table(table, entries)
        memory = {name: columns.pop(name) for name in [*columns] if name.startswith("mem_")}
        yield from self._writer.rows(columns)
        if memory:
            yield from self._writer.memory(memory)


def _concatenated(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows of all parts; where one has no such column, what a row has when nothing was recorded."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.concatenate([part[name] if name in part else np.full(len(part["start"]), OPTIONAL[name][1]) for part in parts])
        for name in names
    }


def _table(rows: Any, width: int) -> Table:
    return np.array(rows, np.int64).reshape(-1, width)
