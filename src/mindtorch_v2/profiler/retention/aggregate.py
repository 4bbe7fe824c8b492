"""`profile(max_memory_mb=N, mode="aggregate")`: statistics instead of events, in constant memory for a job of any length.

Each drain turns the new rows of a thread into columns, finds their parents (`folding`), and adds them to the totals of their
group (`totals`), one group for each op, input shapes and module. `stats` is what the user gets.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..assembly import columns as _columns
from ..assembly import freeze
from ..assembly.clock_order import ClockOrder, loss
from ..recording.recorder import SPAN_BASE, Recorder, ThreadRecording, recorders_by_thread, recorders_lock
from ..store.derived import display_name
from ..store.distinct import distinct_values
from ..store.store import HIDDEN_NAMES, EventStore, RowDetails
from ..views.event_factory import flat_shapes
from .base import RetentionPolicy
from .drain import Table, pop_rows
from .folding import BACKWARD, COLUMNS, Counted, Folding, Rows, empty
from .stats import AggregateRow, AggregateStats, Key
from .totals import StepTotals, Totals

_PAUSE_S = 0.1
# How many forward ops have their module remembered for the backward node to come.
_MOST_FORWARD = 1 << 16
_MARKS_KEPT = 16
OTHER = "<other>"  # the group of all rows for whose own group there is no memory


class Aggregator(RetentionPolicy):
    """Adds the events of all windows of a profile to totals by group."""

    def __init__(self, max_memory_mb: float) -> None:
        super().__init__(_PAUSE_S)
        self._most_groups = max(2, int(max_memory_mb * (1 << 20)) // (2 * Totals.BYTES))
        self._tables = _Names()
        self._sums = _Sums(self._most_groups)
        self._threads: dict[int, _Thread] = {}  # by id() of the ThreadRecording
        self._numbers = itertools.count()
        self._steps_back = 0  # of the clock, on threads that have ended
        self._forward = _ForwardModules()

    def on_window_start(self) -> None:
        """Forget the threads of the window before; its sums stay."""
        self._threads.clear()
        self._numbers = itertools.count()
        self._steps_back = 0

    def drain(self) -> None:
        """Count what was recorded since the last drain."""
        assert self.window is not None
        recorder = self.window.recorder
        with recorders_lock:
            now = recorder.clock()
            marks = len(recorder.steps)
            ended = recorder.end_with_threads()
            drained = [(recording, pop_rows(recording.rows, recording.width)) for recording in list(recorder.thread_recordings)]
            recorder.forget(ended)
            recorder.collect_communications()
            foreign = recorder.foreign[:]
            del recorder.foreign[: len(foreign)]
            new = []
            for recording, table in drained:
                thread = self._threads.get(id(recording))
                if thread is None:
                    thread = self._threads[id(recording)] = _Thread(recording, next(self._numbers))
                new.append((thread, thread.rows(table, recorder, self._tables, now)))
        for thread, (rows, sequence) in new:
            self._forward.learn(thread.number, rows, sequence)
        for thread, (rows, sequence) in new:
            self._forward.apply(thread.number, rows, sequence)
            self._sums.add(thread.folding.fold(rows, thread.open_ranges()), self._tables)
        for recording in ended:
            thread = self._threads.pop(id(recording))
            self._steps_back += thread.order.steps_back
            self._sums.add(thread.folding.fold(empty(COLUMNS), np.empty(0, np.int64), everything=True), self._tables)
        for _, _, columns, tables in foreign:
            more = freeze.foreign_columns(recorder, columns, tables, self._tables)
            rows = _foreign_rows(more, self._tables)
            self._sums.add(Folding().fold(rows, np.empty(0, np.int64), everything=True), self._tables)
        self.window.gc_log.pauses.clear()
        del recorder.steps[: max(0, marks - _MARKS_KEPT)]

    def on_window_end(self) -> None:
        """Count the rows that were held back because their parent might have been to come."""
        for thread in self._threads.values():
            self._sums.add(thread.folding.fold(empty(COLUMNS), np.empty(0, np.int64), everything=True), self._tables)
        steps_back = self._steps_back + sum(thread.order.steps_back for thread in self._threads.values())
        if steps_back and self.window is not None:
            self.window.recorder.losses.append(loss(steps_back))
        self._threads.clear()

    def store(self) -> EventStore:
        """Raises: statistics are not a store."""
        raise RuntimeError("mode='aggregate' keeps no events: aggregate() has the statistics")

    def stats(self) -> AggregateStats:
        """The statistics so far, of rows whose parent is still to come too."""
        self.flush()
        with self.lock:
            sums = self._sums.copy()
            for thread in self._threads.values():
                pending = thread.folding.fold(empty(COLUMNS), np.empty(0, np.int64), everything=True, keep=False)
                sums.add(pending, self._tables)
            return sums.stats(self._tables)


class _Names(_columns.Tables):
    """Tables of what groups are told apart by; names are those that views show."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: dict[str, int] = {}
        self.hidden: list[bool] = []

    def name(self, text: str) -> int:
        """The number of the name that views show for `text`."""
        label = display_name(text)
        number = self.names.get(label)
        if number is None:
            number = self.names[label] = len(self.names)
            self.hidden.append(label in HIDDEN_NAMES)
        return number

    def detail(self, details: RowDetails) -> int:
        """-1: statistics have no details."""
        return -1

    def shape(self, info: int) -> int:
        """The number of the shapes of an entry of `infos`; inputs that differ in dtype only have the same."""
        text = str(flat_shapes(self.infos[info].dims))
        return self.shapes.setdefault(text, len(self.shapes))


