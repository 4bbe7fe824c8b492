"""Reads the events that PyTorch's profiler keeps in memory, without a trace: every field of all events is a column at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store.store import EventStore
from ._recovery import Recovery
from .kineto import build_store, no_garbage_collection
from .trace.events import Collector
from .trace.kinds import HOST_KINDS, MEMORY_NAME

_MEMORY = -1  # beside the kinds of rows
_KINDS = {name: HOST_KINDS[name] for name in ("cpu_op", "user_annotation", "python_function")} | {"cpu_instant_event": _MEMORY}
_COMMUNICATION = "record_param_comms"  # its arguments are in traces only
_BASE = "baseTimeNanoseconds"

Column = NDArray[np.int64]


class Unreadable(Exception):
    """The events have something that only a trace of them tells whole."""


class _Events:
    """Events of PyTorch, whose fields are methods."""

    def __init__(self, events: Sequence[Any]) -> None:
        self._events = events
        self._fields = type(events[0]) if events else None

    def __len__(self) -> int:
        return len(self._events)

    def chosen(self, rows: NDArray[Any]) -> _Events:
        """The events with these numbers."""
        return self if len(rows) == len(self._events) else _Events([self._events[row] for row in rows.tolist()])

    def values(self, field: str) -> Iterator[Any]:
        """One field of every event; Unreadable if this PyTorch has no such field."""
        if self._fields is None:
            return iter(())
        try:
            return map(getattr(self._fields, field), self._events)
        except AttributeError:
            raise Unreadable(field) from None

    def column(self, field: str) -> Column:
        """Like values(), of numbers."""
        return np.fromiter(self.values(field), np.int64, len(self._events))


def read(results: Any, fields: Mapping[str, Any], process: int, recovery: Recovery) -> EventStore:
    """The store of PyTorch's `kineto_results`; `fields` are what a trace has beside its events.

    Unreadable for events of devices, collectives and values of keywords, and for a PyTorch that tells other fields.
    """
    if not hasattr(results, "trace_start_ns") or not hasattr(results, "events"):
        raise Unreadable("events")
    base = results.trace_start_ns()
    collector = Collector(recovery)
    collector.window = (0, 0)  # the recording began at `base`; rows widen it
    with no_garbage_collection():
        events = _Events(results.events())
        try:
            kind = np.fromiter(map(_KINDS.__getitem__, events.values("activity_type")), np.int8, len(events))
        except KeyError as error:
            raise Unreadable(f"activity {error}") from None
        texts = list(events.values("name"))
        names = collector.names = {name: number for number, name in enumerate(dict.fromkeys(texts))}
        columns: dict[str, NDArray[Any]] = {
            "name": np.fromiter(map(names.__getitem__, texts), np.int32, len(events)),
            "kind": kind,
            "tid": _lanes(events.column("device_resource_id"), process, collector),
            "start": events.column("start_ns") - base,
        }
        columns["end"] = columns["start"] + events.column("duration_ns")
        if _COMMUNICATION in names:
            raise Unreadable(_COMMUNICATION)
        of_memory = kind == _MEMORY
        if {*columns["name"][of_memory].tolist()} - {names.get(MEMORY_NAME)}:
            raise Unreadable("instants")
        python = np.flatnonzero(kind == observer.PYTHON)
        host = np.flatnonzero(~of_memory & (kind != observer.PYTHON))
        more = _host(events.chosen(host), columns["name"][host], fields, collector)
        collector.python.add({name: values[python] for name, values in columns.items()})
        collector.host.add(collector.host.arrays(**{name: values[host] for name, values in columns.items()}, **more))
        if len(collector.lanes.numbers) > 1:
            _add_flows(events.chosen(host), columns, host, collector)
        if of_memory.any():
            memory = events.chosen(np.flatnonzero(of_memory))
            lanes = dict(zip(memory.column("start_thread_id").tolist(), columns["tid"][of_memory].tolist(), strict=True))
            _add_allocations(results, lanes, base, collector)
    return build_store(collector, {**fields, _BASE: base}, recovery)


def _lanes(threads: Column, process: int, collector: Collector) -> NDArray[np.int32]:
    """The lane of every event, by the number of its thread in the operating system."""
    alive = {thread.native_id: thread.name for thread in threading.enumerate()}
    unique, first, inverse = np.unique(threads, return_index=True, return_inverse=True)
    lanes = np.empty(len(unique), np.int32)
    for at in np.argsort(first).tolist():
        thread = int(unique[at])
        lanes[at] = collector.lanes.number(process, thread)
        if thread in alive:
            collector.lanes.set_name(process, thread, alive[thread])
    return lanes[inverse]


def _host(events: _Events, name: NDArray[Any], fields: Mapping[str, Any], collector: Collector) -> dict[str, Any]:
    """What ops and ranges have beside their times."""
    missing = np.full(len(events), -1, np.int64)
    shapes = missing
    if fields["record_shapes"]:
        if any(events.values("kwinputs")):
            raise Unreadable("values of keywords")
        parts = map(events.values, ("structured_input_shapes", "dtypes", "structured_input_strides", "concrete_inputs"))
        number = collector.inputs.number_of_values
        shapes = np.array([number(*inputs) if inputs[0] else -1 for inputs in zip(*parts, strict=True)], np.int64)
    # Only what the engine calls has the thread of a forward op: the other events need not be asked for it.
    called = np.flatnonzero(np.array(["Backward" in text or text.startswith("autograd::") for text in collector.names])[name])
    forward = np.zeros(len(events), np.int64)
    forward[called] = events.chosen(called).column("fwd_thread_id")
    return {
        "seq": events.column("sequence_nr"),
        "fwd": forward,
        "flops": events.column("flops") if fields["with_flops"] else np.zeros(len(events), np.int64),
        "shapes": shapes,
        **dict.fromkeys(("module", "stack", "correlation", "details", "external"), missing),
    }


def _add_flows(events: _Events, columns: dict[str, NDArray[Any]], host: NDArray[Any], collector: Collector) -> None:
    """The links from forward ops to backward nodes, by which the numbers of forward threads are understood."""
    flow = events.column("flow_id")
    linked = flow > 0
    begins = events.column("flow_start")[linked] > 0
    rows = host[linked]
    collector.flows.add({"flow": flow[linked], "begins": begins, "tid": columns["tid"][rows], "time": columns["start"][rows]})


def _add_allocations(results: Any, lanes: dict[int, int], base: int, collector: Collector) -> None:
    """Allocations with their addresses, which only the tree of events has; `lanes` are those of PyTorch's thread numbers."""
    rows = []
    waiting = list(results.experimental_event_tree())
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.name == MEMORY_NAME:
            allocation = node.extra_fields
            if allocation.device.type != "cpu":
                raise Unreadable("memory of a device")
            sizes = allocation.alloc_size, allocation.ptr, allocation.total_allocated, allocation.total_reserved
            rows.append((node.start_time_ns - base, lanes[node.start_tid], *sizes))
    time, tid, size, address, total, reserved = np.array(rows, np.int64).reshape(-1, 6).T
    collector.memory.add(
        {
            "mem_time": time,
            "mem_bytes": size,
            "mem_addr": address,
            "mem_tid": tid.astype(np.int32),
            "mem_total": total,
            "mem_device_type": np.zeros(len(time), np.int8),
            "mem_device_index": np.full(len(time), -1, np.int32),
            "mem_reserved": reserved,
        }
    )
