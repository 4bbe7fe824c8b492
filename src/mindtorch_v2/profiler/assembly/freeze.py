"""From a Recorder to an EventStore: flat lists become columns, and keys of inputs, names and stacks become tables.

Runs after stop(), or while recording for what there is so far. `freeze` is the way in; the other public functions serve
retention policies, which convert rows drain by drain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..recording import allocations
from ..recording.asyncio_lanes import lanes_of_rows
from ..recording.recorder import SPAN_BASE, Options, Recorder, ThreadRecording
from ..recording.tensor_notes import MOST_ARGUMENTS, TOUCH_WIDTH, TensorNotes
from ..store.store import EventStore, StorageNotes, ThreadInfo
from . import clock_order
from .clock_order import ClockOrder, going_forward
from .columns import (
    Columns,
    PerRow,
    Tables,
    added,
    forward_threads,
    inherit,
    module_columns,
    move_memory,
    of_this_recording,
    renumbered,
    steps_at,
    task_lanes,
    with_calls,
)
from .python_rows import python_rows
from .sampled_stacks import stack_column, stack_texts

if TYPE_CHECKING:
    from ..recording.device import DeviceRecorder

_CHUNK = 1 << 16


def freeze(recorder: Recorder, *, release: bool = False, device: DeviceRecorder | None = None, **meta: Any) -> EventStore:
    """Everything recorded so far as a store; `meta` goes to EventStore.freeze. A recorder that runs goes on.

    With `release` rows are removed from the recorder as they are read, so that they are not in memory twice.
    """
    end = recorder.clock_end_ns if recorder.clock_end_ns is not None else recorder.clock()
    tables = Tables()
    orders = [ClockOrder(recorder.clock_start_ns) for _ in recorder.thread_recordings]
    with_lanes = any(recording.tasks is not None for recording in recorder.thread_recordings)
    parts = [
        _thread_columns(recorder.options, recording, order, tables, end, release, with_lanes)
        for recording, order in zip(recorder.thread_recordings, orders, strict=False)  # one may begin meanwhile
    ]
    steps_back = sum(order.steps_back for order in orders) + (end < recorder.clock_start_ns)
    if steps_back:
        end = max(recorder.clock_start_ns, *(int(part["end"].max(initial=end)) for part in parts))
        metadata = meta.get("metadata") or {}
        meta["metadata"] = {**metadata, "losses": [*metadata.get("losses", ()), clock_order.loss(steps_back)]}
    if recorder.calls_in_imports:
        meta["metadata"] = {**(meta.get("metadata") or {}), "calls_in_imports": recorder.calls_in_imports}
    columns: Columns = {}
    if len(parts) == 1:
        columns = {**parts[0], "tid": np.int32(0)}
    elif parts:
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns["tid"] = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part["start"]) for part in parts])
    else:
        columns = {name: np.empty(0, np.int64) for name in ("name", "kind", "tid", "start", "end", "seq", "op", "shapes")}
    threads = [ThreadInfo(recording.ident, recording.name) for recording in recorder.thread_recordings]
    lanes = task_lanes(
        [None if recording.tasks is None else recording.tasks.names for recording in recorder.thread_recordings],
        columns,
        threads,
    )
    columns["step"] = steps(recorder, columns["start"])
    columns["fwd_tid"] = forward_threads(columns)
    if recorder.options.with_flops:
        columns["flops"] = tables.flops(columns["op"], columns["shapes"])
    if recorder.memory is not None:
        columns.update(_memory_columns(recorder.memory.rows, threads))
        move_memory(
            [None if recording.tasks is None else recording.tasks.turns() for recording in recorder.thread_recordings],
            columns,
            lanes,
        )
    _add_foreign(recorder, columns, threads, tables)
    if device is not None:
        device.add_to_columns(columns, threads, tables.name, tables.detail, lambda start: steps(recorder, start))
    store = EventStore.freeze(
        columns,
        names=list(tables.names),
        threads=threads,
        input_infos=tables.infos,
        stacks=tables.stacks,
        modules=list(tables.modules),
        overloads=list(observer.op_overloads),
        row_details=tables.details,
        clock_start_ns=recorder.clock_start_ns,
        clock_end_ns=end,
        wall_start_ns=recorder.wall_start_ns,
        **meta,
    )
    if recorder.options.with_modules:
        inherit(store, "module")
    if tables.hidden_calls:
        store.options["hidden_calls"] = tables.hidden_calls
    return store


def storage_notes(recorder: Recorder) -> StorageNotes:
    """Which storages ops read and wrote, and which storages are parameters."""
    rows = [value for recording in recorder.thread_recordings for value in recording.touched]
    table = np.fromiter(rows, np.int64, len(rows)).reshape(-1, TOUCH_WIDTH)
    parameters = frozenset().union(
        *(recording.modules.parameters for recording in recorder.thread_recordings if recording.modules is not None)
    )
    return StorageNotes(with_written(table), parameters)


def tensor_notes(recorder: Recorder) -> TensorNotes:
    """The tensors that ops, modules and optimizers had; without those of ops if shapes or memory were not recorded."""
    rows = [value for recording in recorder.thread_recordings for value in recording.touched]
    recordings = recorder.thread_recordings
    memory = recorder.memory
    return TensorNotes(
        np.fromiter(rows, np.int64, len(rows)).reshape(-1, TOUCH_WIDTH),
        np.array((memory and memory.ends) or [], np.int64).reshape(-1, 2),
        np.array((memory and memory.moves) or [], np.int64).reshape(-1, allocations.MOVE_WIDTH),
        [
            {} if each.modules is None else dict(zip(each.modules.labels, each.modules.notes, strict=False))
            for each in recordings
        ],
        [[] if each.optimizers is None else list(each.optimizers.notes) for each in recordings],
        [[] if each.optimizers is None else list(each.optimizers.steps) for each in recordings],
    )


def with_written(touched: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of storages that ops were given, with 1 for written or 0 in place of the last column, op and argument position."""
    places, which = np.unique(touched[:, 3], return_inverse=True)
    written = np.array([_is_written(*divmod(place, MOST_ARGUMENTS)) for place in places.tolist()], np.int64)
    return np.column_stack([touched[:, :3], written[which]])


