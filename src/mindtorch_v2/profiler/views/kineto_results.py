"""prof.profiler.kineto_results: a recording as torch's native events, whose values are methods."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch import observer
from .._io.terminal import shown
from ..exporters import chrome
from ..recording.tensor_notes import TensorNotes
from ..store.store import MEMORY_EVENT_NAME, EventStore
from .event_factory import EventFactory
from .event_tree import EventTree, _ProfilerEvent
from .events import DeviceType

_DEVICES = tuple(DeviceType)


class _ProfilerResult:
    """A recording with the rows that events() leaves out, but for first uses of ops, and with every allocation as an event."""

    def __init__(self, store: EventStore, notes: TensorNotes | None = None) -> None:
        """`notes`: the tensors of the recording, for the tree."""
        self._store = store
        self._notes = notes

    def events(self) -> list[_KinetoEvent]:
        """All events in order of start."""
        rows = EventFactory(self._store, whole=True)
        no_events = np.isin(self._store.kind, (observer.MEMORY, observer.FIRST_USE))
        events: list[_KinetoEvent] = [_KinetoEvent(rows, row) for row in np.flatnonzero(~no_events).tolist()]
        events.extend(_MemoryEvent(rows, number) for number in range(len(self._store.mem_time)))
        events.sort(key=lambda event: event.start_ns())
        return events

    def trace_start_ns(self) -> int:
        """When the recording began, in nanoseconds since the epoch."""
        return self._store.wall_start_ns

    def experimental_event_tree(self) -> list[_ProfilerEvent]:
        """The outermost events; the tree continues in their `children`. First uses of ops are not among them."""
        return EventTree(self._store.without_first_uses, self._notes).roots()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording as a Kineto trace."""
        chrome.export(self._store, path)


def _event_attribute(attribute: str) -> Callable[[_KinetoEvent], Any]:
    """A method that returns an attribute of the row's FunctionEvent."""

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

    name = _event_attribute("trace_name")
    overload_name = _event_attribute("overload_name")
    activity_type = _event_attribute("activity_type")
    scope = _event_attribute("scope")
    start_thread_id = _event_attribute("thread")
    end_thread_id = _event_attribute("thread")
    fwd_thread_id = _event_attribute("fwd_thread")
    device_type = _event_attribute("device_type")
    device_index = _event_attribute("device_index")
    device_resource_id = _event_attribute("device_resource_id")
    correlation_id = _event_attribute("id")
    external_id = _event_attribute("external_id")
    linked_correlation_id = _event_attribute("linked_correlation_id")
    sequence_nr = _event_attribute("sequence_nr")
    flow_id = _event_attribute("flow_id")
    flow_type = _event_attribute("flow_type")
    flow_start = _event_attribute("flow_start")
    shapes = _event_attribute("input_shapes")
    structured_input_shapes = _event_attribute("structured_input_shapes")
    structured_input_strides = _event_attribute("structured_input_strides")
    dtypes = _event_attribute("input_dtypes")
    concrete_inputs = _event_attribute("concrete_inputs")
    kwinputs = _event_attribute("kwinputs")
    stack = _event_attribute("stack")
    flops = _event_attribute("flops")
    is_async = _event_attribute("is_async")
    is_user_annotation = _event_attribute("is_user_annotation")
    is_python_function = _event_attribute("is_python_function")
    python_id = _event_attribute("python_id")
    python_parent_id = _event_attribute("python_parent_id")
    python_module_id = _event_attribute("python_module_id")
    metadata_json = _event_attribute("metadata_json")

    def start_ns(self) -> int:
        """Start of the event."""
        return self._since_epoch(self._rows.start[self._row])

    def end_ns(self) -> int:
        """End of the event."""
        return self._since_epoch(self._rows.end[self._row])

    def duration_ns(self) -> int:
        """Nanoseconds from start to end."""
        return self.end_ns() - self.start_ns()

    def nbytes(self) -> int:
        """Bytes that a memory event allocated, negative if it freed them; 0 for other events."""
        return 0

    def is_hidden_event(self) -> bool:
        """False: none of these is to be left out of a view."""
        return False

    def extra_meta(self) -> dict[str, str]:
        """Device, stream and correlation of a device row as JSON texts."""
        fields: dict[str, str] = self._rows.device_fields(self._row)
        return fields

    def cuda_elapsed_us(self) -> int:
        """-1: no event has times of CUDA's own events."""
        return -1

    def privateuse1_elapsed_us(self) -> int:
        """-1: no event has times of another device's own events."""
        return -1

    def _since_epoch(self, moment: int) -> int:
        store = self._rows.store
        return moment - store.clock_start_ns + store.wall_start_ns

    def __repr__(self) -> str:
        return f"<_KinetoEvent {shown(str(self.name()))} start_ns={self.start_ns()} duration_ns={self.duration_ns()}>"


def _constant(value: Any) -> Callable[[_MemoryEvent], Any]:
    def read(self: _MemoryEvent) -> Any:
        return value() if callable(value) else value

    return read


class _MemoryEvent(_KinetoEvent):
    """An allocation or a free; `_row` is its number among the memory columns."""

    __slots__ = ()

    def start_ns(self) -> int:
        """Time of the allocation or free."""
        return self._since_epoch(self._rows.mem_time[self._row])

    end_ns = start_ns

    def nbytes(self) -> int:
        """Bytes allocated, negative if they were freed."""
        return int(self._rows.mem_bytes[self._row])

    def _thread(self) -> int:
        return self._rows.mem_tid[self._row] + 1

    start_thread_id = end_thread_id = _thread

    def device_type(self) -> DeviceType:
        """The device whose memory it is."""
        return _DEVICES[self._rows.mem_device_type[self._row]]

    def device_index(self) -> int:
        """The number of the device, -1 for the CPU."""
        return int(self._rows.mem_device_index[self._row])

    def device_resource_id(self) -> int:
        """The operating system's number of the thread."""
        return self._rows.store.threads[self._rows.mem_tid[self._row]].ident

    name = _constant(MEMORY_EVENT_NAME)
    activity_type = _constant("cpu_instant_event")
    overload_name = metadata_json = _constant("")
    scope = fwd_thread_id = correlation_id = external_id = linked_correlation_id = flow_id = flow_type = flops = _constant(0)
    sequence_nr = python_id = python_parent_id = python_module_id = _constant(-1)
    flow_start = is_async = is_user_annotation = is_python_function = _constant(False)
    shapes = structured_input_shapes = structured_input_strides = dtypes = concrete_inputs = stack = _constant(list)
    kwinputs = extra_meta = _constant(dict)
