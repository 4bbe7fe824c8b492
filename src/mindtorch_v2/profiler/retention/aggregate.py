"""`profile(max_memory_mb=N, mode="aggregate")`: statistics instead of events, in constant memory for a job of any length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..assembly import columns as _columns
from ..assembly import freeze
from ..recording.recorder import SPAN_BASE, Recorder, ThreadRecording, changing, sites
from ..store.derived import display_name
from ..store.store import HIDDEN_NAMES, EventStore
from ..views.event_factory import flat_shapes
from .base import RetentionPolicy
from .drain import Table, pop_rows
from .folding import BACKWARD, COLUMNS, Counted, Folding, Rows, empty
from .stats import AggregateRow, AggregateStats, Key
from .totals import StepTotals, Totals

_PAUSE_S = 0.1
# Forward ops whose module is remembered for the backward node to come.
_MOST_FORWARD = 1 << 16
_MARKS_KEPT = 16
OTHER = "<other>"  # one row for all that there is no room for


class Aggregator(RetentionPolicy):
    """Sums up the windows of a profile."""

    def __init__(self, max_memory_mb: float) -> None:
        super().__init__(_PAUSE_S)
        self._most_groups = max(2, int(max_memory_mb * (1 << 20)) // (2 * Totals.BYTES))
        self._tables = _Names()
        self._sums = _Sums(self._most_groups)
        self._threads: dict[int, _Thread] = {}
        self._forward = _ForwardModules()

    def opened(self) -> None:
        """A new window adds to the sums of those before."""
        self._threads.clear()

    def keep(self) -> None:
        """Count what was recorded since the last time."""
        assert self.window is not None
        recorder = self.window.recorder
        with changing:
            now = recorder.clock()
            marks = len(recorder.steps)
            taken = [(tap, pop_rows(tap.rows, tap.width)) for tap in list(recorder.taps)]
            foreign = recorder.foreign[:]
            del recorder.foreign[: len(foreign)]
            made = []
            for tap, table in taken:
                thread = self._threads.get(id(tap))
                if thread is None:
                    thread = self._threads[id(tap)] = _Thread(tap, len(self._threads))
                made.append((thread, thread.rows(table, recorder, self._tables, now)))
        for thread, (rows, sequence) in made:
            self._forward.learn(thread.number, rows, sequence)
        for thread, (rows, sequence) in made:
            self._forward.give(thread.number, rows, sequence)
            self._sums.add(thread.folding.fold(rows, thread.open_ranges()), self._tables)
        for _, _, columns, tables in foreign:
            more = freeze.foreign_columns(recorder, columns, tables, self._tables)
            rows = _foreign_rows(more, self._tables)
            self._sums.add(Folding().fold(rows, np.empty(0, np.int64), everything=True), self._tables)
        self.window.gc_watch.pauses.clear()
        del recorder.steps[: max(0, marks - _MARKS_KEPT)]

    def closed(self) -> None:
        """Nothing more comes: count what was held back."""
        for thread in self._threads.values():
            self._sums.add(thread.folding.fold(empty(COLUMNS), np.empty(0, np.int64), everything=True), self._tables)
        self._threads.clear()

    def store(self) -> EventStore:
        """There is none."""
        raise RuntimeError("mode='aggregate' keeps no events: aggregate() has the statistics")

    def stats(self) -> AggregateStats:
        """The statistics so far."""
        if self._open:
            self.flush()
        with self.lock:
            sums = self._sums.copy()
            for thread in self._threads.values():
                held = thread.folding.fold(empty(COLUMNS), np.empty(0, np.int64), everything=True, keep=False)
                sums.add(held, self._tables)
            return sums.stats(self._tables)


class _Names(_columns.Tables):
    """Names as views show them, and what groups are told apart by."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: dict[str, int] = {}
        self.hidden: list[bool] = []

    def name(self, text: str) -> int:
        label = display_name(text)
        number = self.names.get(label)
        if number is None:
            number = self.names[label] = len(self.names)
            self.hidden.append(label in HIDDEN_NAMES)
        return number

    def shape(self, info: int) -> int:
        """The number of the input shapes of some inputs."""
        text = str(flat_shapes(self.infos[info].dims))
        return self.shapes.setdefault(text, len(self.shapes))


class _Thread:
    """One recorded thread."""

    def __init__(self, tap: ThreadRecording, number: int) -> None:
        self.number = number
        self.folding = Folding()
        self._tap = tap
        self._infos: list[int] = []
        self._shapes: list[int] = []

    def rows(self, table: Table, recorder: Recorder, tables: _Names, now: int) -> tuple[Rows, NDArray[np.int64]]:
        """New rows as folding wants them, and the sequence number of each."""
        tap = self._tap
        columns = freeze.op_columns(tap, table, tables)
        count = len(table)
        nothing = np.full(count, -1, np.int64)
        shape, flops = nothing, np.zeros(count, np.int64)
        if "shapes" in columns:
            new = [tables.info(key) for key in list(tap.keys)[len(self._infos) :]]
            self._infos += new
            if recorder.options.with_flops:
                flops = tables.flops(columns["op"], _columns.renumbered(columns["shapes"], self._infos))
            if recorder.options.record_shapes:
                self._shapes += [tables.shape(info) for info in new]
                shape = _columns.renumbered(columns["shapes"], self._shapes)
        module = nothing
        if tap.modules is not None:
            calls = _columns.module_columns(tap.modules.infos, tap.modules.calls(now), tables)
            module = _columns.modules_at(columns["start"], calls)
            if count:
                tap.modules.trim(int(columns["end"].min()))
        steps = table[(table[:, 0] >= SPAN_BASE) & (columns["kind"] == observer.STEP), 0]
        tap.spans.forget(set(steps.tolist()))
        rows = {
            "start": columns["start"],
            "end": columns["end"],
            "kind": columns["kind"],
            "label": columns["name"],
            "shape": shape,
            "module": module,
            "given": np.zeros(count, np.int64),
            "step": np.broadcast_to(freeze.steps(recorder, columns["start"]), count),
            "flops": flops,
        }
        shown = ~np.array([*tables.hidden, False])[columns["name"]]
        return {name: np.asarray(values, np.int64)[shown] for name, values in rows.items()}, columns["seq"][shown]

    def open_ranges(self) -> NDArray[np.int64]:
        """When the user's ranges that are still open began."""
        site = sites.get(id(self._tap.state))
        return np.array([scope.began for scope in list(site.scopes)] if site is not None else [], np.int64)


