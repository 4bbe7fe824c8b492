"""What a streamed file needs to refer to: tables whose entries are written once, and rows with those entries' numbers.

In: what a drain moved off the recorder. Out: new table entries, and columns and logs that refer to entries by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..assembly import columns as _columns
from ..assembly import freeze
from ..assembly.call_table import described
from ..assembly.clock_order import ClockOrder
from ..assembly.python_rows import Shortener
from ..formats.saved_file.layout import ENDS
from ..recording.asyncio_lanes import TaskLog
from ..recording.module_calls import ModuleInfo
from ..recording.python_calls.stream import Called, OpenFrame
from ..recording.recorder import SPAN_BASE, Recorder, ThreadRecording
from ..store.derived import STEP_PREFIX
from ..store.store import RowDetails
from .drain import Table


class StreamTables(_columns.Tables):
    """The tables of a file. An entry keeps its number, is written once, and is forgotten if it cannot come up again."""

    def __init__(self) -> None:
        super().__init__()
        self._fresh: dict[str, list[Any]] = {}
        self._count = 0
        self._detail_count = 0
        self._call_numbers: dict[int, int] = {}  # by id()
        self._calls: list[Called] = []  # kept, so that no other object gets the same id()
        self._equal_calls: dict[str | OpenFrame, int] = {}  # texts and open frames, which are made anew each time
        self._module_numbers: dict[Any, int] = {}
        self._written = dict.fromkeys(("input_infos", "overloads", "stacks", "modules"), 0)
        # What fresh() gave last: how many entries of `_written` and of `_fresh` are in the file once it is written.
        self._asked: dict[str, int] = {}
        self._asked_fresh: dict[str, int] = {}

    def name(self, text: str) -> int:
        """The number of a name. Numbers stay in use after forget_steps()."""
        number = self.names.get(text)
        if number is None:
            number = self.names[text] = self._count
            self._count += 1
            self.add("names", text)
        return number

    def detail(self, details: RowDetails) -> int:
        """The number of a row's details, which are not kept."""
        self._detail_count += 1
        self.add("row_details", list(details))
        return self._detail_count - 1

    def forget_steps(self) -> None:
        """Forget the names of single steps, which no later window uses."""
        for text in [text for text in self.names if text.startswith(STEP_PREFIX)]:
            del self.names[text]

    def module(self, info: ModuleInfo) -> int:
        """The number of a module's entry."""
        entry = (info.ident, info.class_name, info.order, tuple(info.below.items()))
        number = self._module_numbers.get(entry)
        if number is None:
            number = self._module_numbers[entry] = len(self._module_numbers)
            self.add("module_infos", entry)
        return number

    def calls(self, what: Sequence[Called | int], shorten: Shortener) -> NDArray[np.int64]:
        """The number of each code object, open frame or builtin's text; ENDS for a return. Marks are numbers already."""
        idents = np.fromiter(map(id, what), np.int64, len(what))
        _, first, which = np.unique(idents, return_index=True, return_inverse=True)
        return np.array([self._call(what[at], shorten) for at in first.tolist()], np.int64)[which]

    def _call(self, what: Called | int, shorten: Shortener) -> int:
        if what is None:
            return ENDS
        if isinstance(what, int):
            return what
        if isinstance(what, str | OpenFrame):
            number = self._equal_calls.get(what)
            if number is None:
                number = self._equal_calls[what] = self._add_call(what, shorten)
            return number
        number = self._call_numbers.get(id(what))
        if number is None:
            number = self._call_numbers[id(what)] = self._add_call(what, shorten)
        return number

    def _add_call(self, what: Called, shorten: Shortener) -> int:
        self._calls.append(what)
        self.add("calls", described(what, shorten))
        return len(self._calls) - 1

    def add(self, table: str, entry: Any) -> None:
        """Have an entry written with the next fresh()."""
        self._fresh.setdefault(table, []).append(entry)

    def fresh(self) -> list[tuple[str, list[Any]]]:
        """Names and new entries of the tables that have any; they count as written from the call of written() on."""
        fresh = {table: entries[:] for table, entries in self._fresh.items()}
        for table, entries in self._grown().items():
            new = entries[self._written[table] :]
            if new:
                fresh.setdefault(table, []).extend(new)
        self._asked = {table: self._written[table] + len(fresh.get(table, ())) for table in self._written}
        self._asked_fresh = {table: len(entries) for table, entries in self._fresh.items()}
        return list(fresh.items())

    def written(self) -> None:
        """The entries that fresh() gave last are in the file."""
        self._written.update(self._asked)
        for table, count in self._asked_fresh.items():
            del self._fresh[table][:count]
        self._asked, self._asked_fresh = {}, {}

    def _grown(self) -> dict[str, list[Any]]:
        """Tables that others fill, which are written from where they were left."""
        return {
            "input_infos": self.infos,
            "overloads": observer.op_overloads,
            "stacks": self.stacks,
            "modules": list(self.modules),
        }


class ThreadEncoder:
    """Turns what one thread recorded into columns and logs for the file, drain by drain."""

    def __init__(self, recording: ThreadRecording, since: int) -> None:
        """since: when the recording began."""
        self.order = ClockOrder(since)
        self._tap = recording
        self._infos: list[int] = []
        self._modules: list[int] = []
        self._turns = 0
        self._tasks = 0

    def columns(self, rows: Table, tables: StreamTables, recorder: Recorder) -> dict[str, Any]:
        """The columns of rows, whose inputs are numbered as in the file."""
        recording = self._tap
        columns = freeze.op_columns(recording, rows, self.order, tables)
        if "shapes" in columns:
            self._infos += [tables.info(key) for key in list(recording.keys)[len(self._infos) :]]
            columns["shapes"] = _columns.renumbered(columns["shapes"], self._infos)
            if recorder.options.with_flops:
                columns["flops"] = tables.flops(columns["op"], columns["shapes"])
        columns["step"] = np.broadcast_to(freeze.steps(recorder, columns["start"]), len(rows))
        steps = rows[rows[:, 0] >= SPAN_BASE, 0][columns["kind"][rows[:, 0] >= SPAN_BASE] == observer.STEP]
        if len(steps):
            recording.spans.forget(set(steps.tolist()))
        return columns

    def modules(self, events: Table, tables: StreamTables) -> Table:
        """Rows of module number, as in the file, and time."""
        log = self._tap.modules
        assert log is not None
        self._modules += [tables.module(info) for info in log.infos[len(self._modules) :]]
        number = np.where(events[:, 0] >= 0, _columns.renumbered(np.maximum(events[:, 0], -1), self._modules), events[:, 0])
        return np.column_stack([number, events[:, 1]])

    def turns(self, tasks: TaskLog, tables: StreamTables) -> Table:
        """Rows of time and asyncio lane: the turns since the last drain. Names of new lanes go to the table `tasks`."""
        new = tasks.turns(self._turns)
        self._turns += len(new)
        named = list(tasks.names.items())[self._tasks :]
        self._tasks += len(named)
        for lane, name in named:
            tables.add("tasks", [lane, name])
        return np.array(new, np.int64).reshape(-1, 2)
