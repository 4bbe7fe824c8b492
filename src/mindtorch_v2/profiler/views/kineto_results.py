"""prof.profiler.kineto_results: a recording as torch's native events, each value behind a method."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..._dispatch import observer
from ..exporters import chrome
from ..store.store import MEMORY_EVENT_NAME, EventStore
from .event_factory import EventFactory
from .event_tree import EventTree, _ProfilerEvent
from .events import DeviceType

_DEVICES = tuple(DeviceType)


class _ProfilerResult:
    """The last recording, whole: also what events() leaves out, and every allocation and free."""

    def __init__(self, store: EventStore) -> None:
        self._store = store

    def events(self) -> list[_KinetoEvent]:
        """All events in order of start."""
        rows = EventFactory(self._store, whole=True)
        found: list[_KinetoEvent] = [
            _KinetoEvent(rows, row) for row in np.flatnonzero(self._store.kind != observer.MEMORY).tolist()
        ]
        found.extend(_MemoryEvent(rows, number) for number in range(len(self._store.mem_time)))
        found.sort(key=lambda event: event.start_ns())
        return found

    def trace_start_ns(self) -> int:
        """When the recording began, in nanoseconds since the epoch."""
        return self._store.wall_start_ns

    def experimental_event_tree(self) -> list[_ProfilerEvent]:
        """The outermost events; what they called is in their `children`."""
        return EventTree(self._store).roots()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording as a Kineto trace."""
        chrome.export(self._store, path)


def _same(attribute: str) -> Any:
    """A method that answers what the row's FunctionEvent has under another name or the same."""

    def read(self: _KinetoEvent) -> Any:
        return getattr(self._rows.peek(self._row), attribute)

    read.__doc__ = f"{attribute} of the FunctionEvent."
    return read


class _KinetoEvent:
    """One event. Times are nanoseconds since the epoch."""

    __slots__ = ("_row", "_rows")

    def __init__(self, rows: EventFactory, row: int) -> None:
        self._rows = rows
        self._row = row

    name = _same("trace_name")
    overload_name = _same("overload_name")
    activity_type = _same("activity_type")
    scope = _same("scope")
    start_thread_id = _same("thread")
    end_thread_id = _same("thread")
    fwd_thread_id = _same("fwd_thread")
    device_type = _same("device_type")
    device_index = _same("device_index")
    device_resource_id = _same("device_resource_id")
    correlation_id = _same("id")
    external_id = _same("external_id")
    linked_correlation_id = _same("linked_correlation_id")
    sequence_nr = _same("sequence_nr")
    flow_id = _same("flow_id")
    flow_type = _same("flow_type")
    flow_start = _same("flow_start")
    shapes = _same("input_shapes")
    structured_input_shapes = _same("structured_input_shapes")
    structured_input_strides = _same("structured_input_strides")
    dtypes = _same("input_dtypes")
    concrete_inputs = _same("concrete_inputs")
    kwinputs = _same("kwinputs")
    stack = _same("stack")
    flops = _same("flops")
    is_async = _same("is_async")
    is_user_annotation = _same("is_user_annotation")
    is_python_function = _same("is_python_function")
    python_id = _same("python_id")
    python_parent_id = _same("python_parent_id")
    python_module_id = _same("python_module_id")
    metadata_json = _same("metadata_json")

    def start_ns(self) -> int:
        """When it began."""
        return self._since_epoch(self._rows.start[self._row])

    def end_ns(self) -> int:
        """When it ended."""
        return self._since_epoch(self._rows.end[self._row])

    def duration_ns(self) -> int:
        """How long it took."""
        return self.end_ns() - self.start_ns()

    def nbytes(self) -> int:
        """Bytes that a memory event allocated, negative if it freed them; 0 for other events."""
        return 0

    def is_hidden_event(self) -> bool:
        """Whether a view should leave it out: none of these."""
        return False

    def extra_meta(self) -> dict[str, str]:
        """What a trace says of the place of what ran on a device, as JSON texts."""
        fields: dict[str, str] = self._rows.device_fields(self._row)
        return fields

    def cuda_elapsed_us(self) -> int:
        """-1: nothing here was timed by CUDA itself."""
        return -1

    def privateuse1_elapsed_us(self) -> int:
        """-1: nothing here was timed by a device of another vendor itself."""
        return -1

    def _since_epoch(self, moment: int) -> int:
        store = self._rows.store
        return moment - store.clock_start_ns + store.wall_start_ns

    def __repr__(self) -> str:
        return f"<_KinetoEvent {self.name()} start_ns={self.start_ns()} duration_ns={self.duration_ns()}>"


def _fixed(value: Any) -> Any:
    def read(self: _MemoryEvent) -> Any:
        return value() if callable(value) else value

    return read


class _MemoryEvent(_KinetoEvent):
    """An allocation or a free; `_row` counts those."""

    __slots__ = ()

    def start_ns(self) -> int:
        """When it happened."""
        return self._since_epoch(self._rows.mem_time[self._row])

    end_ns = start_ns

    def nbytes(self) -> int:
        """Bytes allocated, negative if they were freed."""
        return int(self._rows.mem_bytes[self._row])

    def _thread(self) -> int:
        return self._rows.mem_tid[self._row] + 1

    start_thread_id = end_thread_id = _thread

    def device_type(self) -> DeviceType:
        """Whose memory it is."""
        return _DEVICES[self._rows.mem_device_type[self._row]]

    def device_index(self) -> int:
        """The number of the device, -1 for the CPU."""
        return int(self._rows.mem_device_index[self._row])

    def device_resource_id(self) -> int:
        """The operating system's number of the thread."""
        return self._rows.store.threads[self._rows.mem_tid[self._row]].ident

    name = _fixed(MEMORY_EVENT_NAME)
    activity_type = _fixed("cpu_instant_event")
    overload_name = metadata_json = _fixed("")
    scope = fwd_thread_id = correlation_id = external_id = linked_correlation_id = flow_id = flow_type = flops = _fixed(0)
    sequence_nr = python_id = python_parent_id = python_module_id = _fixed(-1)
    flow_start = is_async = is_user_annotation = is_python_function = _fixed(False)
    shapes = structured_input_shapes = structured_input_strides = dtypes = concrete_inputs = stack = _fixed(list)
    kwinputs = extra_meta = _fixed(dict)
