"""`profile(stream_to=path)`: what is recorded goes to a file while the recording runs, so that a crash loses little.

The file is a saved profile whose rows come in the order in which they ended, with logs of Python calls, modules and other
things beside them (see docs/saved-format.md). All windows of a profile go to one file.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._dispatch import observer
from . import _freeze, _rebuild
from ._call_table import described
from ._capture import MOST_ARGUMENTS
from ._derived import STEP_PREFIX
from ._drain import MemoryDrain, Table, Taken, take
from ._keeper import Keeper, Window
from ._python_rows import Shortener
from ._recorder import Tap
from ._stacks import WIDTH, Piece
from ._store import EventStore, ThreadInfo
from .exporters.files import path_text
from .formats._saved_layout import (
    BEGINS,
    ENDS,
    GC_LOG,
    MODULE_LOG,
    OUT_LOG,
    PARAMETER_LOG,
    PYTHON_LOG,
    STEP_LOG,
    STOPS,
    TOUCHED_LOG,
)
from .formats._saved_reader import read_part
from .formats.saved import Writer

# Bytes that wait for a disk that is full. Beyond that, events are counted instead of kept.
_MOST_WAITING = 32 << 20


class Stream(Keeper):
    """Writes the windows of a profile to one file."""

    def __init__(self, path: str | os.PathLike[str], flush_interval_s: float) -> None:
        # Twice per interval, so that what a kill loses is younger than the interval, writing included.
        super().__init__(flush_interval_s / 2)
        self.path = path_text(path)
        _check_target(self.path)
        self.metadata: Callable[[], Mapping[str, Any]] = dict
        self._file = _File(self.path)
        self._writer = Writer(recorded=True)
        self._tables = _Tables()
        self._threads: dict[ThreadInfo, int] = {}
        self._shorten = Shortener()
        self._first: dict[str, int] = {}  # clock_start_ns and wall_start_ns of the first window
        self._begun_at = 0
        self._said = ""

    # ------------------------------------------------------------------ windows

    def opened(self) -> None:
        """Begin a window in the file."""
        window = self.window
        assert window is not None
        recorder = window.recorder
        if not self._first:
            self._first = {"clock_start_ns": recorder.clock_start_ns, "wall_start_ns": recorder.wall_start_ns}
            self._file.add([self._writer.header()])
        self._file.open()
        self._memory = MemoryDrain()
        self._pens: dict[int, _Pen] = {}
        self._steps = self._pauses = self._out_calls = self._parameters = 0
        self._said = ""
        self._begun_at = self._file.size
        self._write([self._meta(0)])

    def keep(self) -> None:
        """Write what was recorded since the last time."""
        window = self.window
        assert window is not None
        last = window.recorder.clock_end_ns is not None
        taken = take(window.recorder)
        memory = self._memory.take(window.recorder, last)
        self._write([*self._frames(window, taken, memory)])

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

    def storage_notes(self) -> Any:
        """What the window noted of storages."""
        return _rebuild.storage_notes(self._read()[1])

    def _read(self) -> tuple[EventStore, _rebuild.Logs]:
        window = self.window
        assert window is not None
        self.flush()
        if self._file.waiting:
            raise OSError(f"the recording cannot be read back: {self._file.failure}")
        recorder = window.recorder
        end = recorder.clock_end_ns if recorder.clock_end_ns is not None else recorder.clock()
        meta = {"clock_start_ns": recorder.clock_start_ns, "wall_start_ns": recorder.wall_start_ns, "clock_end_ns": end,
                "trace_id": window.meta["trace_id"]}
        return read_part(self.path, (self._begun_at, self._file.size), meta)

    @property
    def dropped_events(self) -> int:
        """Events that could not be written."""
        return self._file.dropped

    # ------------------------------------------------------------------ frames

    def _write(self, frames: list[bytes], rows: int = 0) -> None:
        self._file.add(frames)
        self._file.write()

    def _meta(self, end: int) -> bytes:
        window = self.window
        assert window is not None
        said = dict(self.metadata())
        if self._file.dropped:
            said["dropped_events"] = self._file.dropped
        return self._writer.meta({
            **window.meta, **self._first, "clock_end_ns": end, "metadata": said, "pid": self._pid,
            "segments": [[0, self._first["clock_start_ns"]]], "logs": True})

    def _frames(self, window: Window, taken: list[Taken], memory: Table) -> Iterator[bytes]:
        """Everything in the order in which a reader wants it: tables before what points into them."""
        recorder, writer, tables = window.recorder, self._writer, self._tables
        if self._file.giving_up:
            self._file.dropped += sum(len(one.rows) for one in taken)
            return
        columns, logs = [], []
        for one in taken:
            pen = self._pens.get(id(one.tap))
            if pen is None:
                pen = self._pens[id(one.tap)] = _Pen(one.tap)
            if not len(one.rows) and not len(one.modules) and not one.calls:
                continue
            thread = self._thread(ThreadInfo(one.tap.ident, one.tap.name))
            if len(one.rows):
                columns.append({**pen.columns(one.rows, tables, recorder), "tid": np.full(len(one.rows), thread, np.int32)})
            if len(one.modules):
                logs.append((MODULE_LOG, thread, pen.modules(one.modules, tables)))
            logs += [(PYTHON_LOG, thread, self._call_rows(piece)) for piece in one.calls]
            if len(one.touched):
                logs.append((TOUCHED_LOG, thread, _touches(one.touched)))
        numbers = {info.ident: number for info, number in self._threads.items()}
        for ident in np.unique(memory[:, 0]).tolist():
            if ident not in numbers:  # a thread that allocated and ran no op
                numbers[ident] = self._thread(ThreadInfo(ident, f"thread {ident}"))
        logs += self._other_logs(window, numbers)
        tables.overloads = len(observer.op_overloads)
        for table, entries in tables.fresh():
            yield from writer.table(table, entries)
        for number, thread, table in logs:
            yield from writer.log(number, thread, table)
        if columns:
            yield from writer.rows({name: np.concatenate([part[name] for part in columns]) for name in columns[0]})
        if len(memory):
            tid = np.array([numbers[ident] for ident in memory[:, 0].tolist()], np.int32)
            yield from writer.memory(
                {"mem_time": memory[:, 1], "mem_bytes": memory[:, 2], "mem_addr": memory[:, 3], "mem_tid": tid})

    def _thread(self, info: ThreadInfo) -> int:
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

    def _other_logs(self, window: Window, numbers: Mapping[int, int]) -> list[tuple[int, int, Table]]:
        """Step marks, the garbage collector's pauses, parameters, and calls with `out=`, as far as they are new."""
        recorder, found = window.recorder, []
        marks = recorder.steps[self._steps :]
        self._steps += len(marks)
        found.append((STEP_LOG, 0, _table(marks, 2)))
        pauses = window.gc_watch.pauses
        taken = pauses[: len(pauses)]
        del pauses[: len(taken)]
        found.append((GC_LOG, 0, _table(taken, 3)))
        parameters = {address for tap in list(recorder.taps) if tap.modules is not None
                      for address in list(tap.modules.parameters)}
        if len(parameters) > self._parameters:
            self._parameters = len(parameters)
            found.append((PARAMETER_LOG, 0, _table([(address,) for address in parameters], 1)))
        if window.out_calls is not None:
            for moment, ident, op in window.out_calls.take():
                if ident in numbers:
                    found.append((OUT_LOG, numbers[ident], _table([(moment, op)], 2)))
        # The recorder's own list stays short in a recording of many steps.
        del recorder.steps[: self._steps - 1]
        self._steps = 1
        return [log for log in found if len(log[2])]

    def _device_frames(self, window: Window) -> Iterator[bytes]:
        """What ran on a device, which is known when the window has ended."""
        assert window.device is not None
        columns: dict[str, Any] = {name: np.empty(0, np.int64) for name in ("name", "kind", "tid", "start", "end")}
        threads = list(self._threads)
        window.device.added(columns, threads, self._tables.name, lambda start: _freeze.steps(window.recorder, start))
        for info in threads[len(self._threads) :]:
            self._thread(info)
        for table, entries in self._tables.fresh():
            yield from self._writer.table(table, entries)
        memory = {name: columns.pop(name) for name in [*columns] if name.startswith("mem_")}
        yield from self._writer.rows(columns)
        if memory:
            yield from self._writer.memory(memory)


