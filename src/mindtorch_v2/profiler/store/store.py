"""EventStore: one finished recording as NumPy columns and the tables that the columns index."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._dispatch import observer
from . import tree
from .derived import DerivedColumns
from .distinct import distinct_values

MEMORY_EVENT_NAME = "[memory]"
IntType = type[np.int8] | type[np.int32] | type[np.int64]

# Columns that freeze() needs, each an array or one number for all rows.
REQUIRED: Mapping[str, IntType] = {"name": np.int32, "kind": np.int8, "tid": np.int32, "start": np.int64, "end": np.int64}
# Columns that may be left out: (dtype, value of every row where the column was not recorded).
OPTIONAL: Mapping[str, tuple[IntType, int]] = {
    "seq": (np.int64, -1),
    "step": (np.int32, 0),
    "shapes": (np.int32, -1),
    "stack": (np.int32, -1),
    "flops": (np.int64, 0),
    "module": (np.int32, -1),
    "fwd_tid": (np.int32, -1),
    "op": (np.int32, -1),
    "device_type": (np.int8, 0),
    "device_index": (np.int32, -1),
    # Of a device row: the number it shares with the host call that launched it, and that call's thread and time.
    "correlation": (np.int64, -1),
    "launch_tid": (np.int32, -1),
    "launch_ns": (np.int64, -1),
    "details": (np.int32, -1),
}
COLUMNS = (*REQUIRED, *OPTIONAL)
MEMORY_COLUMNS: Mapping[str, tuple[IntType, int]] = {
    "mem_time": (np.int64, 0),
    "mem_bytes": (np.int64, 0),
    "mem_addr": (np.int64, 0),
    "mem_tid": (np.int32, 0),
    "mem_total": (np.int64, 0),
    "mem_device_type": (np.int8, 0),
    "mem_device_index": (np.int32, -1),
    "mem_reserved": (np.int64, 0),
}

# Bookkeeping ops that torch leaves out of events().
HIDDEN_NAMES = frozenset(
    {
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
    }
)


class ThreadInfo(NamedTuple):
    """A recorded thread: its operating-system id and its name."""

    ident: int
    name: str


class RowDetails(NamedTuple):
    """What a trace tells of an event beyond the columns: launch geometry, bytes, collectives, what a program added.

    category: the trace's own, "" if the kind of row implies it. arguments: a JSON object as text.
    """

    category: str
    arguments: str


class OtherEvent(NamedTuple):
    """An event of a trace that is no row: a counter, a wait of a stream, a profiler's own work; `fields` is JSON."""

    start: int
    duration: int  # -1: it has none
    fields: str


class StorageNotes(NamedTuple):
    """Accesses to storages beside their allocation: rows of (op start, address, bytes, written to)."""

    touched: NDArray[np.int64]
    parameters: frozenset[int]  # addresses of the parameters of modules that were called


class InputInfo(NamedTuple):
    """The inputs of one call, one entry per schema argument.

    dims and strides hold a tuple of ints for a tensor, a tuple of such tuples for a list of tensors and () for
    anything else; types holds C++ type names; concrete holds the value of a non-tensor, None for a tensor. `keywords` are
    the keyword values of a record function, as pairs.
    """

    dims: tuple[Any, ...]
    types: tuple[str, ...]
    strides: tuple[Any, ...]
    concrete: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...] = ()

    def without_values(self) -> InputInfo:
        """The same inputs with the values of non-tensors left out, as where torch is told not to record them."""
        scalars = [kind in ("Scalar", "ScalarList") for kind in self.types]
        types = tuple("" if scalar else kind for kind, scalar in zip(self.types, scalars, strict=True))
        return self._replace(types=types, concrete=(None,) * len(self.concrete))


