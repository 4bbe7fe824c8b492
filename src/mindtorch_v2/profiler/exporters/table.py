"""torch.profiler's text table: a row per event or average, with columns for what was recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import log10
from typing import Any, NamedTuple

from .._io.terminal import cut, cut_front, padded, shown, width
from ..recording.op_facts import counted_by_torch

_GAP = "  "
_NUMBER_WIDTH = 12
_NAME_MARGIN = 4
_CUT = "..."
_MOST_TEXT = 1_000_000  # characters of a cell
_SOURCE = "Source Location"
_FLOP_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_TIME_UNITS = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0}
_MEMORY_UNITS = (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024))
# Names of devices that a sort key may have for "device".
_DEVICE_NAMES = ("cuda", "xpu", "privateuse1")
_NPU = re.compile("(?:^|(?<=_))npu(?=_)")  # the whole word: "input_shapes" has those letters too


def format_time(time_us: float, unit: str | None = None) -> str:
    """Microseconds as text, in `unit` or in the largest one that leaves a digit before the point."""
    if not isinstance(unit, str) or unit not in _TIME_UNITS:
        unit = "s" if time_us >= 1_000_000 else "ms" if time_us >= 1_000 else "us"
    return f"{time_us / _TIME_UNITS[unit]:.3f}{unit}"


def format_time_share(time_us: float, total_time_us: float) -> str:
    """A part of a whole in percent; NaN when the whole is nothing."""
    if total_time_us == 0:
        if time_us != 0:
            raise AssertionError(f"Expected time_us == 0 but got {time_us}")
        return "NaN"
    return f"{time_us * 100.0 / total_time_us:.2f}%"


def format_memory(nbytes: int) -> str:
    """Bytes as text, in the largest unit that leaves a digit before the point."""
    for unit, size in _MEMORY_UNITS:
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


@dataclass
class Summary:
    """Totals and widths over all events, which decide about columns; widths are in columns of a terminal."""

    count: int = 0
    self_cpu_us: float = 0
    self_device_us: float = 0
    name_width: int = 0
    shapes_width: int = 0
    source_width: int = -1  # below 0: no event has a stack
    has_overloads: bool = False
    has_nodes: bool = False
    has_device_time: bool = False
    has_device_memory: bool = False
    least_flops: float = 0  # of ops that torch counts, too
    least_other_flops: float = 0
    use_device: str | None = None


def summarize(events: Iterable[Any]) -> Summary:
    """The summary of events, in one pass."""
    total = Summary()
    for event in events:
        total.count += event.count
        total.self_cpu_us += event.self_cpu_time_total
        device_us = event.self_device_time_total
        total.has_device_time = total.has_device_time or device_us > 0
        # A label on the device spans kernels that are counted themselves.
        if (event.device_type == "CPU" and event.is_legacy) or (event.device_type != "CPU" and not is_label(event)):
            total.self_device_us += device_us
        total.has_device_memory = total.has_device_memory or event.self_device_memory_usage > 0
        total.use_device = total.use_device or event.use_device
        total.name_width = max(total.name_width, text_width(event.key))
        total.has_overloads = total.has_overloads or bool(event.overload_name)
        total.has_nodes = total.has_nodes or event.node_id != -1
        if event.input_shapes:
            total.shapes_width = max(total.shapes_width, len(str(event.input_shapes)))
        if event.stack:
            total.source_width = max(total.source_width, *map(text_width, event.stack))
        if event.flops is not None and event.flops > 0:
            # As in torch, the unit of the FLOPs column follows the least figure, but only of these: here more ops have FLOPs.
            if event.key in counted_by_torch():
                total.least_flops = min(total.least_flops or event.flops, event.flops)
            else:
                total.least_other_flops = min(total.least_other_flops or event.flops, event.flops)
    return total


def _joined(total: Summary, more: Summary) -> Summary:
    """The summary of events and of rows of the host beside them."""
    return replace(
        total,
        count=total.count + more.count,
        self_cpu_us=total.self_cpu_us + more.self_cpu_us,
        name_width=max(total.name_width, more.name_width),
    )


def text_width(text: str) -> int:
    """The columns that a name takes in a table that shows all of it."""
    return width(shown(text, _MOST_TEXT))


def is_label(event: Any) -> bool:
    """Whether an event is a user's annotation."""
    return bool(getattr(event, "is_user_annotation", False))


