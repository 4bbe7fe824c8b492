"""The text table of torch.profiler: one row per event or average, columns by what was recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log10
from typing import Any, NamedTuple

from ..recording.op_facts import counted_by_torch

_GAP = "  "
_NUMBER_WIDTH = 12
_NAME_MARGIN = 4
_CUT = "..."
_SOURCE = "Source Location"
_FLOP_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_TIME_UNITS = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0}
_MEMORY_UNITS = (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024))
# Devices whose names in a sort key stand for "device".
_DEVICE_NAMES = ("cuda", "xpu", "privateuse1")
_NPU = re.compile("(?:^|(?<=_))npu(?=_)")  # the whole word: "input_shapes" has those letters too


def format_time(time_us: float, unit: str | None = None) -> str:
    """Microseconds as text, in the given unit or the largest one that leaves a digit before the point."""
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
    """What must be known of all events before the first line can be written; widths are in characters."""

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


# The unit of the FLOPs column follows the least figure, as in torch: of these, since more ops are counted here.


def summarize(events: Iterable[Any]) -> Summary:
    """Look at every event once."""
    total = Summary()
    for event in events:
        total.count += event.count
        total.self_cpu_us += event.self_cpu_time_total
        device_us = event.self_device_time_total
        total.has_device_time = total.has_device_time or device_us > 0
        # A label on the device covers kernels that count themselves.
        if (event.device_type == "CPU" and event.is_legacy) or (event.device_type != "CPU" and not is_label(event)):
            total.self_device_us += device_us
        total.has_device_memory = total.has_device_memory or event.self_device_memory_usage > 0
        total.use_device = total.use_device or event.use_device
        total.name_width = max(total.name_width, len(event.key))
        total.has_overloads = total.has_overloads or bool(event.overload_name)
        total.has_nodes = total.has_nodes or event.node_id != -1
        if event.input_shapes:
            total.shapes_width = max(total.shapes_width, len(str(event.input_shapes)))
        if event.stack:
            total.source_width = max(total.source_width, *map(len, event.stack))
        if event.flops is not None and event.flops > 0:
            if event.key in counted_by_torch():
                total.least_flops = min(total.least_flops or event.flops, event.flops)
            else:
                total.least_other_flops = min(total.least_other_flops or event.flops, event.flops)
    return total


def is_label(event: Any) -> bool:
    """Whether an event is a user's annotation."""
    return bool(getattr(event, "is_user_annotation", False))


@dataclass
class Column:
    """A title, a width and how an event's cell is written."""

    title: str
    cell: Callable[[Any], Any]
    width: int = _NUMBER_WIDTH
    left: bool = False

    def write(self, text: Any) -> str:
        return f"{text!s:{'<' if self.left else '>'}{self.width}}" + _GAP


class _Widths(NamedTuple):
    """The greatest width of a column that holds text; None: as wide as it gets."""

    name: int | None
    shapes: int | None
    source: int | None