class EventStore(DerivedColumns):
    """A finished recording. Build it with `freeze` (from columns) or `from_rows` (from mappings, for tests), never directly.

    Rows are sorted by (start, -end), so a parent precedes its children; between equal intervals the one recorded
    later is the outer. All times are nanoseconds of the clock that read clock_start_ns when recording began.
    """

    _visible: weakref.ref[EventStore] | None = None
    _all_visible = False
    # Of a streamed file that recorded them; None elsewhere.
    storage_notes: StorageNotes | None = None

    def __init__(
        self, columns: Mapping[str, NDArray[Any]], tables: Mapping[str, Sequence[Any]], meta: Mapping[str, Any]
    ) -> None:
        self.__dict__.update(columns)
        self.names: Sequence[str] = tables["names"]
        self.threads: Sequence[ThreadInfo] = tables["threads"]
        self.input_infos: Sequence[InputInfo] = tables["input_infos"]
        self.stacks: Sequence[tuple[str, ...]] = tables["stacks"]
        self.modules: Sequence[str] = tables["modules"]
        self.overloads: Sequence[str] = tables["overloads"]
        self.row_details: Sequence[RowDetails] = tables.get("row_details", ())
        self.other_events: Sequence[OtherEvent] = tables.get("other_events", ())
        self.options: dict[str, Any] = meta["options"]
        self.metadata: dict[str, Any] = meta["metadata"]
        self.trace_id: str | None = meta["trace_id"]
        self.clock_start_ns: int = meta["clock_start_ns"]
        self.clock_end_ns: int = meta["clock_end_ns"]
        self.wall_start_ns: int = meta["wall_start_ns"]
        # (first row, clock_start_ns) of every recording joined into this one
        self.segments: tuple[tuple[int, int], ...] = meta["segments"]
        self.pid: int = meta["pid"]
        self._tables, self._meta = tables, meta

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles are made of: what was recorded; what is derived from it is derived again."""
        return {name: value for name, value in vars(self).items() if name in _KEPT or name not in _DERIVED}

    # ------------------------------------------------------------------ construction

    @classmethod
    def freeze(
        cls,
        columns: Mapping[str, ArrayLike],
        *,
        names: Sequence[str],
        threads: Sequence[ThreadInfo] = (ThreadInfo(1, "MainThread"),),
        input_infos: Sequence[InputInfo] = (),
        stacks: Sequence[tuple[str, ...]] = (),
        modules: Sequence[str] = (),
        overloads: Sequence[str] = (),
        row_details: Sequence[RowDetails] = (),
        other_events: Sequence[OtherEvent] = (),
        options: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        trace_id: str | None = None,
        clock_start_ns: int = 0,
        clock_end_ns: int | None = None,
        wall_start_ns: int = 0,
        step_marks: Sequence[int] = (),
        pid: int | None = None,
    ) -> EventStore:
        """Make a store from columns in recording order (a child before its parent; threads one after another).

        `columns` has everything of REQUIRED and what was recorded of OPTIONAL and MEMORY_COLUMNS. One number
        instead of an array holds for every row. Memory rows may come in any order; mem_total is the running sum
        of mem_bytes per device if left out. step_marks are the times of step() calls: without a `step`
        column a row's step is the number of marks before its start.
        """
        unknown = set(columns) - set(COLUMNS) - set(MEMORY_COLUMNS)
        if unknown:
            raise ValueError(f"unknown columns: {sorted(unknown)}")
        start = np.asarray(columns["start"], np.int64)
        end = np.asarray(columns["end"], np.int64)
        order = tree.row_order(start, end)
        ordered: dict[str, NDArray[Any]] = {"start": start[order], "end": end[order]}
        for column, dtype in REQUIRED.items():
            if column not in ordered:
                ordered[column] = _column(columns[column], dtype, order)
        for column, (dtype, missing) in OPTIONAL.items():
            ordered[column] = _column(columns.get(column, missing), dtype, order)
        if step_marks and "step" not in columns:
            marks = np.sort(np.asarray(step_marks, np.int64))
            ordered["step"] = np.searchsorted(marks, ordered["start"], side="right").astype(np.int32)
        ordered.update(_memory_columns(columns))
        last = int(end.max()) if len(end) else clock_start_ns
        store = cls(
            ordered,
            {
                "names": names,
                "threads": threads,
                "input_infos": input_infos,
                "stacks": stacks,
                "modules": modules,
                "overloads": overloads,
                "row_details": row_details,
                "other_events": other_events,
            },
            {
                "options": dict(options or {}),
                "metadata": dict(metadata or {}),
                "trace_id": trace_id,
                "clock_start_ns": clock_start_ns,
                "clock_end_ns": last if clock_end_ns is None else clock_end_ns,
                "wall_start_ns": wall_start_ns,
                "segments": ((0, clock_start_ns),),
                "pid": os.getpid() if pid is None else pid,
            },
        )
        return store._with_stray_memory()

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Mapping[str, Any]],
        memory: Iterable[Mapping[str, Any]] = (),
        **more: Any,
    ) -> EventStore:
        """Make a store from one mapping per event, in recording order; `more` goes to freeze().

        A row needs name (text), start and end; kind defaults to OP and thread (an operating-system id) to 1.
        It may have any other column, with `inputs` (InputInfo), `stack` (tuple of frames), `module`, `overload` and
        `details` (RowDetails) passed by value. A device row has `stream` (its number) instead of a thread, and `launch_thread`.
        A memory row has time, bytes and optionally addr, thread, device_type, device_index and reserved.
        """
        rows, memory = list(rows), list(memory)
        tables: dict[str, dict[Any, int]] = {
            t: {} for t in ("names", "threads", "infos", "stacks", "modules", "ops", "details")
        }

        def index(table: str, value: Any) -> int:
            return -1 if value is None else tables[table].setdefault(value, len(tables[table]))

        def thread(ident: int | None) -> int:
            return index("threads", None if ident is None else ThreadInfo(ident, f"thread {ident}"))

        def lane(row: Mapping[str, Any]) -> int:
            stream = row.get("stream")
            return thread(row.get("thread", 1)) if stream is None else index("threads", ThreadInfo(stream, f"stream {stream}"))

        columns: dict[str, Any] = {
            "name": [index("names", r["name"]) for r in rows],
            "kind": [r.get("kind", observer.OP) for r in rows],
            "tid": [lane(r) for r in rows],
            "start": [r["start"] for r in rows],
            "end": [r["end"] for r in rows],
            "shapes": [index("infos", r.get("inputs")) for r in rows],
            "stack": [index("stacks", r.get("stack")) for r in rows],
            "module": [index("modules", r.get("module")) for r in rows],
            "op": [index("ops", r.get("overload")) for r in rows],
            "fwd_tid": [thread(r.get("fwd_thread")) for r in rows],
            "launch_tid": [thread(r.get("launch_thread")) for r in rows],
            "details": [index("details", r.get("details")) for r in rows],
        }
        for column in ("seq", "step", "flops", "device_type", "device_index", "correlation", "launch_ns"):
            columns[column] = [r.get(column, OPTIONAL[column][1]) for r in rows]
        if memory:
            columns["mem_time"] = [m["time"] for m in memory]
            columns["mem_bytes"] = [m["bytes"] for m in memory]
            columns["mem_addr"] = [m.get("addr", 0) for m in memory]
            columns["mem_tid"] = [thread(m.get("thread", 1)) for m in memory]
            columns["mem_device_type"] = [m.get("device_type", 0) for m in memory]
            columns["mem_device_index"] = [m.get("device_index", -1) for m in memory]
            columns["mem_reserved"] = [m.get("reserved", 0) for m in memory]
        return cls.freeze(
            columns,
            names=list(tables["names"]),
            threads=list(tables["threads"]) or [ThreadInfo(1, "thread 1")],
            input_infos=list(tables["infos"]),
            stacks=list(tables["stacks"]),
            modules=list(tables["modules"]),
            overloads=list(tables["ops"]),
            row_details=list(tables["details"]),
            **more,
        )

    @classmethod
    def joined(cls, stores: Sequence[EventStore]) -> EventStore:
        """The rows of several recordings one after another, in that order, with the meta data of the first.

        Rows of such a store are not in order of start: each recording keeps its own order and its own time zero.
        """
        if len(stores) == 1:
            return stores[0]
        shared = ("names", "threads", "input_infos", "stacks", "modules", "row_details")
        tables: dict[str, dict[Any, int]] = {table: {} for table in shared}
        overloads: list[str] = []
        row_numbers = ["mem_event", "parent"]  # columns of row numbers
        if any(store.has_device_rows for store in stores):
            row_numbers.append("launcher")
        parts: dict[str, list[NDArray[Any]]] = {c: [] for c in (*COLUMNS, *MEMORY_COLUMNS, *row_numbers, "ids")}
        segments: list[tuple[int, int]] = []
        offset = 0
        table_of = {
            "name": "names",
            "tid": "threads",
            "fwd_tid": "threads",
            "launch_tid": "threads",
            "mem_tid": "threads",
            "shapes": "input_infos",
            "stack": "stacks",
            "module": "modules",
            "details": "row_details",
        }
        for store in stores:
            renumbered = {
                table: np.array([known.setdefault(v, len(known)) for v in getattr(store, table)] + [-1], np.int32)
                for table, known in tables.items()
            }
            for column, collected in parts.items():
                values = getattr(store, column)
                if column in table_of:
                    values = renumbered[table_of[column]][values]
                elif column == "op":
                    values = np.where(values >= 0, values + len(overloads), -1)
                elif column in row_numbers:
                    values = np.where(values >= 0, values + offset, -1)
                collected.append(values)
            overloads.extend(store.overloads)
            segments.extend((offset + first, origin) for first, origin in store.segments)
            offset += len(store)
        first = stores[0]
        columns = {column: np.concatenate(collected) for column, collected in parts.items()}
        joined: dict[str, Sequence[Any]] = {table: list(known) for table, known in tables.items()}
        others = [event for store in stores for event in store.other_events]
        everything = {**joined, "overloads": overloads, "other_events": others}
        return cls(columns, everything, {**first._meta, "segments": tuple(segments)})

    def _with_stray_memory(self) -> EventStore:
        """Fill mem_event; an allocation or a free outside every event gets a row of kind MEMORY of its own."""
        if not len(self.mem_time):
            self.mem_event = np.empty(0, np.int32)
            return self
        owner = tree.enclosing(self.host_tid, self.start, self.end, self.parent, self.mem_tid, self.mem_time)
        stray = np.flatnonzero(owner < 0)
        self.mem_event = owner
        if not len(stray):
            return self
        n, extra = len(self), len(stray)
        names = [*self.names, MEMORY_EVENT_NAME]
        time = self.mem_time[stray]
        own = {
            "name": len(names) - 1,
            "kind": observer.MEMORY,
            "tid": self.mem_tid[stray],
            "start": time,
            "end": time,
        }
        # A stray row lies in no other row, so it takes its place by time alone and changes no parent.
        place = np.searchsorted(self.start, time, side="left") + np.arange(extra)
        old = np.ones(n + extra, np.bool_)
        old[place] = False
        moved = np.append(np.flatnonzero(old), -1).astype(np.int32)
        columns: dict[str, NDArray[Any]] = {}
        for column in COLUMNS:
            before = getattr(self, column)
            values = np.full(n + extra, OPTIONAL[column][1] if column in OPTIONAL else 0, before.dtype)
            values[old] = before
            if column in own:
                values[place] = own[column]
            columns[column] = values
        parent = np.full(n + extra, -1, np.int32)
        parent[old] = moved[self.parent]
        columns["parent"] = parent
        columns.update({column: getattr(self, column) for column in MEMORY_COLUMNS})
        owner = moved[owner]
        owner[stray] = place
        columns["mem_event"] = owner
        return EventStore(columns, {**self._tables, "names": names}, self._meta)

    def with_overloads(self, op: NDArray[np.int32], overloads: Sequence[str]) -> EventStore:
        """A store that differs in its overloads; `op` is the new column, an index into `overloads`."""
        columns = {c: getattr(self, c) for c in (*COLUMNS, *MEMORY_COLUMNS, "mem_event", "parent")}
        return EventStore({**columns, "op": op}, {**self._tables, "overloads": overloads}, self._meta)

    @property
    def dropped_events(self) -> int:
        """How many events the recorder dropped because its buffer was full."""
        count = self.metadata.get("dropped_events", 0)
        return count if isinstance(count, int) and count > 0 else 0

    # ------------------------------------------------------------------ selections of rows

    @property
    def visible(self) -> EventStore:
        """The rows of events() and key_averages(); traces have all rows.

        As in torch, HIDDEN_NAMES are left out, and every only child named like its parent: its own children and its
        memory become its parent's. So do those of imports that an import of this runtime's modules made. First uses of ops
        are left out, too; their time is no row's self time.
        """
        if self._all_visible:
            return self
        visible = self._visible() if self._visible is not None else None
        if visible is None:
            visible = self._without_hidden()
            self._all_visible = visible is self
            # A selection refers to its store: a strong reference back would keep both until a garbage collection.
            self._visible = None if visible is self else weakref.ref(visible)
        return visible

    @property
    def visible_with_first_uses(self) -> EventStore:
        """The rows that a report shows: those of `visible`, and first uses of ops."""
        first_uses = np.flatnonzero(self.is_first_use)
        visible = self.visible
        return self._select_rows(np.union1d(visible.rows_in(self), first_uses)) if len(first_uses) else visible

    @property
    def without_first_uses(self) -> EventStore:
        """The rows that torch has, too: all but first uses of ops."""
        return self._select_rows(np.flatnonzero(~self.is_first_use))

    def drop_values_of_inputs(self) -> None:
        """Forget the values of arguments that are no tensors, for all selections of rows that are made from now on, too."""
        self.input_infos = [info.without_values() for info in self.input_infos]
        self._tables = {**self._tables, "input_infos": self.input_infos}

    def rows_in(self, whole: EventStore) -> NDArray[np.intp]:
        """The row numbers that the rows of this selection have in the store that it was made of."""
        part, rows = self, np.arange(len(self), dtype=np.intp)
        while part is not whole:
            assert part._whole is not None
            over, kept = part._whole
            assert isinstance(over, EventStore)
            part, rows = over, kept[rows]
        return rows

    def _without_hidden(self) -> EventStore:
        hidden = [i for i, text in enumerate(self.names) if text in HIDDEN_NAMES]
        left_out = np.isin(self.name, hidden) | self.is_first_use | self.is_inner_import
        named = self._select_rows(np.flatnonzero(~left_out)) if left_out.any() else self
        return named._select_rows(tree.without_only_namesakes(named.parent, named.label))

    def _select_rows(self, rows: NDArray[np.intp]) -> EventStore:
        """A store of these rows. Children and memory of the others belong to their nearest ancestor among these.

        So does the self time of the others, but for first uses of ops.
        """
        if len(rows) == len(self):
            return self
        near = tree.nearest_kept(self.parent, rows)
        columns = {column: getattr(self, column)[rows] for column in COLUMNS}
        columns.update({column: getattr(self, column) for column in MEMORY_COLUMNS})
        columns["parent"] = near[self.parent[rows]]
        columns["mem_event"] = near[self.mem_event]
        if self.has_device_rows:
            columns["launcher"] = near[self.launcher[rows]]
        segments = tuple((int(np.searchsorted(rows, first)), origin) for first, origin in self.segments)
        selected = EventStore(columns, self._tables, {**self._meta, "segments": segments})
        selected._whole = (self, rows)
        if self.is_first_use.any() or self.left_out_ns.any():
            others = self.is_first_use.copy()
            others[rows] = False
            spent = np.where(others, self.self_ns, self.left_out_ns)
            selected.left_out_ns = tree.sums(near[:-1], spent, len(rows))
        return selected


# Attributes that copies leave out, and derived columns that a selection of rows or a joined store has as its own.
_CACHES = (name for name, value in vars(DerivedColumns).items() if isinstance(value, cached_property))
_DERIVED = frozenset({"_visible", "_all_visible", *_CACHES})
_KEPT = frozenset({"parent", "launcher", "ids", "left_out_ns"})


def _column(recorded: ArrayLike, dtype: IntType, order: NDArray[np.intp]) -> NDArray[Any]:
    """A column in row order. One of equal values is broadcast from a single one: read-only, and without memory per row."""
    values = np.asarray(recorded)
    if values.ndim and len(values) and (values == values[0]).all():
        values = values[0]
    return values.astype(dtype, copy=False)[order] if values.ndim else np.broadcast_to(values.astype(dtype), len(order))


def _memory_columns(columns: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
    time = np.asarray(columns.get("mem_time", ()), np.int64)
    order = np.argsort(time, kind="stable")
    ordered = {c: _column(columns.get(c, missing), dtype, order) for c, (dtype, missing) in MEMORY_COLUMNS.items()}
    ordered["mem_time"] = time[order]
    if "mem_total" not in columns:
        total = np.zeros(len(order), np.int64)
        devices = ordered["mem_device_type"].astype(np.int64) << 32 | ordered["mem_device_index"].astype(np.uint32)
        for device in distinct_values(devices):
            total[devices == device] = np.cumsum(ordered["mem_bytes"][devices == device])
        ordered["mem_total"] = total
    return ordered
