"""Short HTML tables of events and averages for notebooks, without scripts; all text goes through html_text()."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from .._io.markup import html_text
from .table import format_memory, format_time, format_time_share

_ROWS = 40
_NAME = 'style="text-align:left;font-family:monospace;max-width:36em;overflow-wrap:anywhere"'
_NUMBER = 'style="text-align:right;white-space:nowrap"'
_Column = tuple[str, Callable[[Any], str]]


def averages_table(averages: Sequence[Any], *, memory: bool = False, flops: bool = False, more: Sequence[Any] = ()) -> str:
    """key_averages() and `more` rows as a table: the most self time first, the largest rows only."""
    averages = [*averages, *more]
    total = sum(row.self_cpu_time_total for row in averages)
    device = sum(row.self_device_time_total for row in averages) > 0
    columns: list[_Column] = [
        ("Calls", lambda row: f"{row.count:,}"),
        ("Self CPU", lambda row: format_time(row.self_cpu_time_total)),
        ("Self CPU %", lambda row: format_time_share(row.self_cpu_time_total, total)),
        ("CPU total", lambda row: format_time(row.cpu_time_total)),
        ("CPU time avg", lambda row: format_time(row.cpu_time)),
    ]
    if device:
        columns.append(("Self device", lambda row: format_time(row.self_device_time_total)))
    if memory:
        columns.append(("Self CPU Mem", lambda row: format_memory(row.self_cpu_memory_usage)))
    if flops:
        columns.append(("FLOPs", lambda row: f"{row.flops:,}" if row.flops else "–"))
    columns += _shape_columns(averages)
    largest = sorted(averages, key=lambda row: row.self_cpu_time_total + row.self_device_time_total, reverse=True)[:_ROWS]
    note = f"{len(averages):,} rows, self CPU time {format_time(total)}"
    return _table(columns, largest, len(averages), note)


def events_table(events: Sequence[Any]) -> str:
    """events() as a table: the first of them only."""
    first = list(islice(events, _ROWS))
    columns: list[_Column] = [
        ("Start", lambda event: format_time(event.time_range.start)),
        ("Duration", lambda event: format_time(event.time_range.elapsed_us())),
        ("Self CPU", lambda event: format_time(event.self_cpu_time_total)),
        ("Thread", lambda event: str(event.thread)),
        *_shape_columns(first),
    ]
    return _table(columns, first, len(events), f"{len(events):,} events in order of start")


def list_table(events: Sequence[Any], *, memory: bool = False, flops: bool = False, more: Sequence[Any] = ()) -> str:
    """The table of an EventList, which has events, or averages to which `more` are added."""
    if not len(events):
        return "<p>no events</p>"
    if hasattr(events[0], "time_range"):
        return events_table(events)
    return averages_table(events, memory=memory, flops=flops, more=more)


def _shape_columns(rows: Sequence[Any]) -> list[_Column]:
    return [("Input shapes", lambda row: str(row.input_shapes or ""))] if any(row.input_shapes for row in rows) else []


def _table(columns: Sequence[_Column], rows: Sequence[Any], count: int, note: str) -> str:
    head = "".join(f"<th {_NUMBER}>{html_text(title)}</th>" for title, _ in columns)
    lines = [
        f"<tr><th {_NAME}>{html_text(str(row.key), 1000)}</th>"
        + "".join(f"<td {_NUMBER}>{html_text(cell(row))}</td>" for _, cell in columns)
        + "</tr>"
        for row in rows
    ]
    more = f"; {count - len(rows):,} more are not shown" if count > len(rows) else ""
    return (
        f'<table><caption style="caption-side:bottom">{html_text(note + more)}</caption>'
        f"<thead><tr><th {_NAME}>Name</th>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )
