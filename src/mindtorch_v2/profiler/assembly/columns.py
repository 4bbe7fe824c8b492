"""From the columns of each thread to those of a whole recording: pure functions, used by `freeze` and by readers of files.

They add modules, Python calls, stacks, FLOPs, asyncio lanes, and the links from backward rows to forward ops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..recording.asyncio_lanes import Turns, lane_at
from ..recording.module_calls import ModuleInfo, module_path
from ..recording.op_inputs import decode
from ..store import tree
from ..store.distinct import distinct_values
from ..store.store import EventStore, InputInfo, RowDetails, ThreadInfo
from .flops import flops_of
from .python_rows import PythonRows

Columns = dict[str, Any]  # arrays, or one number for all rows
PerRow = NDArray[np.integer[Any]] | np.integer[Any]  # an array, or one number for all rows
_MARGIN_NS = 2
_FIRST_TASK = 1_000_000_000  # asyncio tasks are numbered from here, above the operating system's threads


class Tables:
    """The names, inputs, stacks and module paths that columns refer to by number."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.infos: list[InputInfo] = []
        self.stacks: list[tuple[str, ...]] = []
        self.modules: dict[str, int] = {}
        self.details: list[RowDetails] = []
        self._info_numbers: dict[Any, int] = {}
        self.hidden_calls = 0  # Python calls that cost time and have no rows

    def name(self, text: str) -> int:
        """The number of a name."""
        return self.names.setdefault(text, len(self.names))

    def info(self, key: Any) -> int:
        """The number of the inputs that a key stands for, or of an InputInfo."""
        number = self._info_numbers.get(key)
        if number is None:
            number = self._info_numbers[key] = len(self.infos)
            self.infos.append(decode(key))
        return number

    def detail(self, details: RowDetails) -> int:
        """The number of a row's details, of which no two rows have the same."""
        self.details.append(details)
        return len(self.details) - 1

    def flops(self, op: NDArray[Any], shapes: NDArray[Any]) -> NDArray[np.int64]:
        """FLOPs of every row, computed once per op and entry of `infos`."""
        counted = np.flatnonzero((op >= 0) & (shapes >= 0))
        pairs = op[counted] * (len(self.infos) + 1) + shapes[counted]
        distinct, which = np.unique(pairs, return_inverse=True)
        ops, infos = np.divmod(distinct, len(self.infos) + 1)
        amounts = [flops_of(number, self.infos[info]) for number, info in zip(ops.tolist(), infos.tolist(), strict=True)]
        flops = np.zeros(len(op), np.int64)
        if amounts:
            flops[counted] = np.array(amounts, np.int64)[which]
        return flops


def with_calls(
    columns: Columns,
    modules: Columns | None,
    python: PythonRows | None,
    tables: Tables,
    with_modules: bool,
    adjust_steps: bool = False,
) -> Columns:
    """The rows of one thread with the module and the stack of each, and with rows for module calls and Python calls.

    adjust_steps: have steps begin and end with the calls that their ends lie in, instead of overlapping them.
    """
    if modules is not None:
        if with_modules:
            columns["module"] = modules_at(columns["start"], modules)
        if python is not None:
            # Outer calls last: of equal times the row that comes later is the outer one.
            columns = _joined(columns, {name: modules[name][::-1] for name in ("name", "kind", "start", "end")})
    if python is not None:
        _fit_scopes(columns, python)
        if adjust_steps:
            _fit_steps(columns, python)
        tables.hidden_calls += python.hidden
        stacks = added(tables.stacks, python.stacks)
        columns["stack"] = renumbered(python.stack_at(columns["start"]), stacks)
        columns = _joined(columns, {**_python_columns(python, tables), "stack": renumbered(python.caller, stacks)})
    return columns


def renumbered(values: NDArray[Any], numbers: list[int]) -> NDArray[np.int64]:
    """Each value replaced by numbers[value]; -1 stays."""
    new: NDArray[np.int64] = np.array([*numbers, -1], np.int64)[values]
    return new


def added(table: list[Any], more: list[Any]) -> list[int]:
    """Append entries to a table and return their numbers."""
    first = len(table)
    table.extend(more)
    return list(range(first, len(table)))


def _joined(columns: Columns, more: Columns) -> Columns:
    """The rows of both; where `more` lacks a column, its rows have -1."""
    count = len(more["start"])
    return {
        name: np.concatenate([values, more[name] if name in more else np.full(count, -1, np.int64)])
        for name, values in columns.items()
    }


