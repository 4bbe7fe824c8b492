"""From columns of rows to those of a whole recording: pure functions, for what is in memory and for what comes from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..recording.asyncio_lanes import lane_at
from ..recording.module_calls import ModuleInfo, module_path
from ..recording.op_inputs import decode
from ..store import tree
from ..store.store import EventStore, InputInfo, ThreadInfo
from .flops import flops_of
from .python_rows import PythonRows

Columns = dict[str, Any]  # arrays, or one number for all rows
_FIRST_TASK = 1_000_000_000  # asyncio tasks are numbered from here, above the operating system's threads


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
            self.infos.append(decode(key))
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
        columns["stack"] = renumbered(python.stack_at(columns["start"]), added(tables.stacks, python.stacks))
        columns = _joined(columns, _python_columns(python, tables))
    return columns


def renumbered(values: NDArray[Any], numbers: list[int]) -> NDArray[np.int64]:
    """Each value replaced by numbers[value]; -1 stays."""
    found: NDArray[np.int64] = np.array([*numbers, -1], np.int64)[values]
    return found


def added(table: list[Any], more: list[Any]) -> list[int]:
    first = len(table)
    table.extend(more)
    return list(range(first, len(table)))


def _joined(columns: Columns, more: Columns) -> Columns:
    """The rows of both; a column that the second does not have is -1 there."""
    count = len(more["start"])
    return {
        name: np.concatenate([values, more[name] if name in more else np.full(count, -1, np.int64)])
        for name, values in columns.items()
    }


def module_columns(
    infos: Sequence[ModuleInfo], table: NDArray[np.int64], tables: Tables, most_text: int | None = None
) -> Columns:
    """Module calls (module, start, end) in order of start, with the path of each as a column of its own.

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
    """For each moment the path of the innermost module that was running, -1 if none was."""
    one = np.zeros(len(modules["start"]), np.int32)
    found = tree.enclosing(one, modules["start"], modules["end"], modules["parent"], np.zeros(len(moments), np.int32), moments)
    return np.append(modules["path"], -1)[found]


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


def move_memory(turns: Sequence[Any], columns: Columns, lanes: dict[tuple[int, int], int]) -> None:
    """What a task on a lane of its own allocated belongs there, too. turns: rows of moment and lane, per thread."""
    for at in {thread for thread, _ in lanes}:
        rows = np.flatnonzero(columns["mem_tid"] == at)
        if turns[at] is not None and len(rows):
            lane = lane_at(turns[at], columns["mem_time"][rows])
            columns["mem_tid"][rows] = [lanes.get((at, one), at) for one in lane.tolist()]


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
    order = tree.row_order(python.start, python.end)
    start, end = python.start[order], python.end[order]
    one = np.zeros(len(start), np.int32)
    parent = tree.parents(one, start, end)
    above = np.append(parent, np.int32(-1))
    at = np.zeros(len(scopes), np.int32)
    opened, closed = columns["start"][scopes], columns["end"][scopes]
    begin, finish = opened.copy(), closed.copy()
    call = tree.enclosing(one, start, end, parent, at, opened)
    while (shorter := (call >= 0) & (end[call] < closed)).any():
        begin[shorter] = end[call[shorter]]
        call = np.where(shorter, above[call], -1)
    call = tree.enclosing(one, start, end, parent, at, closed)
    while (later := (call >= 0) & (start[call] > opened)).any():
        finish[later] = start[call[later]]
        call = np.where(later, above[call], -1)
    columns["start"], columns["end"] = columns["start"].copy(), columns["end"].copy()
    columns["start"][scopes], columns["end"][scopes] = begin, np.maximum(finish, begin)


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
        numbers, which = np.unique(np.concatenate([seq[ops], seq[backward]]), return_inverse=True)
        of_op, of_backward = which[: len(ops)], which[len(ops) :]
        own = np.isin(
            tid[backward].astype(np.int64) * len(numbers) + of_backward, tid[ops].astype(np.int64) * len(numbers) + of_op
        )
        elsewhere = np.full(len(numbers), -1, np.int32)
        elsewhere[of_op] = tid[ops]  # the last one of a number counts
        known = elsewhere[of_backward]
        forward_tid[backward] = np.where(own | (known < 0), tid[backward], known)
    return forward_tid


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
    above = tree.nearest_ancestor(store.parent, given)
    inner = np.flatnonzero((above >= 0) & ~given)
    values[inner] = values[above[inner]]
    setattr(store, column, values)