@dataclass
class Column:
    """A title, a width, and a function from an event to its cell."""

    title: str
    cell: Callable[[Any], Any]
    width: int = _NUMBER_WIDTH
    left: bool = False

    def write(self, text: Any) -> str:
        """A cell padded to the width of the column, and the gap after it; what a terminal would obey is shown escaped."""
        return padded(shown(str(text), _MOST_TEXT), self.width, self.left) + _GAP


class _Widths(NamedTuple):
    """The greatest widths of text columns; None for no limit."""

    name: int | None
    shapes: int | None
    source: int | None


def _columns(total: Summary, most: _Widths, with_flops: bool, profile_memory: bool, time_unit: str | None) -> list[Column]:
    columns = [
        *_name_columns(total, most),
        *_cpu_columns(total, time_unit),
        *(_device_columns(total, time_unit) if total.has_device_time else ()),
        *(_memory_columns(total) if profile_memory else ()),
        Column("# of Calls", lambda event: event.count),
    ]
    if total.has_nodes:
        columns.append(Column("Node ID", lambda event: event.node_id))
    shapes_width = _capped(total.shapes_width, most.shapes)  # also where no column needs it: a width that is no number raises
    if total.shapes_width:
        columns.append(Column("Input Shapes", lambda event: str(event.input_shapes)[:shapes_width], shapes_width))
    if total.source_width >= 0:
        source_width = _capped(total.source_width, most.source)
        columns.append(
            Column(_SOURCE, lambda event: _tail(event.stack[0], source_width) if event.stack else "", source_width, True)
        )
    least_flops = total.least_flops or total.least_other_flops
    if with_flops and least_flops > 0:
        power = min(max(int(log10(least_flops)) // 3, 0), len(_FLOP_UNITS) - 1)
        columns.append(Column(f"Total {_FLOP_UNITS[power]}", lambda event: _flops(event.flops, 10 ** (3 * power))))
    return columns


def _name_columns(total: Summary, most: _Widths) -> list[Column]:
    def name(event: Any) -> str:
        text: str = event.key
        if most.name is None:
            return shown(text, _MOST_TEXT)
        fitting = most.name - len(_CUT)
        if fitting < 0:  # as in torch, that many characters are left out at the end
            return shown(text[:fitting], _MOST_TEXT) + _CUT
        visible = shown(text[: most.name], _MOST_TEXT)
        return cut(visible, fitting) + _CUT if len(text) >= fitting or width(visible) >= fitting else visible

    def overload(event: Any) -> str:
        text = shown(event.overload_name or "", _MOST_TEXT)
        return text if most.name is None or width(text) <= most.name else cut(text, most.name - len(_CUT)) + _CUT

    columns = [Column("Name", name, _capped(total.name_width, most.name))]
    if total.has_overloads:
        columns.append(Column("Overload Name", overload, columns[0].width))
    return columns


def _cpu_columns(total: Summary, time_unit: str | None) -> list[Column]:
    def cpu_share(event: Any) -> Any:
        # An asynchronous event runs beside its thread, so its time is no part of the thread's.
        return 0 if event.is_async else format_time_share(event.cpu_time_total, total.self_cpu_us)

    return [
        Column("Self CPU %", lambda event: format_time_share(event.self_cpu_time_total, total.self_cpu_us)),
        _time_column("Self CPU", "self_cpu_time_total", time_unit),
        Column("CPU total %", cpu_share),
        _time_column("CPU total", "cpu_time_total", time_unit),
        _time_column("CPU time avg", "cpu_time", time_unit),
    ]


def _device_columns(total: Summary, time_unit: str | None) -> list[Column]:
    device = (total.use_device or "").upper()

    def share(event: Any) -> str:
        # A trace may have labels on the device and none of the kernels they span.
        return format_time_share(total.self_device_us and event.self_device_time_total, total.self_device_us)

    return [
        _time_column(f"Self {device}", "self_device_time_total", time_unit),
        Column(f"Self {device} %", share),
        _time_column(f"{device} total", "device_time_total", time_unit),
        _time_column(f"{device} time avg", "device_time", time_unit),
    ]


def _memory_columns(total: Summary) -> list[Column]:
    columns = [_memory_column("CPU Mem", "cpu_memory_usage"), _memory_column("Self CPU Mem", "self_cpu_memory_usage")]
    if total.use_device and total.has_device_memory:
        device = total.use_device.upper()
        columns.append(_memory_column(f"{device} Mem", "device_memory_usage"))
        columns.append(_memory_column(f"Self {device} Mem", "self_device_memory_usage"))
    return columns


def _time_column(title: str, attribute: str, unit: str | None) -> Column:
    return Column(title, lambda event: format_time(getattr(event, attribute), unit))


def _memory_column(title: str, attribute: str) -> Column:
    return Column(title, lambda event: format_memory(getattr(event, attribute)))


def _capped(columns: int, most: int | None) -> int:
    columns += _NAME_MARGIN
    return columns if most is None else min(columns, most)


def _tail(frame: str, columns: int) -> str:
    """The end of a frame, where the function's name is."""
    text = shown(frame[max(0, len(frame) - columns) :], _MOST_TEXT)
    if len(frame) <= columns and width(text) <= columns:
        return text
    text = cut_front(text, columns)
    return _CUT + cut_front(text, columns - len(_CUT)) if width(text) > len(_CUT) else text


def _flops(flops: float | None, scale: float) -> str:
    return f"{flops / scale:8.3f}" if flops is not None and flops > 0 else "--"


def build_table(
    events: Sequence[Any],
    sort_by: str | None = None,
    header: str | None = None,
    row_limit: Any = 100,
    max_src_column_width: int | None = 75,
    max_name_column_width: int | None = 55,
    max_shapes_column_width: int | None = 80,
    with_flops: bool = False,
    profile_memory: bool = False,
    top_level_events_only: bool = False,
    time_unit: str | None = None,
    summary: Summary | None = None,
    dropped: int = 0,
    note: str = "",
    more: Sequence[Any] = (),
    shown_more: Sequence[Any] = (),
) -> str:
    """The table of events or averages as text; "" if there are none.

    sort_by names an attribute, largest first. row_limit: -1 for all rows. summary: that of the events, if it is known
    already. dropped: how many events the recorder dropped. note: what else is to be said of the recording. more: rows that
    are not among the events and count for the total, and `shown_more` those of the table.
    """
    if len(events) == 0:
        return ""
    total = _joined(summary or summarize(events), summarize(more)) if more else summary or summarize(events)
    events = [*events, *shown_more] if shown_more else events
    if sort_by is not None:
        events = _sorted(events, sort_by)
    if total.has_device_time and not total.use_device:
        raise RuntimeError("use_device is None, but there is device performance data.")
    most = _Widths(max_name_column_width, max_shapes_column_width, max_src_column_width)
    columns = _columns(total, most, with_flops, profile_memory, time_unit)
    rule = "".join("-" * column.width + _GAP for column in columns)
    double_rule = "=" * (len(rule) - len(_GAP))
    lines: list[str] = []
    if header is not None:
        lines += [double_rule, header]
    if top_level_events_only:
        lines += [double_rule, "This report only display top-level ops statistics"]
    lines += [rule, "".join(column.write(column.title) for column in columns), rule]

    rows: Iterable[Any] = events
    if top_level_events_only:
        rows = (event for event in events if event.cpu_parent is None)
    if row_limit in range(len(events) + 1):  # as in torch, other limits than numbers of rows have no effect
        rows = islice(rows, int(row_limit))
    for event in rows:
        lines += _row_lines(event, columns, total.source_width >= 0)
    lines += [
        rule,
        f"Total Event Count: {total.count}",
        f"Self CPU time total: {format_time(total.self_cpu_us, time_unit)}",
    ]
    if total.has_device_time:
        device = (total.use_device or "").upper()
        lines.append(f"Self {shown(device)} time total: {format_time(total.self_device_us, time_unit)}")
    if dropped:
        lines.append(f"Dropped events: {dropped}")
    if note:
        lines.append(f"Note: {shown(note)}")
    return "\n".join([*lines, ""])


def _sorted(events: Sequence[Any], sort_by: str) -> list[Any]:
    attribute = sort_by
    for device in _DEVICE_NAMES:
        attribute = attribute.replace(device, "device")
    attribute = _NPU.sub("device", attribute)
    getattr(events[0], attribute)  # AttributeError for one that no event has
    has: list[Any] = []
    has_not: list[Any] = []
    for event in events:
        (has if hasattr(event, attribute) else has_not).append(event)
    return [*sorted(has, key=lambda event: getattr(event, attribute), reverse=True), *has_not]


def _row_lines(event: Any, columns: Sequence[Column], with_stack: bool) -> list[str]:
    """The line of an event; with stacks, the further frames in lines below, and an empty one at the end."""
    lines = ["".join(column.write(column.cell(event)) for column in columns)]
    for frame in [*(event.stack or ())[1:], ""] if with_stack else ():
        cells = (_tail(frame, column.width) if column.title == _SOURCE else "" for column in columns)
        lines.append("".join(column.write(cell) for column, cell in zip(columns, cells, strict=True)))
    return lines