class _Tables(_freeze.Tables):
    """The tables of a file. Entries are numbered for good, written once, and what will not be asked for again forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self._fresh: dict[str, list[Any]] = {}
        self._count = 0
        self._call_numbers: dict[int, int] = {}
        self._calls: list[Any] = []  # kept, so that no other object gets the same id()
        self._texts: dict[str, int] = {}
        self._modules_made = 0
        self.overloads = self._overloads_told = self._infos_told = 0

    def name(self, text: str) -> int:
        number = self.names.get(text)
        if number is None:
            number = self.names[text] = self._count
            self._count += 1
            self.add("names", text)
        return number

    def forget_steps(self) -> None:
        """Names that each step brings are not needed once the window is over."""
        for text in [text for text in self.names if text.startswith(STEP_PREFIX)]:
            del self.names[text]

    def module(self, info: Any) -> int:
        """The number of a module that was called."""
        self.add("module_infos", [info.ident, info.class_name, info.order, [[key, name] for key, name in info.children.items()]])
        self._modules_made += 1
        return self._modules_made - 1

    def calls(self, what: list[Any], shorten: Shortener) -> NDArray[np.int64]:
        """The number of each thing that was called; marks, which are numbers already, stay, and a return is ENDS."""
        idents = np.fromiter(map(id, what), np.int64, len(what))
        _, first, which = np.unique(idents, return_index=True, return_inverse=True)
        return np.array([self._call(what[at], shorten) for at in first.tolist()], np.int64)[which]

    def _call(self, what: Any, shorten: Shortener) -> int:
        if what is None:
            return ENDS
        if isinstance(what, int):
            return what
        if isinstance(what, str):
            number = self._texts.get(what)
            if number is not None:
                return number
        else:
            number = self._call_numbers.get(id(what))
            if number is not None:
                return number
        number = len(self._calls)
        self._calls.append(what)
        if isinstance(what, str):
            self._texts[what] = number
        else:
            self._call_numbers[id(what)] = number
        self.add("calls", described(what, shorten))
        return number

    def add(self, table: str, entry: Any) -> None:
        """An entry that has to be written."""
        self._fresh.setdefault(table, []).append(entry)

    def fresh(self) -> list[tuple[str, list[Any]]]:
        """The tables that have new entries, and those; they count as written."""
        for info in self.infos[self._infos_told :]:
            self.add("input_infos", info)
        self._infos_told = len(self.infos)
        for overload in observer.op_overloads[self._overloads_told : self.overloads]:
            self.add("overloads", overload)
        self._overloads_told = self.overloads
        made, self._fresh = self._fresh, {}
        return list(made.items())


class _Pen:
    """Turns what one thread recorded into columns, chunk by chunk."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._infos: list[int] = []
        self._modules: list[int] = []

    def columns(self, rows: Table, tables: _Tables, recorder: Any) -> dict[str, Any]:
        """The columns of some rows."""
        tap = self._tap
        columns = _freeze.op_columns(tap, rows, tables)
        if "shapes" in columns:
            self._infos += [tables.info(key) for key in list(tap.keys)[len(self._infos) :]]
            columns["shapes"] = _freeze.renumbered(columns["shapes"], self._infos)
            if recorder.options.with_flops:
                columns["flops"] = tables.flops(columns["op"], columns["shapes"])
        columns["step"] = np.broadcast_to(_freeze.steps(recorder, columns["start"]), len(rows))
        tap.spans.forget(number for number, (name, kind) in _span_keys(tap, rows) if kind == observer.STEP)
        return columns

    def modules(self, events: Table, tables: _Tables) -> Table:
        """Module calls, with the numbers that modules have in the file."""
        log = self._tap.modules
        assert log is not None
        self._modules += [tables.module(info) for info in log.infos[len(self._modules) :]]
        number = np.where(events[:, 0] >= 0, _freeze.renumbered(np.maximum(events[:, 0], -1), self._modules), events[:, 0])
        return np.column_stack([number, events[:, 1]])


