"""From what a Recorder holds to an EventStore: flat lists become columns, notes become tables. Runs after stop()."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._dispatch import observer
from . import _alloc, _tree
from ._capture import MOST_ARGUMENTS, TOUCH_WIDTH, decode
from ._device_recorder import DeviceRecorder
from ._memory_profiler import StorageNotes
from ._modules import ModuleInfo, module_path
from ._python_rows import PythonRows, python_rows
from ._recorder import SPAN_BASE, Options, Recorder, Tap
from ._store import EventStore, InputInfo, ThreadInfo
from ._task_lanes import lane_at, lanes_of_rows
from .flops import flops_of

Columns = dict[str, Any]  # arrays, or one number for all rows
_CHUNK = 1 << 16
_FIRST_TASK = 1_000_000_000  # asyncio tasks are numbered from here, above the operating system's threads


def freeze(recorder: Recorder, *, release: bool = False, device: DeviceRecorder | None = None, **meta: Any) -> EventStore:
    """Everything recorded so far as a store; `meta` goes to EventStore.freeze. A recorder that runs goes on.

    With `release` the recorder gives its rows away as they are read, so that they are not in memory twice.
    """
    end = recorder.clock_end_ns if recorder.clock_end_ns is not None else recorder.clock()
    tables = Tables()
    with_lanes = any(tap.tasks is not None for tap in recorder.taps)
    parts = [_thread_columns(recorder.options, tap, tables, end, release, with_lanes) for tap in recorder.taps]
    columns: Columns = {}
    if len(parts) == 1:
        columns = {**parts[0], "tid": np.int32(0)}
    elif parts:
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns["tid"] = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part["start"]) for part in parts])
    else:
        columns = {name: np.empty(0, np.int64) for name in ("name", "kind", "tid", "start", "end", "seq", "op", "shapes")}
    threads = [ThreadInfo(tap.ident, tap.name) for tap in recorder.taps]
    lanes = task_lanes([None if tap.tasks is None else tap.tasks.names for tap in recorder.taps], columns, threads)
    columns["step"] = steps(recorder, columns["start"])
    columns["fwd_tid"] = forward_threads(columns)
    if recorder.options.with_flops:
        columns["flops"] = tables.flops(columns["op"], columns["shapes"])
    if recorder.memory is not None:
        columns.update(_memory_columns(recorder.memory.rows, threads))
        move_memory([None if tap.tasks is None else tap.tasks.turns() for tap in recorder.taps], columns, lanes)
    _add_foreign(recorder, columns, threads, tables)
    if device is not None:
        device.added(columns, threads, tables.name, lambda start: steps(recorder, start))
    store = EventStore.freeze(
        columns,
        names=list(tables.names),
        threads=threads,
        input_infos=tables.infos,
        stacks=tables.stacks,
        modules=list(tables.modules),
        overloads=list(observer.op_overloads),
        clock_start_ns=recorder.clock_start_ns,
        clock_end_ns=end,
        wall_start_ns=recorder.wall_start_ns,
        **meta,
    )
    if recorder.options.with_modules:
        inherit(store, "module")
    return store


def storage_notes(recorder: Recorder) -> StorageNotes:
    """What ops did to which storage, and which storages are parameters."""
    rows = [value for tap in recorder.taps for value in tap.touched]
    table = np.fromiter(rows, np.int64, len(rows)).reshape(-1, TOUCH_WIDTH)
    # The last column holds the op and the argument's position: was it written to?
    parameters = frozenset().union(*(tap.modules.parameters for tap in recorder.taps if tap.modules is not None))
    return StorageNotes(with_written(table), parameters)


def with_written(touched: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of what ops touched, with 1 where it was written to in place of op and position."""
    places, which = np.unique(touched[:, 3], return_inverse=True)
    written = np.array([_is_written(*divmod(place, MOST_ARGUMENTS)) for place in places.tolist()], np.int64)
    return np.column_stack([touched[:, :3], written[which]])


def _is_written(op: int, position: int) -> bool:
    arguments = observer.op_schemas[op].arguments
    return position < len(arguments) and bool(arguments[position].written)