class _Thread:
    """One recorded thread: turns its new rows into columns, which its Folding then takes."""

    def __init__(self, recording: ThreadRecording, number: int) -> None:
        self.number = number
        self.order = ClockOrder(recording.since)
        self.folding = Folding()
        self._tap = recording
        self._infos: list[int] = []
        self._shapes: list[int] = []

    def rows(self, table: Table, recorder: Recorder, tables: _Names, now: int) -> tuple[Rows, NDArray[np.int64]]:
        """New rows as columns for Folding, and the sequence number of each."""
        recording = self._tap
        columns = freeze.op_columns(recording, table, self.order, tables)
        count = len(table)
        nothing = np.full(count, -1, np.int64)
        shape, flops = nothing, np.zeros(count, np.int64)
        if "shapes" in columns:
            new = [tables.info(key) for key in list(recording.keys)[len(self._infos) :]]
            self._infos += new
            if recorder.options.with_flops:
                flops = tables.flops(columns["op"], _columns.renumbered(columns["shapes"], self._infos))
            if recorder.options.record_shapes:
                self._shapes += [tables.shape(info) for info in new]
                shape = _columns.renumbered(columns["shapes"], self._shapes)
        module = nothing
        if recording.modules is not None:
            calls = _columns.module_columns(recording.modules.infos, recording.modules.calls(now), tables)
            module = _columns.modules_at(columns["start"], calls)
            if count:
                recording.modules.trim(int(columns["end"].min()))
        steps = table[(table[:, 0] >= SPAN_BASE) & (columns["kind"] == observer.STEP), 0]
        recording.spans.forget(set(steps.tolist()))
        rows = {
            "start": columns["start"],
            "end": columns["end"],
            "kind": columns["kind"],
            "label": columns["name"],
            "shape": shape,
            "module": module,
            "module_from": np.zeros(count, np.int64),
            "step": np.broadcast_to(freeze.steps(recorder, columns["start"]), count),
            "flops": flops,
        }
        visible = ~np.array([*tables.hidden, False])[columns["name"]]
        return {name: np.asarray(values, np.int64)[visible] for name, values in rows.items()}, columns["seq"][visible]

    def open_ranges(self) -> NDArray[np.int64]:
        """Start times of the user's scopes that are still open."""
        recorders = recorders_by_thread.get(id(self._tap.state))
        return np.array([scope.began for scope in list(recorders.scopes)] if recorders is not None else [], np.int64)


def _foreign_rows(columns: dict[str, NDArray[np.int64]], tables: _Names) -> Rows:
    """Rows of another process as columns for Folding."""
    count = len(columns["start"])
    infos = distinct_values(columns["shapes"][columns["shapes"] >= 0]).tolist()
    shapes = np.full(max(infos, default=-1) + 2, -1, np.int64)
    for info in infos:
        shapes[info] = tables.shape(info)
    rows = {**columns, "label": columns["name"], "shape": shapes[columns["shapes"]], "module_from": np.zeros(count, np.int64)}
    return {name: np.asarray(rows[name], np.int64) for name in COLUMNS}