def _is_written(op: int, position: int) -> bool:
    arguments = observer.op_schemas[op].arguments
    return position < len(arguments) and bool(arguments[position].written)


def _thread_columns(
    options: Options,
    recording: ThreadRecording,
    order: ClockOrder,
    tables: Tables,
    end: int,
    release: bool,
    with_lanes: bool,
) -> Columns:
    """The rows of one thread: ops and spans in the order in which they ended, then modules, then Python calls."""
    rows = _moved(recording.rows) if release else np.fromiter(recording.rows[:], np.int64)
    rows = rows.reshape(-1, recording.width)
    table = np.concatenate([*recording.compacted, rows]) if recording.compacted else rows
    columns = op_columns(recording, table, order, tables)
    if with_lanes:
        columns["lane"] = _lanes(recording, columns)
    python = python_rows(recording.segments(end), end) if options.with_stack else None
    if options.captures_arguments:
        columns["shapes"] = renumbered(columns["shapes"], [tables.info(key) for key in list(recording.keys)])
    modules = (
        module_columns(recording.modules.infos, recording.modules.calls(end), tables) if recording.modules is not None else None
    )
    if recording.samples is not None:
        numbers = stack_column(recording.samples, columns["op"], columns["start"])
        columns["stack"] = renumbered(numbers, added(tables.stacks, stack_texts(recording.samples)))
    return with_calls(columns, modules, python, tables, options.with_modules, options.adjust_steps)


def op_columns(recording: ThreadRecording, table: NDArray[np.int64], order: ClockOrder, tables: Tables) -> Columns:
    """Columns of a table of rows from a ThreadRecording's list; `order` has seen the rows before them."""
    ident = table[:, 0]
    is_span = ident >= SPAN_BASE
    span_names, span_kinds = np.zeros(max(recording.spans.count, 1), np.int32), np.zeros(max(recording.spans.count, 1), np.int8)
    for (text, of_kind), number in list(recording.spans.items()):
        if number - SPAN_BASE < len(span_names):  # the thread may be numbering another one right now
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
    table = order.fixed(table, (kind == observer.OP) | (kind == observer.FIRST_USE))
    columns = {
        "name": name,
        "kind": kind,
        "start": table[:, 1],
        "end": table[:, 2],
        "seq": table[:, 3],
        "op": np.where(is_span, -1, ident).astype(np.int32),
    }
    if recording.width > 4:
        columns["shapes"] = table[:, 4]
    return columns