class Tables:
    """What the columns of all threads point into."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.infos: list[InputInfo] = []
        self.stacks: list[tuple[str, ...]] = []
        self.modules: dict[str, int] = {}
        self._info_numbers: dict[Any, int] = {}

    def name(self, text: str) -> int:
        """The number of a name."""
        return self.names.setdefault(text, len(self.names))

    def info(self, key: Any) -> int:
        """The number of some inputs, noted or decoded."""
        number = self._info_numbers.get(key)
        if number is None:
            number = self._info_numbers[key] = len(self.infos)
            self.infos.append(key if isinstance(key, InputInfo) else decode(key))
        return number

    def flops(self, op: NDArray[Any], shapes: NDArray[Any]) -> NDArray[np.int64]:
        """FLOPs of every row: worked out once per op and kind of input."""
        counted = np.flatnonzero((op >= 0) & (shapes >= 0))
        pairs = op[counted] * (len(self.infos) + 1) + shapes[counted]
        distinct, which = np.unique(pairs, return_inverse=True)
        ops, infos = np.divmod(distinct, len(self.infos) + 1)
        amounts = [flops_of(one, self.infos[info]) for one, info in zip(ops.tolist(), infos.tolist(), strict=True)]
        found = np.zeros(len(op), np.int64)
        if amounts:
            found[counted] = np.array(amounts, np.int64)[which]
        return found


def _thread_columns(options: Options, tap: Tap, tables: Tables, end: int, release: bool, with_lanes: bool) -> Columns:
    """The rows of one thread in the order in which they ended: ops and spans, then modules, then Python calls."""
    rows = _moved(tap.rows) if release else np.fromiter(tap.rows[:], np.int64)
    rows = rows.reshape(-1, tap.width)
    columns = op_columns(tap, np.concatenate([*tap.kept, rows]) if tap.kept else rows, tables)
    if with_lanes:
        columns["lane"] = _lanes(tap, columns)
    python = python_rows(tap.stretches(end), end) if options.with_stack else None
    if options.captures_arguments:
        columns["shapes"] = renumbered(columns["shapes"], [tables.info(key) for key in list(tap.keys)])
    modules = module_columns(tap.modules.infos, tap.modules.calls(end), tables) if tap.modules is not None else None
    return with_calls(columns, modules, python, tables, options.with_modules)


def with_calls(
    columns: Columns, modules: Columns | None, python: PythonRows | None, tables: Tables, with_modules: bool
) -> Columns:
    """The rows of one thread with the modules they ran in, the stacks they began with, and rows for Python calls."""
    if modules is not None:
        if with_modules:
            columns["module"] = modules_at(columns["start"], modules)
        if python is not None:
            # Outer calls last: of equal times the row that comes later is the outer one.
            columns = _joined(columns, {name: modules[name][::-1] for name in ("name", "kind", "start", "end")})
    if python is not None:
        _fit_scopes(columns, python)
        columns["stack"] = renumbered(python.stack_at(columns["start"]), _added(tables.stacks, python.stacks))
        columns = _joined(columns, _python_columns(python, tables))
    return columns


def op_columns(tap: Tap, table: NDArray[np.int64], tables: Tables) -> Columns:
    """Columns of rows that a tap has taken down."""
    ident = table[:, 0]
    is_span = ident >= SPAN_BASE
    span_names, span_kinds = np.zeros(max(tap.spans.made, 1), np.int32), np.zeros(max(tap.spans.made, 1), np.int8)
    for (text, of_kind), number in list(tap.spans.items()):
        if number - SPAN_BASE < len(span_names):  # one may be numbered just now, by the thread itself
            span_names[number - SPAN_BASE], span_kinds[number - SPAN_BASE] = tables.name(text), of_kind
    name, kind = np.empty(len(ident), np.int32), np.zeros(len(ident), np.int8)
    if is_span.any():
        which = ident[is_span] - SPAN_BASE
        name[is_span], kind[is_span] = span_names[which], span_kinds[which]
    ops = ident[~is_span]
    present = np.flatnonzero(np.bincount(ops)) if len(ops) else ops
    op_names = np.zeros(int(present[-1]) + 1 if len(present) else 1, np.int32)
    op_names[present] = [tables.name(observer.op_names[op]) for op in present.tolist()]
    name[~is_span] = op_names[ops]
    columns = {"name": name, "kind": kind, "start": table[:, 1], "end": table[:, 2], "seq": table[:, 3],
               "op": np.where(is_span, -1, ident).astype(np.int32)}
    if tap.width > 4:
        columns["shapes"] = table[:, 4]
    return columns


def _moved(values: list[int]) -> NDArray[np.int64]:
    """The numbers of a list as an array. The list is emptied on the way, so that not all are in memory twice."""
    last = len(values)  # an op that was under way when the recording ended may still add a row, which comes too late
    table = np.empty(last, np.int64)
    while last:
        first = max(0, last - _CHUNK)
        table[first:last] = np.fromiter(values[first:last], np.int64)
        del values[first:]
        last = first
    return table


def renumbered(values: NDArray[Any], numbers: list[int]) -> NDArray[np.int64]:
    """Each value replaced by numbers[value]; -1 stays."""
    found: NDArray[np.int64] = np.array([*numbers, -1], np.int64)[values]
    return found


def _added(table: list[Any], more: list[Any]) -> list[int]:
    first = len(table)
    table.extend(more)
    return list(range(first, len(table)))


def _joined(columns: Columns, more: Columns) -> Columns:
    """The rows of both; a column that the second does not have is -1 there."""
    count = len(more["start"])
    return {name: np.concatenate([values, more[name] if name in more else np.full(count, -1, np.int64)])
            for name, values in columns.items()}


def module_columns(infos: Sequence[ModuleInfo], table: NDArray[np.int64], tables: Tables) -> Columns:
    """Module calls (module, start, end) in order of start, with the path of each as a column of its own."""
    table = table[_tree.row_order(table[:, 1], table[:, 2])]
    module, start, finish = table[:, 0], table[:, 1], table[:, 2]
    parent = _tree.parents(np.zeros(len(table), np.int32), start, finish)
    paths: list[int] = []
    known: dict[tuple[int, int, int], int] = {}
    texts = list(tables.modules)
    for number, above in zip(module.tolist(), parent.tolist(), strict=True):
        caller, outer = (int(module[above]), paths[above]) if above >= 0 else (-1, -1)
        path = known.get((number, caller, outer))
        if path is None:
            text = module_path(infos, number, caller, texts[outer] if above >= 0 else "")
            path = known[number, caller, outer] = tables.modules.setdefault(text, len(tables.modules))
            texts = list(tables.modules)
        paths.append(path)
    names = [tables.name(f"nn.Module: {info.label}") for info in infos]
    return {"name": renumbered(module, names), "kind": np.full(len(table), observer.MODULE, np.int64),
            "start": start, "end": finish, "parent": parent, "path": np.array(paths, np.int64)}


def modules_at(moments: NDArray[np.int64], modules: Columns) -> NDArray[np.int64]:
    """For each moment the path of the innermost module that was running, -1 if none was."""
    one = np.zeros(len(modules["start"]), np.int32)
    found = _tree.enclosing(one, modules["start"], modules["end"], modules["parent"],
                            np.zeros(len(moments), np.int32), moments)
    return np.append(modules["path"], -1)[found]


def _python_columns(python: PythonRows, tables: Tables) -> Columns:
    names = [tables.name(text) for text in python.names]
    return {"name": renumbered(python.name, names), "kind": np.full(len(python.start), observer.PYTHON, np.int64),
            "start": python.start, "end": python.end}


def task_lanes(
    tasks: Sequence[Mapping[int, str] | None], columns: Columns, threads: list[ThreadInfo]
) -> dict[tuple[int, int], int]:
    """Give tasks whose scopes met those of others a thread each, by (thread, lane). tasks: names by lane, per thread."""
    made: dict[tuple[int, int], int] = {}
    lane = columns.pop("lane", None)
    if lane is None or not (lane > 0).any():
        return made
    tid = columns["tid"] = np.broadcast_to(columns["tid"], len(lane)).copy()
    for at, names in enumerate(tasks):
        if names is None:
            continue
        for one in np.unique(lane[(lane > 0) & (tid == at)]).tolist():
            made[at, one] = len(threads)
            tid[(lane == one) & (tid == at)] = len(threads)
            threads.append(ThreadInfo(_FIRST_TASK + one, f"{threads[at].name}: {names[one]}"))
    return made


def _lanes(tap: Tap, columns: Columns) -> NDArray[np.int64]:
    if tap.tasks is None:
        return np.zeros(len(columns["start"]), np.int64)
    return lanes_of_rows(tap.tasks.turns(), columns["kind"], columns["start"], columns["end"])


def move_memory(turns: Sequence[Any], columns: Columns, lanes: dict[tuple[int, int], int]) -> None:
    """What a task on a lane of its own allocated belongs there, too. turns: rows of moment and lane, per thread."""
    for at in {thread for thread, _ in lanes}:
        rows = np.flatnonzero(columns["mem_tid"] == at)
        if turns[at] is not None and len(rows):
            lane = lane_at(turns[at], columns["mem_time"][rows])
            columns["mem_tid"][rows] = [lanes.get((at, one), at) for one in lane.tolist()]


def _add_foreign(recorder: Recorder, columns: Columns, threads: list[ThreadInfo], tables: Tables) -> None:
    """Rows of other processes, each process on a lane of its own. What began before the recording is not its own."""
    lanes: dict[int, int] = {}
    for ident, name, given, foreign in recorder.foreign:
        more = foreign_columns(recorder, given, foreign, tables)
        if not len(more["start"]):
            continue
        if ident not in lanes:
            lanes[ident] = len(threads)
            threads.append(ThreadInfo(ident, name))
        more["tid"] = np.full(len(more["start"]), lanes[ident], np.int64)
        count = len(columns["start"])
        for column, values in columns.items():
            if not column.startswith("mem_"):
                other = more[column] if column in more else np.full(len(more["start"]), -1, np.int64)
                columns[column] = np.concatenate([np.broadcast_to(values, count), other])


def foreign_columns(recorder: Recorder, given: Columns, foreign: Mapping[str, list[Any]], tables: Tables) -> Columns:
    """The rows that another process recorded during this recording, pointing into its tables."""
    kept = given["start"] >= recorder.clock_start_ns
    more = {column: values[kept] for column, values in given.items()}
    more["name"] = renumbered(more["name"], [tables.name(text) for text in foreign["names"]])
    more["shapes"] = renumbered(more["shapes"], [tables.info(info) for info in foreign["input_infos"]])
    more["stack"] = renumbered(more["stack"], _added(tables.stacks, foreign["stacks"]))
    modules = [tables.modules.setdefault(path, len(tables.modules)) for path in foreign["modules"]]
    more["module"] = renumbered(more["module"], modules)
    more["step"] = np.broadcast_to(steps(recorder, more["start"]), len(more["start"]))
    return more


def _fit_scopes(columns: Columns, python: PythonRows) -> None:
    """Let no scope overlap a visible call partially.

    A scope that was opened inside a call that returned before it (a helper that enters a record_function for its
    caller) begins where that call ends; one that is closed inside a later call ends where that call begins.
    """
    # Those on a lane of their own have no calls around them.
    chosen = ((columns["kind"] == observer.SCOPE) | (columns["kind"] == observer.STEP)) & (columns.get("lane", 0) <= 0)
    scopes = np.flatnonzero(chosen)
    if not len(scopes) or not len(python.start):
        return
    order = _tree.row_order(python.start, python.end)
    start, end = python.start[order], python.end[order]
    one = np.zeros(len(start), np.int32)
    parent = _tree.parents(one, start, end)
    above = np.append(parent, np.int32(-1))
    at = np.zeros(len(scopes), np.int32)
    opened, closed = columns["start"][scopes], columns["end"][scopes]
    begin, finish = opened.copy(), closed.copy()
    call = _tree.enclosing(one, start, end, parent, at, opened)
    while (shorter := (call >= 0) & (end[call] < closed)).any():
        begin[shorter] = end[call[shorter]]
        call = np.where(shorter, above[call], -1)
    call = _tree.enclosing(one, start, end, parent, at, closed)
    while (later := (call >= 0) & (start[call] > opened)).any():
        finish[later] = start[call[later]]
        call = np.where(later, above[call], -1)
    columns["start"], columns["end"] = columns["start"].copy(), columns["end"].copy()
    columns["start"][scopes], columns["end"][scopes] = begin, np.maximum(finish, begin)


def steps(recorder: Recorder, start: NDArray[np.int64]) -> Any:
    """The step that each row began in."""
    marks = recorder.steps[:]
    moments = np.array([moment for moment, _ in marks], np.int64)
    return steps_at(moments, np.array([number for _, number in marks] or [0], np.int32), start)


def steps_at(moments: NDArray[np.int64], numbers: NDArray[Any], start: NDArray[np.int64]) -> Any:
    """The step that each row began in, from when each step began and its number."""
    if len(numbers) == 1:
        return numbers[0]
    at = np.searchsorted(moments, start, side="right") - 1
    return numbers[np.maximum(at, 0)]


def forward_threads(columns: Columns) -> Any:
    """fwd_tid of backward rows: the thread that recorded the op with their number, their own if none did."""
    kind, tid, seq = columns["kind"], columns["tid"], columns["seq"]
    backward = np.flatnonzero(((kind == observer.BACKWARD) | (kind == observer.ENGINE)) & (seq >= 0))
    if not len(backward):
        return np.int32(-1)
    forward_tid = np.full(len(kind), -1, np.int32)
    tid = np.broadcast_to(tid, len(kind))
    forward_tid[backward] = tid[backward]
    if tid.max() > 0:
        ops = np.flatnonzero((kind == observer.OP) & (seq >= 0))
        own = set(zip(tid[ops].tolist(), seq[ops].tolist(), strict=True))
        elsewhere = dict(zip(seq[ops].tolist(), tid[ops].tolist(), strict=True))
        for row, thread, number in zip(backward.tolist(), tid[backward].tolist(), seq[backward].tolist(), strict=True):
            if (thread, number) not in own:
                forward_tid[row] = elsewhere.get(number, thread)
    return forward_tid


def _memory_columns(rows: dict[int, list[int]], threads: list[ThreadInfo]) -> Columns:
    """Allocations and frees of all threads, by operating-system thread id."""
    known = {thread.ident: number for number, thread in enumerate(threads)}
    tables = {ident: np.fromiter(own[:], np.int64).reshape(-1, _alloc.WIDTH) for ident, own in list(rows.items())}
    for ident in tables:
        if ident not in known:  # a thread that allocated and ran no op
            known[ident] = len(threads)
            threads.append(ThreadInfo(ident, f"thread {ident}"))
    table = np.concatenate([*tables.values(), np.empty((0, _alloc.WIDTH), np.int64)])
    numbers = np.array([known[ident] for ident in tables], np.int64)
    thread = np.repeat(numbers, [len(own) for own in tables.values()])
    kept, size = of_this_recording(table)
    time, _, address = table[kept].T
    return {"mem_time": time, "mem_bytes": size[kept], "mem_addr": address, "mem_tid": thread[kept]}


def of_this_recording(table: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which rows to show, and the bytes of each, negative where they were freed.

    Not shown is the end of memory whose beginning was not recorded, as in torch: the running total would fall below zero.
    """
    time, size, address = table.T
    order = np.lexsort((time, address))
    begins, place = size[order] >= 0, address[order]
    known = begins.copy()
    known[1:] |= begins[:-1] & (place[1:] == place[:-1])
    kept, amount = np.empty(len(table), np.bool_), size.copy()
    kept[order] = known
    ends = np.flatnonzero(known & ~begins)
    amount[order[ends]] = -size[order[ends - 1]]
    return kept, amount


def inherit(store: EventStore, column: str) -> None:
    """Give backward rows, and what runs inside them, the forward op's entry of a column."""
    forward, backward = store.links
    values: NDArray[Any] = np.array(getattr(store, column))
    given = np.zeros(len(store), np.bool_)
    given[backward] = True
    values[backward] = values[forward]
    engine = store.parent[backward]
    outer = (engine >= 0) & (store.kind[engine] == observer.ENGINE)
    values[engine[outer]] = values[backward[outer]]
    given[engine[outer]] = True
    above = _tree.nearest_ancestor(store.parent, given)
    inner = np.flatnonzero((above >= 0) & ~given)
    values[inner] = values[above[inner]]
    setattr(store, column, values)

