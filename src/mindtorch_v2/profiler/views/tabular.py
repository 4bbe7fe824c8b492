"""Recordings, events and averages as tables: plain lists, pandas, Arrow, Polars; CSV and Parquet files are made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from .._io.utf8 import utf8
from ..store.store import EventStore
from . import columns
from .averages import FunctionEventAvg
from .columns import Coded, Columns
from .event_list import EventList
from .events import FunctionEvent

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
# Of events that are not the rows of a recording: a list that was put together by hand, or changed.
_EVENT_COLUMNS: Mapping[str, Reader | None] = {
    "name": None,
    "overload_name": lambda event: event.overload_name or None,
    "kind": lambda event: event["kind"],
    "thread": None,
    "device_type": lambda event: event.device_type.name,
    "device": lambda event: columns.device_text(event.device_type.name, event.device_index),
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
    "module": lambda event: event["module"],
    "input_shapes": lambda event: str(event.input_shapes) if event.input_shapes else None,
    "stack": lambda event: "\n".join(event.stack) if event.stack else None,
}


def to_columns(what: EventStore | Iterable[Any]) -> Columns:
    """Columns by name of a store, of events or of averages, as arrays where the rows of a recording are behind them.

    Times of a store are whole nanoseconds; those of events and averages are microseconds, as their attributes are.
    """
    if isinstance(what, EventStore):
        return columns.of_store(what)
    if isinstance(what, EventList) and what._columns is not None:
        return columns.of_events(what._columns)
    rows = list(what)
    averages = any(isinstance(row, FunctionEventAvg) for row in rows) or (not rows and not isinstance(what, EventList))
    for row in rows:
        if not isinstance(row, FunctionEventAvg if averages else FunctionEvent):
            raise TypeError(f"a table is made of events or of averages, not of {type(row).__name__}")
    readers = _AVERAGE_COLUMNS if averages else _EVENT_COLUMNS
    table: Columns = {} if averages else _numbers(rows)
    for name, read in readers.items():
        table[name] = [read(row) for row in rows] if read is not None else [getattr(row, name) for row in rows]
    return table


def _numbers(events: list[Any]) -> Columns:
    """`id` and `parent_id` of events: their places in the list, from 1."""
    places = {id(event): place for place, event in enumerate(events, 1)}
    return {"id": list(places.values()), "parent_id": [places.get(id(event.cpu_parent)) for event in events]}


def to_dict(what: EventStore | Iterable[Any]) -> Table:
    """The columns of `to_columns` as lists of plain values, one entry per row."""
    return {name: column if isinstance(column, list) else column.tolist() for name, column in to_columns(what).items()}


def to_pandas(what: EventStore | Iterable[Any]) -> Any:
    """The columns as a pandas.DataFrame: shared texts are categories. Needs the extra `pandas`."""
    pandas = import_extra("pandas", "pandas", "to_pandas()")

    def series(column: Any) -> Any:
        if isinstance(column, Coded):
            codes, texts = column.distinct()
            return pandas.Categorical.from_codes(codes, texts)
        if isinstance(column, np.ma.MaskedArray):
            return pandas.arrays.IntegerArray(np.asarray(column.data, np.int64), np.ma.getmaskarray(column))
        return column

    return pandas.DataFrame({name: series(column) for name, column in to_columns(what).items()})


def to_arrow(what: EventStore | Iterable[Any]) -> Any:
    """The columns as a pyarrow.Table: shared texts are dictionaries. Needs the extra `parquet`."""
    arrow = import_extra("pyarrow", "parquet", "to_arrow()")

    def array(column: Any) -> Any:
        if isinstance(column, Coded):
            codes = np.asarray(column.codes, np.int32)
            texts = arrow.array([utf8(text).decode() for text in column.texts], arrow.string())
            return arrow.DictionaryArray.from_arrays(arrow.array(codes, mask=codes < 0), texts)
        if isinstance(column, np.ma.MaskedArray):
            return arrow.array(column.data, mask=np.ma.getmaskarray(column))
        return arrow.array(
            [utf8(cell).decode() if isinstance(cell, str) else cell for cell in column] if isinstance(column, list) else column
        )

    return arrow.table({name: array(column) for name, column in to_columns(what).items()})


def to_polars(what: EventStore | Iterable[Any]) -> Any:
    """The columns as a polars.DataFrame: shared texts are categories. Needs the extra `polars`."""
    polars = import_extra("polars", "polars", "to_polars()")
    return polars.from_arrow(to_arrow(what))


def file_rows(store: EventStore, what: str, by_shapes: bool = False, stack_n: int = 0) -> EventStore | EventList:
    """What csv and parquet files have rows of: events ("events") or averages ("averages")."""
    if what == "events":
        return store
    if what == "averages":
        return EventList.from_store(store).key_averages(by_shapes, stack_n)
    raise ValueError(f"a table shows 'events' or 'averages', not {what!r}")


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an extra; the ImportError names the extra if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {module}: pip install 'mindtorch_v2[{extra}]'") from error
