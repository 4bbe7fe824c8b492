"""Builds the store of a streamed file from its rows and logs: the same that the recording would have become in memory.

A streamed file has the rows of ops as they ended, and logs of Python calls, module calls, tasks and storages. Whatever
depends on the whole recording (Python callers, the module of an op, the thread of a forward op) is computed here, by the
functions of `assembly` that a recording in memory goes through.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...assembly import columns as _columns
from ...assembly.python_rows import python_rows
from ...recording.asyncio_lanes import lanes_of_rows
from ...recording.module_calls import ModuleInfo, calls_of
from ...recording.op_facts import out_overload
from ...recording.python_calls.stream import CallSegment
from ...store.store import COLUMNS, MEMORY_COLUMNS, OPTIONAL, REQUIRED, EventStore, StorageNotes
from ...store.tree import depths, enclosing
from .._bounds import DEEPEST, MOST_LANES, nesting, too_deep
from .layout import (
    BEGINS,
    ENDS,
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

Logs = Mapping[tuple[int, int], NDArray[np.int64]]  # by number of the log and of the thread
# A few bytes of a log can lead to much work, so that is bounded: frames of all stacks, characters of all modules' paths,
# segments in which threads were traced, steps of any walk up a tree or through a table.
_MOST_FRAMES, _MOST_TEXT, _MOST_SEGMENTS, _MOST_WALK = 1 << 24, 1 << 26, 1 << 18, 1 << 29
_THREAD_LOGS = (PYTHON_LOG, MODULE_LOG, TASK_LOG)
# The columns of rows that threads recorded themselves.
_THREAD_COLUMNS = ("name", "kind", "start", "end", "seq", "op", "shapes", "flops", "module", "stack")


def rebuild_store(
    columns: Mapping[str, NDArray[Any]], tables: Mapping[str, Sequence[Any]], logs: Logs, meta: Mapping[str, Any]
) -> EventStore:
    """The store of a streamed file. ValueError: the logs make no sense; without them a store still has every op."""
    options: dict[str, Any] = meta["options"]
    new_tables = _columns.Tables()
    numbers = np.array([new_tables.name(name) for name in tables["names"]] or [0], np.int64)
    new_tables.stacks.extend(tables["stacks"])
    # Lost modules share one path.
    modules = [new_tables.modules.setdefault(path, len(new_tables.modules)) for path in tables["modules"]]
    rows: dict[str, Any] = {name: columns[name] for name in COLUMNS}
    rows["name"] = numbers[rows["name"]]
    rows["module"] = _columns.renumbered(rows["module"], modules)
    end = meta["clock_end_ns"] or max(_last_time(columns, logs), meta["clock_start_ns"])
    threads = list(tables["threads"])
    recorded = _thread_rows(
        rows, tables, new_tables, logs, end, bool(options.get("with_modules")), bool(options.get("adjust_steps"))
    )
    if "lane" in recorded:
        _bound_walk(len(np.unique(recorded["lane"])), len(recorded["lane"]), "too many tasks")
    tasks = {task.ident: task.name for task in tables["tasks"]}
    lanes = _columns.task_lanes(
        [tasks if (TASK_LOG, thread) in logs else None for thread in range(len(threads))], recorded, threads
    )
    marks = logs.get((STEP_LOG, 0))
    if marks is not None:
        recorded["step"] = _columns.steps_at(marks[:, 0], marks[:, 1], recorded["start"])
    recorded["fwd_tid"] = _columns.forward_threads(recorded)
    everything = _with_others(recorded, rows)
    if len(columns["mem_time"]):
        everything.update({name: columns[name] for name in MEMORY_COLUMNS if name != "mem_total"})
        everything["mem_tid"] = everything["mem_tid"].copy()
        _columns.move_memory([logs.get((TASK_LOG, thread)) for thread in range(len(threads))], everything, lanes)
    pauses = logs.get((GC_LOG, 0))
    options["gc_pauses"] = [tuple(row) for row in pauses.tolist()] if pauses is not None else []
    if new_tables.hidden_calls:
        options["hidden_calls"] = new_tables.hidden_calls
    store = EventStore.freeze(
        everything,
        names=list(new_tables.names),
        threads=threads,
        input_infos=tables["input_infos"],
        stacks=new_tables.stacks,
        modules=list(new_tables.modules),
        overloads=tables["overloads"],
        row_details=tables.get("row_details", ()),
        options=options,
        metadata=meta["metadata"],
        trace_id=meta["trace_id"],
        clock_start_ns=meta["clock_start_ns"],
        clock_end_ns=end,
        wall_start_ns=meta["wall_start_ns"],
        pid=meta["pid"],
    )
    if options.get("with_modules"):
        _columns.inherit(store, "module")
    return _with_out_overloads(store, logs)


def storage_notes(logs: Logs) -> StorageNotes:
    """The accesses of ops to storages, and the addresses of parameters, from the logs."""
    touched = [table for (number, _), table in logs.items() if number == TOUCHED_LOG]
    parameters = [table[:, 0].tolist() for (number, _), table in logs.items() if number == PARAMETER_LOG]
    return StorageNotes(np.concatenate([*touched, np.empty((0, 4), np.int64)]), frozenset().union(*parameters))


def _thread_rows(
    rows: dict[str, Any],
    tables: Mapping[str, Sequence[Any]],
    new_tables: _columns.Tables,
    logs: Logs,
    end: int,
    with_modules: bool,
    adjust_steps: bool,
) -> dict[str, Any]:
    """The rows that threads of the process recorded, with their modules and Python calls, thread by thread."""
    parts = []
    of_threads = _is_thread_row(rows)
    logged = {thread for log, thread in logs if log in _THREAD_LOGS}
    present = logged.union(np.unique(rows["tid"][of_threads]).tolist())
    _bound_logs(logs, len(logged), len(tables["module_infos"]))
    targets = _object_array([*tables["calls"], None])  # the last one, at -1, is a return
    room, deepest = _MOST_FRAMES, 0
    with_lanes = any(log == TASK_LOG for log, _ in logs)
    for thread in sorted(thread for thread in present if thread < len(tables["threads"])):
        own = np.flatnonzero(of_threads & (rows["tid"] == thread))
        part = {name: rows[name][own] for name in _THREAD_COLUMNS}
        turns, modules, python = (logs.get((log, thread)) for log in (TASK_LOG, MODULE_LOG, PYTHON_LOG))
        if with_lanes:
            part["lane"] = (
                np.zeros(len(own), np.int64)
                if turns is None
                else lanes_of_rows(turns, part["kind"], part["start"], part["end"])
            )
        calls = python_part = None
        if modules is not None:
            calls = _module_calls(modules, tables["module_infos"], end, new_tables)
            deepest = max(deepest, _bound_nesting(calls["start"], calls["end"], len(own)))
        if python is not None:
            python_part = python_rows(_call_segments(python, targets), max(end, int(python[:, 2].max(initial=end))), room)
            room -= sum(map(len, python_part.stacks))
            scopes = int(np.isin(part["kind"], (observer.SCOPE, observer.STEP)).sum())
            deepest = max(deepest, _bound_nesting(python_part.start, python_part.end, scopes))
        part = _columns.with_calls(part, calls, python_part, new_tables, with_modules, adjust_steps)
        part["tid"] = np.full(len(part["start"]), thread, np.int32)
        part["flops"] = np.maximum(part["flops"], 0)
        parts.append(part)
    joined = {
        name: _joined([part.pop(name) for part in parts], name)
        for name in (*_THREAD_COLUMNS, "tid", *(("lane",) if with_lanes else ()))
    }
    if deepest * len(joined["start"]) > _MOST_WALK and too_deep(joined["tid"], joined["start"], joined["end"]).any():
        raise ValueError("calls are nested too deeply")
    return joined


def _joined(parts: list[NDArray[Any]], name: str) -> NDArray[Any]:
    """A column of all threads in the dtype of a store, since a recording may be so large that wider ones do not fit."""
    dtype = REQUIRED.get(name) or OPTIONAL.get(name, (np.int64,))[0]
    return np.concatenate([np.empty(0, dtype), *parts], dtype=dtype, casting="unsafe")


def _bound_logs(logs: Logs, threads: int, modules: int) -> None:
    """ValueError if logs are of too many threads, or have too many segments."""
    marks = sum(int((table[:, 0] == BEGINS).sum()) for (log, _), table in logs.items() if log in (PYTHON_LOG, MODULE_LOG))
    if marks > _MOST_SEGMENTS:
        raise ValueError("threads were traced in too many segments")
    if threads > MOST_LANES:
        raise ValueError("logs of too many threads")
    _bound_walk(modules, 8 * sum(log == MODULE_LOG for log, _ in logs), "too many modules")


def _bound_walk(steps: int, times: int, fault: str) -> None:
    if steps * times > _MOST_WALK:
        raise ValueError(fault)


def _bound_nesting(start: NDArray[np.int64], end: NDArray[np.int64], walks: int) -> int:
    """The depth of nested calls; ValueError if it is too large, or too large to walk up from so many rows."""
    deepest = int(nesting(start, end).max(initial=0)) + 1
    if deepest > DEEPEST + 1:
        raise ValueError("calls are nested too deeply")
    _bound_walk(deepest, walks, "calls are nested too deeply for so many rows")
    return deepest


def _module_calls(
    log: NDArray[np.int64], infos: Sequence[ModuleInfo], end: int, new_tables: _columns.Tables
) -> _columns.Columns:
    """The calls in a thread's log of modules."""
    if int(log[:, 0].max(initial=-1)) >= len(infos) or int(log[:, 0].min(initial=0)) < STOPS:
        raise ValueError("a module that is not known")
    events = np.column_stack([log[:, 0], np.maximum.accumulate(log[:, 1])])
    calls = calls_of(events, max(end, int(events[-1, 1])))
    if int(nesting(calls[:, 1], calls[:, 2]).max(initial=0)) > DEEPEST:
        raise ValueError("modules are nested too deeply")
    return _columns.module_columns(infos, calls, new_tables, _MOST_TEXT)