class _ForwardModules:
    """Modules of forward ops by sequence number, for their backward nodes, which count for the same module."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], int] = {}
        self._thread_of: dict[int, int] = {}

    def learn(self, thread: int, rows: Rows, sequence: NDArray[np.int64]) -> None:
        """Remember ops that have made a node: of several with one sequence number, the one that began last."""
        ops = np.flatnonzero((rows["kind"] == observer.OP) & (sequence >= 0) & (rows["module"] >= 0))
        ops = ops[np.argsort(rows["start"][ops], kind="stable")]
        for number, module in zip(sequence[ops].tolist(), rows["module"][ops].tolist(), strict=True):
            self._known[thread, number] = module
            self._thread_of[number] = thread
        for key in list(self._known)[: max(0, len(self._known) - _MOST_FORWARD)]:
            del self._known[key]
            self._thread_of.pop(key[1], None)

    def apply(self, thread: int, rows: Rows, sequence: NDArray[np.int64]) -> None:
        """Set the module of backward rows to that of their forward op."""
        if not self._known:
            return
        for row in np.flatnonzero((rows["kind"] == observer.BACKWARD) & (sequence >= 0)).tolist():
            number = int(sequence[row])
            forward = thread if (thread, number) in self._known else self._thread_of.get(number, thread)
            module = self._known.pop((forward, number), None)
            if module is not None:
                self._thread_of.pop(number, None)
                rows["module"][row], rows["module_from"][row] = module, BACKWARD


class _Sums:
    """The totals of each group: durations of calls and of steps, self time, FLOPs."""

    def __init__(self, most_groups: int) -> None:
        self._most = most_groups
        self._groups: dict[int, int] = {}
        self._calls, self._steps = Totals(), StepTotals()
        self._self_ns, self._flops = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._step_count, self._last_step = 0, -1

    def add(self, counted: Counted, tables: _Names) -> None:
        """Add rows to the totals of their groups."""
        rows, self_ns = counted
        if not len(self_ns):
            return
        # Twenty bits for shape and module each: more than there is memory for anyway.
        key = rows["label"] << 40 | (rows["shape"] + 1 & 0xFFFFF) << 20 | rows["module"] + 1 & 0xFFFFF
        distinct, which = np.unique(key, return_inverse=True)
        group = np.array([self._group(packed, tables) for packed in distinct.tolist()], np.int64)[which]
        size = len(self._groups)
        self._calls.grow(size)
        self._steps.grow(size)
        if size > len(self._self_ns):
            more = np.zeros(2 * size - len(self._self_ns), np.int64)
            self._self_ns, self._flops = np.concatenate([self._self_ns, more]), np.concatenate([self._flops, more])
        duration = rows["end"] - rows["start"]
        self._calls.add(group, duration)
        self._steps.add(group, rows["step"], duration)
        np.add.at(self._self_ns, group, self_ns)
        np.add.at(self._flops, group, rows["flops"])
        new = distinct_values(rows["step"][rows["step"] > self._last_step])
        self._step_count += len(new)
        self._last_step = int(new[-1]) if len(new) else self._last_step

    def _group(self, key: int, tables: _Names) -> int:
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= self._most - 1:
                key = tables.name(OTHER) << 40
            group = self._groups.setdefault(key, len(self._groups))
        return group

    def copy(self) -> _Sums:
        """A copy that does not change when this one does."""
        copy = _Sums(self._most)
        copy._groups = dict(self._groups)
        copy._calls, copy._steps = self._calls.copy(), self._steps.copy()
        copy._self_ns, copy._flops = self._self_ns.copy(), self._flops.copy()
        copy._step_count, copy._last_step = self._step_count, self._last_step
        return copy

    def stats(self, tables: _Names) -> AggregateStats:
        """The totals as the user gets them, with the step under way counted as if it ended now."""
        names, shapes, modules = list(tables.names), list(tables.shapes), list(tables.modules)
        by_step = self._steps.finished()
        rows = []
        for packed, group in self._groups.items():
            shape, module = (packed >> 20 & 0xFFFFF) - 1, (packed & 0xFFFFF) - 1
            key: Key = (names[packed >> 40], shapes[shape] if shape >= 0 else "", modules[module] if module >= 0 else "")
            rows.append(
                AggregateRow(
                    *key, int(self._self_ns[group]), int(self._flops[group]), self._calls.summary(group), by_step.summary(group)
                )
            )
        return AggregateStats(rows, self._step_count)
