"""`profile(stream_to=path)`: events go to a file while the recording runs, so that a crash loses little.

The file is a saved profile whose rows come in the order in which they ended, with logs of Python calls, modules and other
things beside them (see docs/saved-format.md). All windows of a profile go to one file.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from .._io.files import path_text
from ..assembly import clock_order, freeze
from ..assembly.python_rows import Shortener
from ..formats.saved import Writer
from ..formats.saved_file import rebuild
from ..formats.saved_file.layout import (
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
from ..formats.saved_file.reader import read_part
from ..recording.python_calls.stream import WIDTH, Called, CallSegmentPart
from ..recording.recorder import ForeignRows, Recorder
from ..store.distinct import distinct_values
from ..store.store import OPTIONAL, EventStore, StorageNotes, ThreadInfo
from .base import RecordingWindow, RetentionPolicy
from .drain import Drained, MemoryDrain, Table, drain_threads
from .stream_file import StreamFile, check_target
from .stream_tables import StreamTables, ThreadEncoder


class Stream(RetentionPolicy):
    """Writes the windows of a profile to one file."""

    def __init__(self, path: str | os.PathLike[str], flush_interval_s: float) -> None:
        # More often than once per interval, so that a kill loses no more than one interval, the time to write included.
        super().__init__(flush_interval_s / 4, flush_interval_s / 2)
        self.path = path_text(path)
        check_target(self.path)
        self._file = StreamFile(self.path)
        self._shorten = Shortener()
        self._forget_file()
        self._window_at = 0  # where in the file the current window begins
        self._process = 0
        self._memory = MemoryDrain()
        self._encoders: dict[int, ThreadEncoder] = {}  # by id() of the ThreadRecording
        self._steps = 0  # how many marks the recorder has of which the file has been told
        self._parameters: set[int] = set()  # of which the file has been told
        self._steps_back = 0  # of the clock, on threads that have ended
        self._broken = False  # whether the window could not be encoded, see drain()

    def _forget_file(self) -> None:
        """Begin with no entries in any table, for a new file."""
        self._writer = Writer(recorded=True)
        self._tables = StreamTables()
        self._threads: dict[ThreadInfo, int] = {}
        self._first: dict[str, int] = {}  # clock_start_ns and wall_start_ns of the first window
        self._losses: list[str] = []  # of all windows

    # ------------------------------------------------------------------ windows

    def on_window_start(self) -> None:
        """Begin a window in the file."""
        window = self.window
        assert window is not None
        recorder = window.recorder
        if self._process not in (0, self._pid):
            raise RuntimeError(f"{self.path!r} is written by the process that this one was forked from: stream elsewhere")
        self._process = self._pid
        new = not self._file.goes_on()
        self._file.open(new)
        if new:
            self._forget_file()
            self._first = {"clock_start_ns": recorder.clock_start_ns, "wall_start_ns": recorder.wall_start_ns}
            self._file.add([self._writer.header()])
        self._memory = MemoryDrain()
        self._encoders.clear()
        self._steps, self._parameters, self._steps_back = 0, set(), 0
        self._broken = False
        self._window_at = self._file.size + self._file.waiting
        self._write([self._meta(0), *self._table_frames()])

    def on_window_failed(self) -> None:
        """Let go of the file."""
        self._file.let_go()

    def on_fork(self) -> None:
        """Let go of the parent's file."""
        self._file.forget()

    def drain(self) -> None:
        """Write what was recorded since the last drain.

        If it cannot be encoded (no memory), the file stays readable up to here, and all events of the window from here on are
        counted as dropped: rows, calls and tables follow from one another, so that none may be missing in between.
        """
        window = self.window
        assert window is not None
        last = window.recorder.clock_end_ns is not None
        marks = len(window.recorder.steps)
        drained: list[Drained] = []
        before = self._writer.counts()
        try:
            drain_threads(window.recorder, drained)
            if not self._broken:
                memory = self._memory.drain(window.recorder, last)
                self._file.add([*self._frames(window, drained, memory, marks)])
                self._tables.written()
        except BaseException:
            self._broken = True
            self._writer.go_back(before)
            raise
        finally:
            if self._broken:
                self._file.dropped += sum(len(part.rows) for part in drained)
        self._file.write()

    def on_window_end(self) -> None:
        """End a window in the file; until another one begins, the file is complete."""
        window = self.window
        assert window is not None
        if window.device is not None and not self._broken:
            self._file.add([*self._device_frames(window)])
            self._tables.written()
        steps_back = self._steps_back + sum(encoder.order.steps_back for encoder in self._encoders.values())
        if steps_back:
            window.recorder.losses.append(clock_order.loss(steps_back))
        self._file.add([self._meta(window.recorder.clock_end_ns or 0)])
        if not self._file.close(self._writer.end()):
            warnings.warn(
                f"the end of the recording, {self._file.waiting:,} bytes, is not in {self.path!r} yet: {self._file.failure}; "
                "asking for its results, or another start(), tries again",
                RuntimeWarning,
                stacklevel=2,
            )
        self._tables.forget_steps()

    def store(self) -> EventStore:
        """The window, read back from the file."""
        return self._read()[0]

    def storage_notes(self) -> StorageNotes:
        """The storages that ops were given, read back from the file."""
        return rebuild.storage_notes(self._read()[1])

    def _read(self) -> tuple[EventStore, rebuild.Logs]:
        window = self.window
        assert window is not None
        if self._open:
            self.flush()
        with self.lock:
            complete = self._file.failure is None if self._open else self._file.close(self._writer.end())
        if not complete:
            failure = self._file.failure
            assert failure is not None
            raise OSError(failure.errno, f"the recording cannot be read back: {failure.strerror}", self.path)
        recorder = window.recorder
        end = recorder.clock_end_ns if recorder.clock_end_ns is not None else recorder.clock()
        meta = {
            "clock_start_ns": recorder.clock_start_ns,
            "wall_start_ns": recorder.wall_start_ns,
            "clock_end_ns": end,
            "trace_id": window.meta["trace_id"],
        }
        return read_part(self.path, (self._window_at, self._file.size), meta)

    @property
    def dropped_events(self) -> int:
        """How many events could not be written because the disk was full for too long."""
        return self._file.dropped

    # ------------------------------------------------------------------ frames

    def _write(self, frames: list[bytes]) -> None:
        self._file.add(frames)
        self._tables.written()
        self._file.write()

    def _table_frames(self) -> Iterator[bytes]:
        for name, entries in self._tables.fresh():
            yield from self._writer.table(name, entries)

    def _meta(self, end: int) -> bytes:
        window = self.window
        assert window is not None
        metadata = dict(self.metadata())
        if self._file.dropped:
            metadata["dropped_events"] = self._file.dropped
        self._losses += [text for text in window.recorder.losses if text not in self._losses]
        if self._losses:
            metadata["losses"] = list(self._losses)
        if window.recorder.calls_in_imports:
            metadata["calls_in_imports"] = window.recorder.calls_in_imports
        return self._writer.meta(
            {
                **window.meta,
                **self._first,
                "clock_end_ns": end,
                "metadata": metadata,
                "pid": self._pid,
                "segments": [[0, self._first["clock_start_ns"]]],
                "logs": True,
            }
        )

    def _frames(self, window: RecordingWindow, drained: list[Drained], memory: Table, marks: int) -> Iterator[bytes]:
        """The frames of a drain, in the order in which a reader needs them: tables before the rows that refer to them."""
        writer = self._writer
        if self._file.giving_up:
            self._file.dropped += sum(len(part.rows) for part in drained)
            return
        columns: list[dict[str, Any]] = []
        logs: list[tuple[int, int, Table]] = []
        for part in drained:
            self._encode_thread(part, window.recorder, columns, logs)
            if part.recording.state.has_ended:
                self._steps_back += self._encoders.pop(id(part.recording)).order.steps_back
        numbers = self._numbers_by_ident(memory)
        logs += self._other_logs(window, drained, numbers, marks)
        columns += self._foreign(window)
        yield from self._table_frames()
        for number, thread, table in logs:
            yield from writer.log(number, thread, table)
        if columns:
            yield from writer.rows(_concatenated(columns))
        if len(memory):
            tid = np.array([numbers[ident] for ident in memory[:, 0].tolist()], np.int32)
            yield from writer.memory(
                {"mem_time": memory[:, 1], "mem_bytes": memory[:, 2], "mem_addr": memory[:, 3], "mem_tid": tid}
            )

    def _encode_thread(
        self, part: Drained, recorder: Recorder, columns: list[dict[str, Any]], logs: list[tuple[int, int, Table]]
    ) -> None:
        """Add what one thread recorded to `columns` and `logs`; its new table entries go to the tables."""
        encoder = self._encoders.get(id(part.recording))
        if encoder is None:
            encoder = self._encoders[id(part.recording)] = ThreadEncoder(part.recording, recorder.clock_start_ns)
        if not len(part.rows) and not len(part.modules) and not part.calls:
            return
        tables = self._tables
        thread = self._number_of(ThreadInfo(part.recording.ident, part.recording.name))
        if len(part.rows):
            columns.append({**encoder.columns(part.rows, tables, recorder), "tid": np.full(len(part.rows), thread, np.int32)})
        if len(part.modules):
            logs.append((MODULE_LOG, thread, encoder.modules(part.modules, tables)))
        logs += [(PYTHON_LOG, thread, self._call_rows(calls)) for calls in part.calls]
        if part.recording.tasks is not None:
            logs.append((TASK_LOG, thread, encoder.turns(part.recording.tasks, tables)))
        if len(part.touched):
            logs.append((TOUCHED_LOG, thread, freeze.with_written(part.touched)))

    def _numbers_by_ident(self, memory: Table) -> dict[int, int]:
        """The number of each thread by the operating system's id, threads that allocated and ran no op included."""
        numbers = {info.ident: number for info, number in self._threads.items()}
        for ident in distinct_values(memory[:, 0]).tolist():
            if ident not in numbers:
                numbers[ident] = self._number_of(ThreadInfo(ident, f"thread {ident}"))
        return numbers

    def _number_of(self, info: ThreadInfo) -> int:
        number = self._threads.get(info)
        if number is None:
            number = self._threads[info] = len(self._threads)
            self._tables.add("threads", info)
        return number

    def _call_rows(self, part: CallSegmentPart) -> Table:
        """Python calls as rows of what (the number of its table entry), place and time."""
        chunks: list[tuple[Sequence[Called | int], list[int], list[int]]] = []
        if part.begun is not None:
            start, opened, places = part.begun
            chunks.append(([BEGINS, *opened], [len(opened), *places], [start] * (1 + len(opened))))
        chunks.append((part.events[0::WIDTH], part.events[1::WIDTH], part.events[2::WIDTH]))
        if part.ended is not None:
            chunks.append(([STOPS], [0], [part.ended]))
        what = [called for objects, _, _ in chunks for called in objects]
        table = np.empty((len(what), 3), np.int64)
        table[:, 0] = self._tables.calls(what, self._shorten)
        table[:, 1] = [place for _, places, _ in chunks for place in places]
        table[:, 2] = [time for _, _, times in chunks for time in times]
        return table

    def _other_logs(
        self, window: RecordingWindow, drained: list[Drained], numbers: Mapping[int, int], marks: int
    ) -> list[tuple[int, int, Table]]:
        """The new step marks, garbage collections, parameters and calls with `out=`, as (log, thread, rows)."""
        recorder = window.recorder
        logs: list[tuple[int, int, Table]] = []
        # All but the last mark are removed from the recorder's list, so that it stays short however many steps there are.
        logs.append((STEP_LOG, 0, _table(recorder.steps[self._steps : marks], 2)))
        del recorder.steps[: max(marks - 1, 0)]
        self._steps = min(marks, 1)
        pauses = window.gc_log.pauses
        new_pauses = pauses[: len(pauses)]
        del pauses[: len(new_pauses)]
        logs.append((GC_LOG, 0, _table(new_pauses, 3)))
        parameters = {
            address
            for recording in {*recorder.thread_recordings, *(part.recording for part in drained)}
            if recording.modules is not None
            for address in list(recording.modules.parameters)
        }
        parameters -= self._parameters
        if parameters:
            self._parameters |= parameters
            logs.append((PARAMETER_LOG, 0, _table([(address,) for address in parameters], 1)))
        if window.out_calls is not None:
            for moment, ident, op in window.out_calls.take():
                if ident in numbers:
                    logs.append((OUT_LOG, numbers[ident], _table([(moment, op)], 2)))
        return [log for log in logs if len(log[2])]

    def _foreign(self, window: RecordingWindow) -> list[dict[str, Any]]:
        """Columns of what workers have recorded and of communication since the last drain."""
        window.recorder.collect_communications()
        foreign: list[ForeignRows] = window.recorder.foreign[:]
        del window.recorder.foreign[: len(foreign)]
        parts = []
        for ident, name, columns, tables in foreign:
            renumbered = freeze.foreign_columns(window.recorder, columns, tables, self._tables)
            count = len(renumbered["start"])
            if count:
                thread = self._number_of(ThreadInfo(ident, name))
                parts.append({**renumbered, "tid": np.full(count, thread, np.int32), "correlation": np.full(count, FOREIGN)})
        return parts

    def _device_frames(self, window: RecordingWindow) -> Iterator[bytes]:
        """The frames of what ran on a device, which is known when the window has ended."""
        assert window.device is not None
        columns: dict[str, Any] = {name: np.empty(0, np.int64) for name in ("name", "kind", "tid", "start", "end")}
        threads = list(self._threads)
        step_of = partial(freeze.steps, window.recorder)
        window.device.add_to_columns(columns, threads, self._tables.name, self._tables.detail, step_of)
        for info in threads[len(self._threads) :]:
            self._number_of(info)
        yield from self._table_frames()
        memory = {name: columns.pop(name) for name in [*columns] if name.startswith("mem_")}
        yield from self._writer.rows(columns)
        if memory:
            yield from self._writer.memory(memory)


def _concatenated(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows of all parts; where a part lacks a column, its rows have the value that stands for "not recorded"."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.concatenate([part[name] if name in part else np.full(len(part["start"]), OPTIONAL[name][1]) for part in parts])
        for name in names
    }


def _table(rows: Sequence[tuple[int, ...]], width: int) -> Table:
    return np.array(rows, np.int64).reshape(-1, width)