def _is_thread_row(rows: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Which rows a thread recorded itself: not those of a device, of its runtime, or of other processes."""
    recorded: NDArray[np.bool_] = (rows["kind"] < observer.KERNEL) & (rows["correlation"] != FOREIGN)
    return recorded


def _with_others(recorded: dict[str, Any], rows: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of threads, together with all other rows as they are in the file."""
    others = np.flatnonzero(~_is_thread_row(rows))
    if not len(others):
        return recorded
    joined: dict[str, Any] = {}
    for name in COLUMNS:
        values = recorded[name] if name in recorded else OPTIONAL[name][1]
        joined[name] = np.concatenate([np.broadcast_to(values, len(recorded["start"])), rows[name][others]])
    joined["correlation"] = np.where(joined["correlation"] == FOREIGN, -1, joined["correlation"])
    return joined


def _call_segments(log: NDArray[np.int64], targets: NDArray[Any]) -> list[CallSegment]:
    """The segments of a log of calls. Returns without a call, which a damaged file may have, are dropped."""
    what, place, time = log[:, 0], np.maximum(log[:, 1], -1), np.maximum.accumulate(log[:, 2])
    if int(what.max(initial=-1)) >= len(targets) - 1 or int(what.min(initial=0)) < STOPS:
        raise ValueError("a call that is not known")
    bounds = [*np.flatnonzero(what == BEGINS).tolist(), len(log)]
    segments: list[CallSegment] = []
    for first, following in itertools.pairwise(bounds):
        stops = np.flatnonzero(what[first:following] == STOPS)
        finish = int(time[first + stops[0]]) if len(stops) else None
        last = first + int(stops[0]) if len(stops) else following
        opened = min(max(int(log[first, 1]), 0), last - first - 1)
        frames = np.arange(first + 1, first + 1 + opened)
        frames = frames[what[frames] >= 0]
        body = np.arange(first + 1 + opened, last)
        begins = what[body] != ENDS
        depth = len(frames) + np.cumsum(np.where(begins, 1, -1))
        # A return without a call reaches a new lowest depth, from which later calls count.
        least = np.minimum.accumulate(np.append(0, depth))
        if int((depth - least[1:]).max(initial=len(frames))) > DEEPEST:
            raise ValueError("calls are nested too deeply")
        body = body[begins | (depth >= least[:-1])]
        events: list[Any] = [None] * (3 * len(body))
        events[0::3] = targets[what[body]].tolist()
        events[1::3] = place[body].tolist()
        events[2::3] = time[body].tolist()
        segments.append(CallSegment(int(time[first]), finish, targets[what[frames]].tolist(), place[frames].tolist(), events))
    return segments


def _object_array(values: Sequence[Any]) -> NDArray[Any]:
    """An array of dtype object, one entry per value even if values are sequences."""
    array = np.empty(len(values), object)
    for at, value in enumerate(values):
        array[at] = value
    return array


def _last_time(columns: Mapping[str, NDArray[Any]], logs: Logs) -> int:
    """The end of a recording that was cut off: the last time in its rows and logs."""
    last = [int(columns[name].max(initial=0)) for name in ("end", "mem_time")]
    last += [int(table[:, -1].max(initial=0)) for (number, _), table in logs.items() if number in (PYTHON_LOG, MODULE_LOG)]
    return max(last)


def _with_out_overloads(store: EventStore, logs: Logs) -> EventStore:
    """The store with the `out` overload for ops that were called with `out=`."""
    tables = [(thread, table) for (number, thread), table in logs.items() if number == OUT_LOG and len(table)]
    if not tables:
        return store
    table = np.concatenate([own for _, own in tables])
    tid = np.repeat([thread for thread, _ in tables], [len(own) for _, own in tables]).astype(np.int32)
    if len(table) * DEEPEST > _MOST_WALK:
        _bound_walk(int(depths(store.parent).max(initial=0)), len(table), "too many calls with out=")
    _bound_walk(len(tables), len(store), "logs of too many threads")
    rows = enclosing(store.host_tid, store.start, store.end, store.parent, tid, table[:, 0])
    overloads, op = list(store.overloads), store.op.copy()
    numbers: dict[int, int] = {}
    for row, called in zip(rows.tolist(), table[:, 1].tolist(), strict=True):
        if row >= 0 and op[row] == called:
            if called not in numbers:
                numbers[called] = len(overloads)
                name = store.names[store.name[row]].removeprefix("aten::")
                overloads.append(out_overload(name, overloads[called]))
            op[row] = numbers[called]
    return store.with_overloads(op, overloads)