def _moved(values: list[int]) -> NDArray[np.int64]:
    """The numbers of a list as an array. The list is emptied chunk by chunk, so that they are not all in memory twice."""
    last = len(values)  # an op that was under way at the end may still append a row: it is not part of the recording
    table = np.empty(last, np.int64)
    while last:
        first = max(0, last - _CHUNK)
        table[first:last] = np.fromiter(values[first:last], np.int64)
        del values[first:]
        last = first
    return table


def _lanes(recording: ThreadRecording, columns: Columns) -> NDArray[np.int64]:
    if recording.tasks is None:
        return np.zeros(len(columns["start"]), np.int64)
    return lanes_of_rows(recording.tasks.turns(), columns["kind"], columns["start"], columns["end"])


def _add_foreign(recorder: Recorder, columns: Columns, threads: list[ThreadInfo], tables: Tables) -> None:
    """Append rows of no thread, of workers and of communication: each process or lane as a thread of its own."""
    recorder.collect_communications()
    lanes: dict[int, int] = {}
    for ident, name, recorded, foreign in recorder.foreign:
        more = foreign_columns(recorder, recorded, foreign, tables)
        if not len(more["start"]):
            continue
        if ident not in lanes:
            lanes[ident] = len(threads)
            threads.append(ThreadInfo(ident, name))
        more["tid"] = np.full(len(more["start"]), lanes[ident], np.int64)
        count = len(columns["start"])
        if "details" in more:
            columns.setdefault("details", np.full(count, -1, np.int64))
        for column, values in columns.items():
            if not column.startswith("mem_"):
                other = more[column] if column in more else np.full(len(more["start"]), -1, np.int64)
                columns[column] = np.concatenate([np.broadcast_to(values, count), other])


def foreign_columns(recorder: Recorder, recorded: Columns, foreign: Mapping[str, list[Any]], tables: Tables) -> Columns:
    """Rows of no thread that began since this recording did, renumbered to refer to `tables`."""
    own = recorded["start"] >= recorder.clock_start_ns
    more = {column: values[own] for column, values in recorded.items()}
    more["name"] = renumbered(more["name"], [tables.name(text) for text in foreign["names"]])
    more["shapes"] = renumbered(more["shapes"], [tables.info(info) for info in foreign["input_infos"]])
    more["stack"] = renumbered(more["stack"], added(tables.stacks, foreign["stacks"]))
    modules = [tables.modules.setdefault(path, len(tables.modules)) for path in foreign["modules"]]
    more["module"] = renumbered(more["module"], modules)
    if "details" in more:
        more["details"] = renumbered(more["details"], [tables.detail(details) for details in foreign["row_details"]])
    more["step"] = np.broadcast_to(steps(recorder, more["start"]), len(more["start"]))
    return more


def steps(recorder: Recorder, start: NDArray[np.int64]) -> PerRow:
    """The step in which each row began."""
    marks = recorder.steps[:]
    moments = going_forward(np.array([moment for moment, _ in marks], np.int64))
    return steps_at(moments, np.array([number for _, number in marks] or [0], np.int32), start)


def _memory_columns(rows: dict[int, list[int]], threads: list[ThreadInfo]) -> Columns:
    """Memory columns from the rows of each thread, by operating-system thread id. Threads without an op are appended."""
    known = {thread.ident: number for number, thread in enumerate(threads)}
    tables = {ident: np.fromiter(own[:], np.int64).reshape(-1, allocations.WIDTH) for ident, own in list(rows.items()) if own}
    for table in tables.values():
        table[:, 0] = going_forward(table[:, 0])
    for ident in tables:
        if ident not in known:  # a thread that allocated and ran no op
            known[ident] = len(threads)
            threads.append(ThreadInfo(ident, f"thread {ident}"))
    table = np.concatenate([*tables.values(), np.empty((0, allocations.WIDTH), np.int64)])
    numbers = np.array([known[ident] for ident in tables], np.int64)
    thread = np.repeat(numbers, [len(own) for own in tables.values()])
    shown, size = of_this_recording(table)
    time, _, address = table[shown].T
    return {"mem_time": time, "mem_bytes": size[shown], "mem_addr": address, "mem_tid": thread[shown]}
