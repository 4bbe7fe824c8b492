"""Reads Chrome traces of PyTorch's Kineto and of the `chrome` exporter, in bounded memory."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.restoring import Actions, restoring
from ..._dispatch import observer
from ..store import tree
from ..store.derived import OPTIMIZER_STEP, STEP_PREFIX
from ..store.store import OPTIONAL, REQUIRED, EventStore
from ._bounds import too_deep
from ._recovery import Recovery, TraceError
from ._source import Progress, blocks
from .ascend.translate import Translator, has_text_times
from .trace.events import Collector
from .trace.json_stream import EventStream
from .trace.kinds import MODULE_NAME
from .trace.links import forward_threads, launches, module_paths, python_stacks
from .trace.times import LATEST_NS, Inexact

_FLAGS = ("with_stack", "profile_memory", "record_shapes", "with_modules", "with_flops")
_ENGINE_PREFIX = "autograd::engine::evaluate_function: "
# Fields of the document that are not metadata of the recording.
_FILE_FIELDS = {"schemaVersion", "displayTimeUnit", "baseTimeNanoseconds", "traceName", "trace_id", "recovery", *_FLAGS}
_DEVICE_NAMES = {1: "cuda", 6: "hpu", 12: "xpu", 19: "mtia", 20: "privateuse1"}

Columns = dict[str, NDArray[Any]]


def read(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    max_bytes: int | None = None,
    *,
    translator: Translator | None = None,
    more_events: Callable[[int], Iterable[Any]] | None = None,
    recovery: Recovery | None = None,
) -> tuple[EventStore, Recovery]:
    """Read a trace, gzipped or not; the Recovery says how far that was possible.

    progress(bytes done, bytes in all) is called after every block of the file. max_bytes bounds the contents of the
    file when unpacked. translator: for events in another form; that of Ascend's trace_view.json is known by itself.
    more_events(process): events from elsewhere. TraceError: there is no trace in the file.
    """
    recovery = Recovery("trace") if recovery is None else recovery
    stream = EventStream(blocks(path, recovery, progress, max_bytes), recovery)
    collector = Collector(recovery)
    with no_garbage_collection():
        for batch in stream:
            if translator is None and has_text_times(stream.raw):
                translator = Translator()
            if translator is not None:
                collector.add(translator.events(batch))
                continue
            try:
                collector.add(batch, stream.raw)
            except Inexact:
                collector.add(_with_all_digits(stream.raw))
        if more_events is not None:
            collector.add(list(more_events(collector.main_process())))
    if not stream.found_events:
        raise TraceError(f"there is no traceEvents in {os.fspath(path)!r}")
    return build_store(collector, stream.fields, recovery), recovery


def from_events(batches: Iterable[list[Any]], recovery: Recovery, translator: Translator | None = None) -> EventStore:
    """A store of events that come from no trace but have the form of one, with exact times."""
    collector = Collector(recovery)
    with no_garbage_collection():
        for batch in batches:
            collector.add(batch if translator is None else translator.events(batch))
    return build_store(collector, {}, recovery)


@restoring
def no_garbage_collection(undo: Actions) -> None:
    """Parsed events form no cycles, and the search for some among them takes a fifth of the time."""
    if gc.isenabled():
        undo.append(gc.enable)
    gc.disable()


def _with_all_digits(raw: bytes) -> list[Any]:
    """Parse a batch again, with Decimals in place of floats."""
    text = raw.decode("utf-8", "replace")
    events: list[Any] = json.loads(f"[{text}]", parse_float=Decimal, parse_constant=lambda _: None, strict=False)
    return events


def build_store(collector: Collector, fields: Mapping[str, Any], recovery: Recovery) -> EventStore:
    """The store of what was collected; `fields` are those of a trace beside its events."""
    collector.close_open_spans()
    host, python, device = collector.host.columns(), collector.python.columns(), collector.device.columns()
    memory, flows = collector.memory.columns(), collector.flows.columns()
    names = list(collector.names)
    _leave_out_the_deepest(host, python, recovery)
    _refine_kinds(host, python, names)
    process = _process(collector, host)
    fwd_tid = forward_threads(host, flows)
    stack, python_stack, stacks = python_stacks(host, python, names, list(collector.stacks), recovery)
    launch_tid, launch_ns = launches(device, host, collector.launches.columns())
    host["module"] = _with_backward(module_paths(host, python, names, collector.modules, recovery), host, fwd_tid)
    device_type = collector.runtime_device()

    columns = _columns(
        host,
        python,
        device,
        {
            "fwd_tid": (fwd_tid, None, None),
            "stack": (stack, None, python_stack),
            "device_type": (None, np.full(len(launch_tid), device_type, np.int8), None),
            "launch_tid": (None, launch_tid, None),
            "launch_ns": (None, launch_ns, None),
        },
    )
    columns["step"] = _steps(host, names, columns["start"])
    if len(memory["mem_time"]):
        columns.update(memory)
    base = fields.get("baseTimeNanoseconds", 0)
    if type(base) is not int or not 0 <= base < LATEST_NS:
        recovery.note("the time that times are counted from is not a time")
        base = 0
    start, end = _window(collector, columns)
    del host, python, device, fwd_tid, stack, python_stack, launch_tid, launch_ns  # freeze() needs the memory
    return EventStore.freeze(
        columns,
        names=names,
        threads=collector.lanes.table(process),
        input_infos=collector.inputs.table,
        stacks=stacks,
        modules=list(collector.modules),
        row_details=collector.details.table(),
        other_events=collector.others,
        options=_options(collector, fields, columns, device_type),
        metadata={key: value for key, value in fields.items() if key not in _FILE_FIELDS},
        trace_id=fields["trace_id"] if isinstance(fields.get("trace_id"), str) else None,
        clock_start_ns=start,
        clock_end_ns=end,
        wall_start_ns=start + base,
        pid=int(process) if isinstance(process, int) else 0,
    )


def _leave_out_the_deepest(host: Columns, python: Columns, recovery: Recovery) -> None:
    tid, start, end = (np.concatenate([host[name], python[name]]) for name in ("tid", "start", "end"))
    deep = too_deep(tid, start, end)
    if deep.any():
        recovery.skip("nested too deeply", int(deep.sum()))
        for rows, dropped in ((host, deep[: len(host["start"])]), (python, deep[len(host["start"]) :])):
            rows.update({name: values[~dropped] for name, values in rows.items()})


def _columns(host: Columns, python: Columns, device: Columns, more: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of all rows in the order that freeze() expects; `more` has further ones, of (host, device, Python) rows.

    A trace has outer spans first and freeze() expects them last; a Python function is outside of an op of equal times.
    """
    columns: dict[str, Any] = {}
    for name in (*REQUIRED, *OPTIONAL):
        parts = more.get(name) or tuple(rows.get(name) for rows in (host, device, python))
        if all(part is None or not len(part) for part in parts):
            if name in REQUIRED:
                columns[name] = np.empty(0, REQUIRED[name])
            continue
        dtype, missing = OPTIONAL.get(name, (REQUIRED.get(name), -1))
        filled = [
            np.full(len(rows["start"]), missing, dtype) if part is None else part.astype(dtype, copy=False)
            for part, rows in zip(parts, (host, device, python), strict=True)
        ]
        columns[name] = np.concatenate([filled[0][::-1], filled[1], filled[2][::-1]])
    return columns