def _columns(total: Summary, most: _Widths, with_flops: bool, profile_memory: bool, time_unit: str | None) -> list[Column]:
    def time(attribute: str) -> Callable[[Any], str]:
        return lambda event: format_time(getattr(event, attribute), time_unit)

    def memory(attribute: str) -> Callable[[Any], str]:
        return lambda event: format_memory(getattr(event, attribute))

    def cpu_share(event: Any) -> Any:
        # An asynchronous event runs beside its thread, so its time is no part of the thread's.
        return 0 if event.is_async else format_time_share(event.cpu_time_total, total.self_cpu_us)

    def name(event: Any) -> str:
        text: str = event.key
        if most.name is not None and len(text) >= most.name - len(_CUT):
            return text[: most.name - len(_CUT)] + _CUT
        return text

    name_width = _capped(total.name_width, most.name)
    columns = [Column("Name", name, name_width)]
    if total.has_overloads:
        columns.append(Column("Overload Name", lambda event: event.overload_name, name_width))
    columns += [
        Column("Self CPU %", lambda event: format_time_share(event.self_cpu_time_total, total.self_cpu_us)),
        Column("Self CPU", time("self_cpu_time_total")),
        Column("CPU total %", cpu_share),
        Column("CPU total", time("cpu_time_total")),
        Column("CPU time avg", time("cpu_time")),
    ]
    device = (total.use_device or "").upper()
    if total.has_device_time:
        columns += [
            Column(f"Self {device}", time("self_device_time_total")),
            Column(
                f"Self {device} %",
                # A trace may have labels on the device and none of the kernels they cover.
                lambda event: format_time_share(total.self_device_us and event.self_device_time_total, total.self_device_us),
            ),
            Column(f"{device} total", time("device_time_total")),
            Column(f"{device} time avg", time("device_time")),
        ]
    if profile_memory:
        columns += [
            Column("CPU Mem", memory("cpu_memory_usage")),
            Column("Self CPU Mem", memory("self_cpu_memory_usage")),
        ]
        if total.use_device and total.has_device_memory:
            columns += [
                Column(f"{device} Mem", memory("device_memory_usage")),
                Column(f"Self {device} Mem", memory("self_device_memory_usage")),
            ]
    columns.append(Column("# of Calls", lambda event: event.count))
    if total.has_nodes:
        columns.append(Column("Node ID", lambda event: event.node_id))
    width = _capped(total.shapes_width, most.shapes)
    if total.shapes_width:
        columns.append(Column("Input Shapes", lambda event: str(event.input_shapes)[:width], width))
    if total.source_width >= 0:
        wide = _capped(total.source_width, most.source)
        columns.append(Column(_SOURCE, lambda event: _tail(event.stack[0], wide) if event.stack else "", wide, True))
    least_flops = total.least_flops or total.least_other_flops
    if with_flops and least_flops > 0:
        power = min(max(int(log10(least_flops)) // 3, 0), len(_FLOP_UNITS) - 1)
        columns.append(Column(f"Total {_FLOP_UNITS[power]}", lambda event: _flops(event.flops, 10 ** (3 * power))))
    return columns


def _capped(width: int, most: int | None) -> int:
    width += _NAME_MARGIN
    return width if most is None else min(width, most)


def _tail(frame: str, width: int) -> str:
    """The end of a frame, where the function's name is."""
    if len(frame) <= width:
        return frame
    frame = frame[len(frame) - width :]
    return _CUT + frame[len(_CUT) :] if len(frame) > len(_CUT) else frame


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
) -> str:
    """The table of events or averages as text; "" when there are none.

    sort_by names an attribute, largest first. row_limit is reached only when it equals a number of rows, so -1 means
    all. summary spares a look at every event when somebody already knows the answer. dropped: how many events are missing.
    """
    if len(events) == 0:
        return ""
    if sort_by is not None:
        attribute = sort_by
        for device in _DEVICE_NAMES:
            attribute = attribute.replace(device, "device")
        attribute = _NPU.sub("device", attribute)
        events = sorted(events, key=lambda event: getattr(event, attribute), reverse=True)
    total = summary or summarize(events)
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

    chosen: Iterable[Any] = events
    if top_level_events_only:
        chosen = (event for event in events if event.cpu_parent is None)
    if row_limit in range(len(events) + 1):
        chosen = islice(chosen, int(row_limit))
    for event in chosen:
        lines.append("".join(column.write(column.cell(event)) for column in columns))
        if total.source_width >= 0:
            # The other frames stand below the first, and an empty line ends the stack.
            for frame in [*(event.stack or ())[1:], ""]:
                lines.append(
                    "".join(column.write(_tail(frame, column.width) if column.title == _SOURCE else "") for column in columns)
                )
    lines += [
        rule,
        f"Total Event Count: {total.count}",
        f"Self CPU time total: {format_time(total.self_cpu_us, time_unit)}",
    ]
    if total.has_device_time:
        device = (total.use_device or "").upper()
        lines.append(f"Self {device} time total: {format_time(total.self_device_us, time_unit)}")
    if dropped:
        lines.append(f"Dropped events: {dropped}")
    return "\n".join([*lines, ""])
