"""Recordings, events and averages as columns: plain lists, pandas, Arrow. CSV and Parquet files are written from these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from ..store.store import EventStore
from .averages import FunctionEventAvg
from .event_factory import KINDS, listed
from .event_list import EventList
from .events import DeviceType, FunctionEvent

Table = dict[str, list[Any]]
Reader = Callable[[Any], Any]

# Columns of averages and of events: an attribute, or a function that reads it as a plain value.
_AVERAGE_COLUMNS: Mapping[str, Reader | None] = {
    "key": None,
    "overload_name": None,
    "count": None,
    "self_cpu_time_total": None,
    "cpu_time_total": None,
    "cpu_time": None,
    "self_device_time_total": None,
    "device_time_total": None,
    "device_time": None,
    "self_cpu_memory_usage": None,
    "cpu_memory_usage": None,
    "self_device_memory_usage": None,
    "device_memory_usage": None,
    "flops": None,
    "device_type": lambda row: row.device_type.name,
    "is_user_annotation": None,
    "input_shapes": lambda row: str(row.input_shapes) if row.input_shapes else "",
    "stack": lambda row: "\n".join(row.stack or ()),
}
_EVENT_COLUMNS: Mapping[str, Reader | None] = {
    "id": None,
    "name": None,
    "overload_name": None,
    "kind": lambda event: event["kind"],
    "thread": None,
    "device_type": lambda event: event.device_type.name,
    "device_index": None,
    "start_us": lambda event: event.time_range.start,
    "end_us": lambda event: event.time_range.end,
    "cpu_time_total": None,
    "self_cpu_time_total": None,
    "device_time_total": None,
    "cpu_memory_usage": None,
    "self_cpu_memory_usage": None,
    "device_memory_usage": None,
    "flops": None,
    "sequence_nr": None,
    "step": lambda event: event["step"],
    "parent_id": lambda event: event.cpu_parent.id if event.cpu_parent is not None else None,
    "input_shapes": lambda event: str(event.input_shapes) if event.input_shapes else "",
    "stack": lambda event: "\n".join(event.stack or ()),
}


def to_dict(what: EventStore | Iterable[Any]) -> Table:
    """Columns by name, one entry per row, of a store, of events or of averages.

    Times of a store are whole nanoseconds; those of events and averages are microseconds, as their attributes are.
    """
    if isinstance(what, EventStore):
        return _store_table(what)
    rows = list(what)
    averages = any(isinstance(row, FunctionEventAvg) for row in rows) or (not rows and not isinstance(what, EventList))
    columns = _AVERAGE_COLUMNS if averages else _EVENT_COLUMNS
    for row in rows:
        if not isinstance(row, FunctionEventAvg if averages else FunctionEvent):
            raise TypeError(f"a table is made of events or of averages, not of {type(row).__name__}")
    return {
        name: [read(row) for row in rows] if read is not None else [getattr(row, name) for row in rows]
        for name, read in columns.items()
    }


def to_pandas(what: EventStore | Iterable[Any]) -> Any:
    """to_dict() as a pandas.DataFrame. Needs the extra `pandas`."""
    return import_extra("pandas", "pandas", "to_pandas()").DataFrame(to_dict(what))


def to_arrow(what: EventStore | Iterable[Any]) -> Any:
    """to_dict() as a pyarrow.Table. Needs the extra `parquet`."""
    return import_extra("pyarrow", "parquet", "to_arrow()").table(to_dict(what))


def file_table(store: EventStore, what: str, by_shapes: bool = False, stack_n: int = 0) -> Table:
    """The table that csv and parquet files have: a row per event ("events") or per average ("averages")."""
    if what == "events":
        return to_dict(store)
    if what == "averages":
        return to_dict(EventList.from_store(store).key_averages(by_shapes, stack_n))
    raise ValueError(f"a table shows 'events' or 'averages', not {what!r}")


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an extra; the ImportError names the extra if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {module}: pip install 'mindtorch_v2[{extra}]'") from error


def _store_table(store: EventStore) -> Table:
    devices = [device.name for device in DeviceType]
    idents = np.array([thread.ident for thread in store.threads] or [0], np.int64)

    def texts(column: Any, table: list[str]) -> list[Any]:
        return [table[at] if at >= 0 else None for at in column.tolist()]

    return {
        "name": texts(store.name, list(store.names)),
        "kind": [KINDS[kind] for kind in store.kind.tolist()],
        "thread_id": idents[store.tid].tolist(),
        "thread_name": texts(store.tid, [thread.name for thread in store.threads]),
        "start_ns": (store.start - store.clock_start_ns).tolist(),
        "duration_ns": store.duration.tolist(),
        "self_ns": store.self_ns.tolist(),
        "parent": store.parent.tolist(),
        "step": store.step.tolist(),
        "sequence_nr": store.seq.tolist(),
        "device_type": [devices[device] for device in store.device_type.tolist()],
        "device_index": store.device_index.tolist(),
        "self_cpu_bytes": store.self_bytes.tolist(),
        "cpu_bytes": store.total_bytes.tolist(),
        "self_device_bytes": store.self_device_bytes.tolist(),
        "device_bytes": store.total_device_bytes.tolist(),
        "flops": store.flops.tolist(),
        "module": texts(store.module, list(store.modules)),
        "input_shapes": texts(store.shapes, [str(listed(info.dims)) for info in store.input_infos]),
        "input_types": texts(store.shapes, [str(list(info.types)) for info in store.input_infos]),
        "stack": texts(store.call_stack, ["\n".join(stack) for stack in store.stacks]),
    }