def _refine_kinds(host: Columns, python: Columns, names: list[str]) -> None:
    """Set the kinds of backward nodes, engine calls, steps and modules, which share a category with others."""
    kind = host["kind"]
    nodes = {name.removeprefix(_ENGINE_PREFIX) for name in names if name.startswith(_ENGINE_PREFIX)}
    op, scope = kind == observer.OP, kind == observer.SCOPE
    kind[op & _named(host["name"], [name.startswith("autograd::engine::") for name in names])] = observer.ENGINE
    kind[op & _named(host["name"], [name in nodes for name in names])] = observer.BACKWARD
    kind[scope & _named(host["name"], [name.startswith(STEP_PREFIX) for name in names])] = observer.STEP
    python["kind"][_named(python["name"], [MODULE_NAME.fullmatch(name) is not None for name in names])] = observer.MODULE


def _named(name: NDArray[Any], chosen: list[bool]) -> NDArray[np.bool_]:
    rows: NDArray[np.bool_] = np.array([*chosen, False])[name]
    return rows


def _process(collector: Collector, host: Columns) -> int | str:
    """The process of the thread with the most rows."""
    lanes = list(collector.lanes.numbers)
    if not len(host["tid"]):
        return lanes[0][0] if lanes else 0
    return lanes[int(np.bincount(host["tid"]).argmax())][0]


