"""The rows of a recording as columns, read from the store without making events.

A column is an array, a masked array where values may be missing, or a `Coded` one: few texts that many rows share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store.store import EventStore
from .event_factory import KINDS, EventFactory, flat_shapes, listed
from .events import DeviceType

_DEVICES = tuple(device.name for device in DeviceType)


class Coded(NamedTuple):
    """A column of texts: the number of each row's text, -1 where it has none."""

    codes: NDArray[Any]
    texts: Sequence[str]

    def tolist(self) -> list[str | None]:
        """The text of every row."""
        texts = [*self.texts, None]
        return [texts[code] for code in self.codes.tolist()]

    def distinct(self) -> Coded:
        """The same column with no text twice, as categories must be."""
        numbers = {text: number for number, text in enumerate(dict.fromkeys(self.texts))}
        if len(numbers) == len(self.texts):
            return self
        places = np.array([numbers[text] for text in self.texts] + [-1])
        return Coded(places[self.codes], list(numbers))


Columns = dict[str, Any]


def of_events(rows: EventFactory) -> Columns:
    """One row for each event of a list: torch's attributes, times in microseconds.

    `id` numbers the rows from 1, and `parent_id` is the `id` of the row around it.
    """
    store = rows.store
    host = store.device_type == 0
    memory = store.kind == observer.MEMORY
    origin = _origins(store)
    device_us: Any = store.total_device_ns / 1000 if rows.has_device and rows.use_device else np.zeros(len(store))
    launched_by = store.launch_tid
    named = store.options.get("capture_overload_names")
    return {
        **_identity(store),
        "name": Coded(store.label, store.labels),
        "overload_name": Coded(store.op if named else np.full(len(store), -1), store.overloads),
        "kind": Coded(store.kind, KINDS),
        "thread": np.where(launched_by >= 0, launched_by, store.tid) + 1,
        **_devices(store),
        "device_index": np.where(store.device_index >= 0, store.device_index, np.where(memory, 0, store.pid)),
        "start_us": (store.start - origin) / 1000,
        "end_us": (store.end - origin) / 1000,
        "cpu_time_total": np.where(host, store.duration / 1000, 0),
        "self_cpu_time_total": np.where(host, store.self_ns / 1000, 0),
        "device_time_total": device_us,
        "cpu_memory_usage": store.total_bytes,
        "self_cpu_memory_usage": np.where(host, store.self_bytes, 0),
        "device_memory_usage": store.total_device_bytes,
        "flops": np.ma.masked_array(store.flops, memory),
        "sequence_nr": store.seq,
        "step": store.step,
        "module": _modules(store),
        "input_shapes": Coded(store.shapes, [str(flat_shapes(info.dims)) for info in store.input_infos]),
        "stack": _stacks(store),
    }


def of_store(store: EventStore) -> Columns:
    """One row for each event of a recording, those that views leave out included; times in nanoseconds."""
    idents = np.array([thread.ident for thread in store.threads] or [0], np.int64)
    return {
        **_identity(store),
        "name": Coded(store.name, store.names),
        "kind": Coded(store.kind, KINDS),
        "thread_id": idents[store.tid],
        "thread_name": Coded(store.tid, [thread.name for thread in store.threads]),
        "start_ns": store.start - store.clock_start_ns,
        "duration_ns": store.duration,
        "self_ns": store.self_ns,
        "step": store.step,
        "sequence_nr": store.seq,
        **_devices(store),
        "device_index": store.device_index,
        "self_cpu_bytes": store.self_bytes,
        "cpu_bytes": store.total_bytes,
        "self_device_bytes": store.self_device_bytes,
        "device_bytes": store.total_device_bytes,
        "flops": store.flops,
        "module": _modules(store),
        "input_shapes": Coded(store.shapes, [str(listed(info.dims)) for info in store.input_infos]),
        "input_types": Coded(store.shapes, [str(list(info.types)) for info in store.input_infos]),
        "stack": _stacks(store),
    }


def _identity(store: EventStore) -> Columns:
    numbers = np.arange(1, len(store) + 1)
    return {"id": numbers, "parent_id": np.ma.masked_array(store.parent + 1, store.parent < 0)}


def _origins(store: EventStore) -> NDArray[np.int64]:
    """When the recording of each row began."""
    firsts, origins = (np.array(part, np.int64) for part in zip(*store.segments, strict=True))
    at = np.searchsorted(firsts, np.arange(len(store)), side="right") - 1
    return np.asarray(origins[at])


def _devices(store: EventStore) -> Columns:
    """`device_type` by torch's name, and `device` as a tensor's is written: cpu, npu:0."""
    places = store.device_type.astype(np.int64) << 32 | np.maximum(store.device_index, 0) * (store.device_type != 0)
    known, codes = np.unique(places, return_inverse=True)
    texts = [device_text(_DEVICES[place >> 32], place & 0xFFFFFFFF) for place in known.tolist()]
    return {"device_type": Coded(store.device_type, _DEVICES), "device": Coded(codes, texts)}


def device_text(device_type: str, index: int) -> str:
    """A device as tensors write it: cpu, npu:0."""
    if device_type == "CPU":
        return "cpu"
    return f"{'npu' if device_type == 'PrivateUse1' else device_type.lower()}:{index}"


def _modules(store: EventStore) -> Coded:
    """The module of each row; that of what launched it, for work of a device."""
    module = store.module
    if store.has_device_rows:
        module = np.where(module < 0, np.append(module, -1)[store.launcher], module)
    return Coded(module, store.modules)


def _stacks(store: EventStore) -> Coded:
    """The frames of each row, innermost first, a line each; a stack without frames is none."""
    texts = ["\n".join(stack) for stack in store.stacks]
    empty = np.array([not text for text in texts] + [True])
    return Coded(np.where(empty[store.call_stack], -1, store.call_stack), texts)