def _foreign_rows(columns: dict[str, NDArray[np.int64]], tables: _Names) -> Rows:
    """Rows of another process as folding wants them."""
    count = len(columns["start"])
    infos = np.unique(columns["shapes"][columns["shapes"] >= 0]).tolist()
    shapes = np.full(max(infos, default=-1) + 2, -1, np.int64)
    for info in infos:
        shapes[info] = tables.shape(info)
    rows = {**columns, "label": columns["name"], "shape": shapes[columns["shapes"]], "given": np.zeros(count, np.int64)}
    return {name: np.asarray(rows[name], np.int64) for name in COLUMNS}


class _ForwardModules:
    """The module of a forward op, until its backward node asks: that has it too, as in a recording's `module`."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], int] = {}
        self._thread_of: dict[int, int] = {}

    def learn(self, thread: int, rows: Rows, sequence: NDArray[np.int64]) -> None:
        """Remember ops that have made a node; of several with one number the one that began last made it."""
        ops = np.flatnonzero((rows["kind"] == observer.OP) & (sequence >= 0) & (rows["module"] >= 0))
        ops = ops[np.argsort(rows["start"][ops], kind="stable")]
        for number, module in zip(sequence[ops].tolist(), rows["module"][ops].tolist(), strict=True):
            self._known[thread, number] = module
            self._thread_of[number] = thread
        for key in list(self._known)[: max(0, len(self._known) - _MOST_FORWARD)]:
            del self._known[key]
            self._thread_of.pop(key[1], None)

    def give(self, thread: int, rows: Rows, sequence: NDArray[np.int64]) -> None:
        """Give backward rows the module of their forward op."""
        if not self._known:
            return
        for row in np.flatnonzero((rows["kind"] == observer.BACKWARD) & (sequence >= 0)).tolist():
            number = int(sequence[row])
            of = thread if (thread, number) in self._known else self._thread_of.get(number, thread)
            module = self._known.pop((of, number), None)
            if module is not None:
                self._thread_of.pop(number, None)
                rows["module"][row], rows["given"][row] = module, BACKWARD


class _Sums:
    """The groups and what was counted for each."""

    def __init__(self, most_groups: int) -> None:
        self._most = most_groups
        self._groups: dict[int, int] = {}
        self._calls, self._steps = Totals(), StepTotals()
        self._self_ns, self._flops = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._step_count, self._last_step = 0, -1

    def add(self, counted: Counted, tables: _Names) -> None:
        """Count rows."""
        rows, self_ns = counted
        if not len(self_ns):
            return
        # Twenty bits for shape and module each: more than there is room for anyway.
        key = rows["label"] << 40 | (rows["shape"] + 1 & 0xFFFFF) << 20 | rows["module"] + 1 & 0xFFFFF
        distinct, which = np.unique(key, return_inverse=True)
        group = np.array([self._group(one, tables) for one in distinct.tolist()], np.int64)[which]
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
        new = np.unique(rows["step"][rows["step"] > self._last_step])
        self._step_count += len(new)
        self._last_step = int(new[-1]) if len(new) else self._last_step

    def _group(self, key: int, tables: _Names) -> int:
        found = self._groups.get(key)
        if found is None:
            if len(self._groups) >= self._most - 1:
                key = tables.name(OTHER) << 40
            found = self._groups.setdefault(key, len(self._groups))
        return found

    def copy(self) -> _Sums:
        """The same, to go its own way."""
        made = _Sums(self._most)
        made._groups = dict(self._groups)
        made._calls, made._steps = self._calls.copy(), self._steps.copy()
        made._self_ns, made._flops = self._self_ns.copy(), self._flops.copy()
        made._step_count, made._last_step = self._step_count, self._last_step
        return made

    def stats(self, tables: _Names) -> AggregateStats:
        """As users see it."""
        names, shapes, modules = list(tables.names), list(tables.shapes), list(tables.modules)
        by_step = self._steps.finished()
        made = []
        for packed, group in self._groups.items():
            shape, module = (packed >> 20 & 0xFFFFF) - 1, (packed & 0xFFFFF) - 1
            key: Key = (names[packed >> 40], shapes[shape] if shape >= 0 else "", modules[module] if module >= 0 else "")
            made.append(
                AggregateRow(
                    *key, int(self._self_ns[group]), int(self._flops[group]), self._calls.summary(group), by_step.summary(group)
                )
            )
        return AggregateStats(made, self._step_count)