def module_columns(
    infos: Sequence[ModuleInfo], table: NDArray[np.int64], tables: Tables, most_text: int | None = None
) -> Columns:
    """Rows of module, start and end as columns in order of start, with parent and module path.

    most_text: ValueError if all paths together have more characters than that.
    """
    table = table[tree.row_order(table[:, 1], table[:, 2])]
    module, start, finish = table[:, 0], table[:, 1], table[:, 2]
    parent = tree.parents(np.zeros(len(table), np.int32), start, finish)
    paths: list[int] = []
    known: dict[tuple[int, int, int], int] = {}
    texts = list(tables.modules)
    length = 0
    for number, above in zip(module.tolist(), parent.tolist(), strict=True):
        caller, outer = (int(module[above]), paths[above]) if above >= 0 else (-1, -1)
        path = known.get((number, caller, outer))
        if path is None:
            text = module_path(infos, number, caller, texts[outer] if above >= 0 else "")
            length += len(text)
            if most_text is not None and length > most_text:
                raise ValueError("paths of modules are too long")
            path = known[number, caller, outer] = tables.modules.setdefault(text, len(texts))
            if path == len(texts):
                texts.append(text)
        paths.append(path)
    names = [tables.name(f"nn.Module: {info.label}") for info in infos]
    return {
        "name": renumbered(module, names),
        "kind": np.full(len(table), observer.MODULE, np.int64),
        "start": start,
        "end": finish,
        "parent": parent,
        "path": np.array(paths, np.int64),
    }


def modules_at(moments: NDArray[np.int64], modules: Columns) -> NDArray[np.int64]:
    """The number of the path of the innermost module that was running at each moment, -1 if none was."""
    thread = np.zeros(len(modules["start"]), np.int32)
    at = np.zeros(len(moments), np.int32)
    call = tree.enclosing(thread, modules["start"], modules["end"], modules["parent"], at, moments)
    return np.append(modules["path"], -1)[call]


def _python_columns(python: PythonRows, tables: Tables) -> Columns:
    names = [tables.name(text) for text in python.names]
    return {
        "name": renumbered(python.name, names),
        "kind": np.full(len(python.start), observer.PYTHON, np.int64),
        "start": python.start,
        "end": python.end,
    }


def task_lanes(
    tasks: Sequence[Mapping[int, str] | None], columns: Columns, threads: list[ThreadInfo]
) -> dict[tuple[int, int], int]:
    """Append a thread for each lane that rows are on, and move those rows there; returns the new threads by (thread, lane).

    tasks: per thread the names of tasks by lane, None for a thread without.
    """
    lanes: dict[tuple[int, int], int] = {}
    lane = columns.pop("lane", None)
    if lane is None or not (lane > 0).any():
        return lanes
    tid = columns["tid"] = np.broadcast_to(columns["tid"], len(lane)).copy()
    for at, names in enumerate(tasks):
        if names is None:
            continue
        for number in distinct_values(lane[(lane > 0) & (tid == at)]).tolist():
            lanes[at, number] = len(threads)
            tid[(lane == number) & (tid == at)] = len(threads)
            threads.append(ThreadInfo(_FIRST_TASK + number, f"{threads[at].name}: {names[number]}"))
    return lanes


def move_memory(turns: Sequence[Turns | None], columns: Columns, lanes: dict[tuple[int, int], int]) -> None:
    """Move memory rows to the lane of the task that allocated. turns: per thread its rows of moment and lane, or None."""
    for at in {thread for thread, _ in lanes}:
        rows = np.flatnonzero(columns["mem_tid"] == at)
        noted = turns[at]
        if noted is not None and len(rows):
            lane = lane_at(noted, columns["mem_time"][rows])
            columns["mem_tid"][rows] = [lanes.get((at, number), at) for number in lane.tolist()]


def _fit_scopes(columns: Columns, python: PythonRows) -> None:
    """Change times so that no scope overlaps a visible call partially. Steps keep their times: see `tree.beside_steps`.

    A scope that was opened inside a call that returned before it (a helper that enters a record_function for its
    caller) begins where that call ends; one that is closed inside a later call ends where that call begins.
    """
    # Those on a lane of their own have no calls around them.
    _fit(columns, python, (columns["kind"] == observer.SCOPE) & (columns.get("lane", 0) <= 0), keep_last_call=False)


def _fit_steps(columns: Columns, python: PythonRows) -> None:
    """Change times so that no step overlaps a visible call partially.

    A loop's body that ends with step() is a call in which one step ends and the next begins: the boundary moves behind its
    end, by so much that readers of a trace, which add rounded numbers, see it there.
    """
    _fit(columns, python, columns["kind"] == observer.STEP, keep_last_call=True)