def _span_keys(tap: Tap, rows: Table) -> list[tuple[int, tuple[str, int]]]:
    """The spans that some rows are of."""
    present = set(rows[rows[:, 0] >= _freeze.SPAN_BASE, 0].tolist())
    return [(number, key) for key, number in list(tap.spans.items()) if number in present]


def _touches(table: Table) -> Table:
    """Op start, address, bytes, and whether it was written to."""
    made = table.copy()
    places, which = np.unique(table[:, 3], return_inverse=True)
    made[:, 3] = np.array([_freeze.is_written(*divmod(place, MOST_ARGUMENTS)) for place in places.tolist()] or [0])[which]
    return made


def _table(rows: Any, width: int) -> Table:
    return np.array(rows, np.int64).reshape(-1, width)


class _File:
    """The file, written at a place that is known, so that what failed can be written again."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._number = -1
        self._exists = False
        self._blocks: list[bytes] = []
        self.size = 0
        self.failure: OSError | None = None
        self.dropped = 0

    def open(self) -> None:
        """Make ready to write at the end."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._number = os.open(self._path, flags if self._exists else flags | os.O_TRUNC, 0o666)
        self._exists = True

    def add(self, blocks: list[bytes]) -> None:
        """Have something written by the next write()."""
        self._blocks += blocks

    def write(self) -> None:
        """Write what there is. If that fails it waits, and the file is whole up to its size."""
        data = b"".join(self._blocks)
        try:
            os.ftruncate(self._number, self.size)
            _write_at(self._number, data, self.size)
        except OSError as error:
            if self.failure is None:
                warnings.warn(f"the profile cannot be written to {self._path!r} for now: {error}", RuntimeWarning, stacklevel=2)
            self.failure = error
            self._blocks = [data]
            return
        self.size += len(data)
        self._blocks, self.failure = [], None

    def close(self, end: bytes) -> None:
        """Write the last frame of a complete file. Should more follow, it takes that frame's place."""
        if not self.waiting:
            try:
                _write_at(self._number, end, self.size)
            except OSError as error:
                self.failure = error
        os.close(self._number)
        self._number = -1

    @property
    def waiting(self) -> int:
        """Bytes that are not in the file yet."""
        return sum(map(len, self._blocks))

    @property
    def giving_up(self) -> bool:
        """Whether so much is waiting that no more can be taken."""
        return self.waiting > _MOST_WAITING


def _write_at(number: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(number, view, place)
        view, place = view[count:], place + count


def _check_target(path: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"stream_to: there is no folder {folder!r}")
    if os.path.isdir(path):
        raise IsADirectoryError(f"stream_to: {path!r} is a folder")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise PermissionError(f"stream_to: cannot write to {path!r}")