def _with_backward(module: NDArray[np.int32], host: Columns, fwd_tid: NDArray[np.int32]) -> NDArray[np.int32]:
    """The modules of host rows, where backward nodes and the ops below them have that of their forward op."""
    order = np.lexsort((-host["end"], host["start"]))
    kind, tid, seq = (host[name][order] for name in ("kind", "tid", "seq"))
    forward, backward = tree.forward_backward(kind, tid, seq, fwd_tid[order], observer.OP, observer.BACKWARD)
    if not len(forward) or not (module >= 0).any():
        return module
    ordered = module[order]
    of_node = np.full(len(order) + 1, -1, np.int32)
    of_node[backward] = ordered[forward]
    parent = tree.parents(tid, host["start"][order], host["end"][order])
    node = np.where(kind == observer.BACKWARD, np.arange(len(order)), tree.nearest_ancestor(parent, kind == observer.BACKWARD))
    ordered = np.where(ordered >= 0, ordered, of_node[node])
    result = np.empty_like(module)
    result[order] = ordered
    return result


def _optimizer_steps(host: Columns, names: list[str], start: NDArray[np.int64]) -> NDArray[np.int32] | np.int32:
    """The step that each row began in, in a trace without ProfilerStep#N: a step ends with the step() of the first optimizer.

    What comes after the last one belongs to it, unless another backward pass is in it.
    """
    rows = np.flatnonzero(_named(host["name"], [name.startswith(OPTIMIZER_STEP) for name in names]))
    if not len(rows):
        return np.int32(0)
    first = host["name"][rows[np.argmin(host["start"][rows])]]
    ends = np.sort(host["end"][rows[host["name"][rows] == first]])
    rest = host["start"] >= ends[-1]
    if not (rest & (host["kind"] == observer.BACKWARD)).any():
        ends = ends[:-1]
    return np.searchsorted(ends, start, side="right").astype(np.int32)


def _steps(host: Columns, names: list[str], start: NDArray[np.int64]) -> NDArray[np.int32] | np.int32:
    """The step that each row began in: that of the last ProfilerStep#N before it, else by the steps of the optimizer."""
    rows = np.flatnonzero(host["kind"] == observer.STEP)
    rows = rows[np.argsort(host["start"][rows], kind="stable")]
    texts = [names[at].removeprefix(STEP_PREFIX) for at in host["name"][rows].tolist()]
    numbers = np.array([int(text) if text.isdecimal() and len(text) < 10 else 0 for text in texts], np.int32)
    if not len(numbers):
        return _optimizer_steps(host, names, start)
    at = np.searchsorted(host["start"][rows], start, side="right") - 1
    return numbers[np.maximum(at, 0)]


def _window(collector: Collector, columns: Mapping[str, Any]) -> tuple[int, int]:
    """Start and end of the recording: those of the trace, widened to include all rows."""
    starts = [int(columns[c].min()) for c in ("start", "mem_time") if c in columns and len(columns[c])]
    ends = [int(columns[c].max()) for c in ("end", "mem_time") if c in columns and len(columns[c])]
    if collector.window is not None:
        starts.append(collector.window[0])
        ends.append(collector.window[1])
    return min(starts, default=0), max(ends, default=0)


def _options(collector: Collector, fields: Mapping[str, Any], columns: Mapping[str, Any], device: int) -> dict[str, Any]:
    """The options of the recording, from the trace's fields or from what it contains."""
    options: dict[str, Any] = {flag: bool(fields.get(flag, False)) for flag in _FLAGS}
    options["record_shapes"] |= bool(collector.inputs.table)
    options["profile_memory"] |= "mem_time" in columns
    options["with_stack"] |= "stack" in columns and bool((columns["stack"] >= 0).any())
    options["with_modules"] |= bool(collector.modules)
    options["verbose"] = bool(collector.stacks)
    if options["with_stack"] and not collector.stacks:
        options["stacks_by_function"] = True  # worked out from calls of functions: a frame's line is where it is defined
    options["capture_overload_names"] = False
    options["use_device"] = _DEVICE_NAMES.get(device) if "device_type" in columns else None
    return options
