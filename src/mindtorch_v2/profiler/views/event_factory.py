"""Makes FunctionEvents out of store rows, each once and on first access; how each attribute is read from the columns."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store.categories import categories
from ..store.store import EventStore, InputInfo
from . import event_copies
from .event_metadata import read_metadata
from .events import DeviceType, FunctionEvent, Interval, Kernel
from .row_objects import LazyAttributes, Reader, bind_row

# By observer kind: event["kind"], and torch's scope number.
KINDS = (
    "op",
    "backward",
    "engine",
    "scope",
    "step",
    "python",
    "module",
    "memory",
    "kernel",
    "copy",
    "fill",
    "runtime",
    "first_use",
)
_SCOPES = (0, 1, 0, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0)
_ANNOTATIONS = (observer.SCOPE, observer.STEP)
_PYTHON = (observer.PYTHON, observer.MODULE)
_DEVICES = tuple(DeviceType)
# Types of flows: from an op to its backward node, from a launch to the device row.
_FORWARD_BACKWARD, _LAUNCH = 1, 2
_NO_INPUTS = InputInfo((), (), (), ())


class EventFactory:
    """The events of a store by row number, and its columns as attributes. `whole` includes rows that views leave out."""

    def __init__(self, store: EventStore, whole: bool = False) -> None:
        self.whole = store
        self.store = store if whole else store.visible
        self.changed = False  # whether an event was assigned to, so that it differs from the columns
        self._events: list[FunctionEvent | None] = [None] * len(self.store)
        self.origins = [origin for _, origin in self.store.segments]
        self.firsts = [first for first, _ in self.store.segments]
        self.use_device: str | None = self.store.options.get("use_device")
        self.has_device = self.store.has_device_rows

    def __len__(self) -> int:
        return len(self._events)

    def __reduce__(self) -> Any:
        """What a copy and a pickle are made of: the store, and events that were changed. Others are made when asked for."""
        changed = [row for row, event in enumerate(self._events) if event is not None and event._live is None]
        flat = event_copies.flattened((self._events[row] for row in changed), self._is_changed) if changed else None
        return EventFactory, (self.whole, self.store is self.whole), (self.changed, changed, flat)

    def __setstate__(self, state: tuple[bool, list[int], event_copies.Flat | None]) -> None:
        self.changed, rows, flat = state
        for row, event in zip(rows, event_copies.rebuilt(flat), strict=True) if flat is not None else ():
            self._events[row] = event

    def has(self, row: int, event: object) -> bool:
        """Whether this object is the event of a row."""
        return self._events[row] is event

    def _is_changed(self, event: LazyAttributes) -> bool:
        origin = event._origin if event._live is None else None
        return origin is not None and origin[0] is self and self.has(origin[1], event)

    def __getattr__(self, column: str) -> memoryview:
        # Indexing a memoryview returns plain Python numbers, and is faster than indexing an array.
        if "store" not in self.__dict__:  # a copy that is still being made
            raise AttributeError(column)
        view = memoryview(getattr(self.store, column))
        self.__dict__[column] = view
        return view

    def event(self, row: int) -> FunctionEvent:
        """The event of a row: the same object at every call."""
        event = self._events[row]
        if event is None:
            event = self._events[row] = FunctionEvent.__new__(FunctionEvent)
            bind_row(event, self, row)
        return event

    def peek(self, row: int) -> FunctionEvent:
        """The event of a row; a new one is not stored, since a cycle of rows and events waits for a garbage collection."""
        event = self._events[row]
        if event is None:
            event = FunctionEvent.__new__(FunctionEvent)
            bind_row(event, self, row)
        return event

    def events(self, rows: range) -> Iterator[FunctionEvent]:
        """The events of some rows, each made when the iterator reaches it."""
        events, new = self._events, FunctionEvent.__new__
        for row in rows:
            event = events[row]
            if event is None:
                event = events[row] = new(FunctionEvent)
                bind_row(event, self, row)
            yield event

    def origin(self, row: int) -> int:
        """Clock time at which the recording of this row began."""
        origins = self.origins
        return origins[0] if len(origins) == 1 else origins[bisect_right(self.firsts, row) - 1]

    def total_us(self, row: int) -> float:
        """Microseconds on the CPU, children included."""
        return (self.end[row] - self.start[row]) / 1000 if self.device_type[row] == 0 else 0

    def self_us(self, row: int) -> float:
        """Microseconds on the CPU outside of children."""
        return self.outside_children_ns[row] / 1000

    def device_total_us(self, row: int) -> float:
        """Microseconds on a device, children included."""
        return self.total_device_ns[row] / 1000 if self.has_device else 0

    def device_self_us(self, row: int) -> float:
        """Microseconds on a device outside of children."""
        return self.self_device_ns[row] / 1000 if self.has_device else 0

    def kernels(self, row: int) -> list[Kernel]:
        """The device work that this row launched itself, in order of start."""
        if not self.has_device:
            return []
        order, bounds = self._launched
        return [
            Kernel(self.store.labels[self.label[at]], self.device_index[at], (self.end[at] - self.start[at]) / 1000)
            for at in order[bounds[row] : bounds[row + 1]].tolist()
        ]

    def children(self, row: int) -> list[FunctionEvent]:
        """Direct children in order of start."""
        order, bounds = self._children
        return [self.event(child) for child in order[bounds[row] : bounds[row + 1]].tolist()]

    def inputs(self, row: int) -> InputInfo:
        """The inputs of the call, empty if they were not recorded."""
        at = self.shapes[row]
        return self.store.input_infos[at] if at >= 0 else _NO_INPUTS

    def flow(self, row: int) -> tuple[int, bool, int] | None:
        """Number of this row's link, whether the link starts here, and its type."""
        return self._flows.get(row)

    def item(self, row: int, key: str) -> Any:
        """The value of event[key]; KeyError for other keys than those of _ITEMS."""
        return _ITEMS[key](self, row)

    def device_fields(self, row: int) -> dict[str, str]:
        """Device, stream and correlation of a device row as JSON texts, if expose_kineto_event_metadata is on."""
        return _device_fields(self, row)

    @cached_property
    def _children(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """All rows by parent, and where the children of each row begin among them."""
        return _grouped_by(self.store.parent)

    @cached_property
    def _launched(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """All rows by the row that launched them, and where those of each row begin among them."""
        return _grouped_by(np.where(self.store.is_work, self.store.launcher, -1))

    @cached_property
    def _flows(self) -> dict[int, tuple[int, bool, int]]:
        forward, backward = self.store.links
        flows: dict[int, tuple[int, bool, int]] = {}
        for number, (ahead, back) in enumerate(zip(forward.tolist(), backward.tolist(), strict=True), 1):
            flows[ahead], flows[back] = (number, True, _FORWARD_BACKWARD), (number, False, _FORWARD_BACKWARD)
        if self.has_device:
            for row in np.flatnonzero((self.store.correlation >= 0) & (self.store.linked >= 0)).tolist():
                flows[row] = (self.correlation[row], self.kind[row] == observer.RUNTIME, _LAUNCH)
        return flows


def _grouped_by(above: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    order = np.argsort(above, kind="stable")
    return order, np.searchsorted(above[order], np.arange(len(above) + 1))


def listed(value: Any) -> Any:
    """Tuples as lists, all the way down: how torch shows shapes."""
    return [listed(entry) for entry in value] if isinstance(value, tuple) else value


def flat_shapes(dims: tuple[Any, ...]) -> list[list[int]]:
    """input_shapes of a call: a list of tensors counts as no shape."""
    return [[] if entry and isinstance(entry[0], tuple) else list(entry) for entry in dims]


def _is_memory(rows: EventFactory, row: int) -> bool:
    return rows.kind[row] == observer.MEMORY


def _time_range(rows: EventFactory, row: int) -> Interval:
    origin = rows.origin(row)
    return Interval((rows.start[row] - origin) / 1000, (rows.end[row] - origin) / 1000)


def _parent(rows: EventFactory, row: int) -> FunctionEvent | None:
    parent = rows.parent[row]
    return rows.event(parent) if parent >= 0 else None


def _stack(rows: EventFactory, row: int) -> list[str]:
    at = rows.call_stack[row]
    return list(rows.store.stacks[at]) if at >= 0 else []


def _overload(rows: EventFactory, row: int) -> str:
    op = rows.op[row]
    return rows.store.overloads[op] if op >= 0 and rows.store.options.get("capture_overload_names") else ""


def _fwd_thread(rows: EventFactory, row: int) -> int:
    return rows.tid[row] + 1 if _is_memory(rows, row) else rows.fwd_tid[row] + 1


def _activity(rows: EventFactory, row: int) -> str | None:
    host, device = categories(rows.store)
    return (host if rows.device_type[row] == 0 else device)[rows.kind[row]]


def _thread(rows: EventFactory, row: int) -> int:
    # Of a device row: the thread that launched it.
    launched_by = rows.launch_tid[row]
    return (launched_by if launched_by >= 0 else rows.tid[row]) + 1


def _device_index(rows: EventFactory, row: int) -> int:
    if rows.device_index[row] >= 0:
        return rows.device_index[row]
    return 0 if _is_memory(rows, row) else rows.store.pid


def _linked(rows: EventFactory, row: int) -> int:
    """The id of the op that a device row or a call of the runtime belongs to, 0 for other rows."""
    if not rows.store.has_driver_rows:
        return 0
    at = rows.linked[row]
    return rows.ids[at] if at >= 0 else 0


def _external_id(rows: EventFactory, row: int) -> int:
    if _is_memory(rows, row):
        return 0
    from_driver = rows.kind[row] == observer.RUNTIME or rows.device_type[row] != 0
    return _linked(rows, row) if from_driver else rows.ids[row]


def _device_fields(rows: EventFactory, row: int) -> dict[str, str]:
    if not rows.store.options.get("expose_kineto_event_metadata") or rows.device_type[row] == 0:
        return {}
    fields = {"device": str(max(rows.device_index[row], 0)), "stream": str(rows.store.threads[rows.tid[row]].ident)}
    return {**fields, "correlation": str(rows.correlation[row])} if rows.correlation[row] >= 0 else fields


def _told_fields(rows: EventFactory, row: int) -> dict[str, str]:
    """What a trace tells of a collective or a kernel, as texts."""
    at = rows.store.details[row] if rows.store.row_details else -1
    if at < 0:
        return {}
    told = json.loads(rows.store.row_details[at].arguments)
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in told.items()}


def _metadata_json(rows: EventFactory, row: int) -> str:
    fields = _device_fields(rows, row)
    if rows.store.options.get("expose_kineto_event_metadata") and rows.trace_index[row] >= 0:
        fields["Ev Idx"] = str(rows.trace_index[row])
    return ", ".join(f'"{name}": {value}' for name, value in fields.items())


def _module_number(rows: EventFactory, row: int) -> int:
    if rows.kind[row] != observer.MODULE:
        return -1
    number = rows.store.names[rows.name[row]].rpartition("_")[2]
    return int(number) if number.isdigit() else -1


def _not_of_memory(read: Reader) -> Reader:
    """A reader of None for memory events, and of what `read` returns for others."""
    return lambda rows, row: None if _is_memory(rows, row) else read(rows, row)


def _always(value: Any) -> Reader:
    return lambda rows, row: value


def _flow_part(part: int, missing: Any) -> Reader:
    def read(rows: EventFactory, row: int) -> Any:
        link = rows.flow(row)
        return link[part] if link else missing

    return _not_of_memory(read)


_READERS: dict[str, Reader] = {
    "id": lambda rows, row: rows.ids[row],
    "node_id": _always(-1),
    "name": lambda rows, row: rows.store.labels[rows.label[row]],
    "overload_name": _overload,
    "trace_name": _not_of_memory(lambda rows, row: rows.store.names[rows.name[row]]),
    "time_range": _time_range,
    "thread": _thread,
    "fwd_thread": _fwd_thread,
    "kernels": lambda rows, row: rows.kernels(row),
    "count": _always(1),
    "cpu_children": lambda rows, row: rows.children(row),
    "cpu_parent": _parent,
    "input_shapes": lambda rows, row: flat_shapes(rows.inputs(row).dims),
    "concrete_inputs": _not_of_memory(lambda rows, row: listed(rows.inputs(row).concrete)),
    "kwinputs": _not_of_memory(lambda rows, row: {name: listed(value) for name, value in rows.inputs(row).keywords}),
    "stack": _stack,
    "scope": lambda rows, row: _SCOPES[rows.kind[row]],
    "use_device": lambda rows, row: rows.use_device,
    "cpu_memory_usage": lambda rows, row: rows.total_bytes[row],
    "device_memory_usage": lambda rows, row: rows.total_device_bytes[row],
    "is_async": lambda rows, row: rows.store.has_communications and bool(rows.store.is_async[row]),
    "is_remote": _always(False),
    "sequence_nr": lambda rows, row: rows.seq[row],
    "device_type": lambda rows, row: _DEVICES[rows.device_type[row]],
    "device_index": _device_index,
    "device_resource_id": lambda rows, row: rows.store.threads[rows.tid[row]].ident,
    "is_legacy": _always(False),
    "flops": _not_of_memory(lambda rows, row: rows.flops[row]),
    "is_user_annotation": lambda rows, row: rows.kind[row] in _ANNOTATIONS,
    "is_python_function": lambda rows, row: rows.kind[row] in _PYTHON,
    "activity_type": _activity,
    "self_cpu_percent": _always(-1),
    "total_cpu_percent": _always(-1),
    "total_device_percent": _always(-1),
    "_metadata_json": _not_of_memory(_metadata_json),
    "flow_id": _flow_part(0, 0),
    "flow_type": _flow_part(2, 0),
    "flow_start": _flow_part(1, False),
    "external_id": _external_id,
    "linked_correlation_id": _linked,
    "event_metadata": lambda rows, row: read_metadata({**_told_fields(rows, row), **_device_fields(rows, row)}),
    "structured_input_shapes": _not_of_memory(lambda rows, row: listed(rows.inputs(row).dims)),
    "structured_input_strides": _not_of_memory(lambda rows, row: listed(rows.inputs(row).strides)),
    "input_dtypes": _not_of_memory(lambda rows, row: list(rows.inputs(row).types)),
    "python_id": lambda rows, row: rows.python_id[row],
    "python_parent_id": lambda rows, row: rows.python_parent_id[row],
    "python_module_id": _module_number,
}
FunctionEvent._read_with(_READERS)


def _module(rows: EventFactory, row: int) -> str | None:
    at = rows.module[row]
    if at < 0 and rows.has_device and rows.launcher[row] >= 0:
        at = rows.module[rows.launcher[row]]
    return rows.store.modules[at] if at >= 0 else None


_ITEMS: dict[str, Reader] = {
    "kind": lambda rows, row: KINDS[rows.kind[row]],
    "step": lambda rows, row: rows.step[row],
    "start_ns": lambda rows, row: rows.start[row],
    "end_ns": lambda rows, row: rows.end[row],
    "duration_ns": lambda rows, row: rows.end[row] - rows.start[row],
    "thread_id": lambda rows, row: rows.store.threads[rows.tid[row]].ident,
    "module": _module,
}