def _fit(columns: Columns, python: PythonRows, chosen: NDArray[np.bool_], *, keep_last_call: bool) -> None:
    """Move the start of ranges out of the calls that end before them, and their end out of the calls that begin after them.

    keep_last_call: a range ends where the call in which it was closed ends, not where that begins.
    """
    ranges = np.flatnonzero(chosen)
    if not len(ranges) or not len(python.start):
        return
    order = tree.row_order(python.start, python.end)
    start, end = python.start[order], python.end[order]
    thread = np.zeros(len(start), np.int32)
    parent = tree.parents(thread, start, end)
    above = np.append(parent, np.int32(-1))
    at = np.zeros(len(ranges), np.int32)
    margin = _MARGIN_NS if keep_last_call else 0
    opened, closed = columns["start"][ranges], columns["end"][ranges]
    begin, finish = opened.copy(), closed.copy()
    call = tree.enclosing(thread, start, end, parent, at, opened)
    while (shorter := (call >= 0) & (end[call] < closed)).any():
        begin[shorter] = end[call[shorter]] + margin
        call = np.where(shorter, above[call], -1)
    call = tree.enclosing(thread, start, end, parent, at, closed)
    while (later := (call >= 0) & (start[call] > opened)).any():
        finish[later] = end[call[later]] + margin if keep_last_call else start[call[later]]
        call = np.where(later, above[call], -1)
    columns["start"], columns["end"] = columns["start"].copy(), columns["end"].copy()
    columns["start"][ranges], columns["end"][ranges] = begin, np.maximum(finish, begin)


def steps_at(moments: NDArray[np.int64], numbers: NDArray[np.integer[Any]], start: NDArray[np.int64]) -> PerRow:
    """The step in which each row began. moments, numbers: start time and number of each step."""
    if len(numbers) == 1:
        only: np.integer[Any] = numbers[0]
        return only
    at = np.searchsorted(moments, start, side="right") - 1
    return numbers[np.maximum(at, 0)]


def forward_threads(columns: Columns) -> PerRow:
    """fwd_tid of backward rows: the thread of the forward op with their sequence number, their own if there is none."""
    kind, tid, seq = columns["kind"], columns["tid"], columns["seq"]
    backward = np.flatnonzero(((kind == observer.BACKWARD) | (kind == observer.ENGINE)) & (seq >= 0))
    if not len(backward):
        return np.int32(-1)
    forward_tid = np.full(len(kind), -1, np.int32)
    tid = np.broadcast_to(tid, len(kind))
    forward_tid[backward] = tid[backward]
    if tid.max() > 0:
        ops = np.flatnonzero((kind == observer.OP) & (seq >= 0))
        numbers, which = np.unique(np.concatenate([seq[ops], seq[backward]]), return_inverse=True)
        of_op, of_backward = which[: len(ops)], which[len(ops) :]
        own = np.isin(
            tid[backward].astype(np.int64) * len(numbers) + of_backward, tid[ops].astype(np.int64) * len(numbers) + of_op
        )
        elsewhere = np.full(len(numbers), -1, np.int32)
        elsewhere[of_op] = tid[ops]  # of several ops with one number the last counts
        known = elsewhere[of_backward]
        forward_tid[backward] = np.where(own | (known < 0), tid[backward], known)
    return forward_tid


def of_this_recording(table: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which rows of time, bytes and address to show, and the bytes of each row, negative for a free.

    A free whose allocation was not recorded is not shown, as in torch: the running total would fall below zero.
    """
    time, size, address = table.T
    order = np.lexsort((time, address))
    begins, place = size[order] >= 0, address[order]
    known = begins.copy()
    known[1:] |= begins[:-1] & (place[1:] == place[:-1])
    shown, amount = np.empty(len(table), np.bool_), size.copy()
    shown[order] = known
    ends = np.flatnonzero(known & ~begins)
    amount[order[ends]] = -size[order[ends - 1]]
    return shown, amount


def inherit(store: EventStore, column: str) -> None:
    """Set a column of backward rows, and of the rows around and inside them, to the value of the forward op."""
    forward, backward = store.links
    values: NDArray[Any] = np.array(getattr(store, column))
    inherits = np.zeros(len(store), np.bool_)
    inherits[backward] = True
    values[backward] = values[forward]
    engine = store.parent[backward]
    outer = (engine >= 0) & (store.kind[engine] == observer.ENGINE)
    values[engine[outer]] = values[backward[outer]]
    inherits[engine[outer]] = True
    above = tree.nearest_ancestor(store.parent, inherits)
    inner = np.flatnonzero((above >= 0) & ~inherits)
    values[inner] = values[above[inner]]
    setattr(store, column, values)
