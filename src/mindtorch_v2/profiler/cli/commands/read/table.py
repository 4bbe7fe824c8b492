"""The operators and what they took.

It is what `key_averages().table()` of the recording prints.
"""

from __future__ import annotations

import argparse
import re
from typing import Any

import numpy as np

from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....analysis.findings import duration
from ....analysis.first_use import first_use_ns, first_use_text
from ....analysis.overhead import Overhead
from ....store import tree
from ....store.store import EventStore
from ....views.event_list import EventList
from ....views.tabular import to_dict
from ... import reading
from ...exit_codes import FINE, USAGE, Failure

# For "device", the name of a device is accepted, too: cuda_time_total.
SORT_KEYS = (
    "self_cpu_time_total",
    "cpu_time_total",
    "cpu_time",
    "self_device_time_total",
    "device_time_total",
    "device_time",
    "self_cpu_memory_usage",
    "cpu_memory_usage",
    "self_device_memory_usage",
    "device_memory_usage",
    "count",
    "flops",
    "key",
)
_DEVICE = re.compile(r"^(self_)?(?:cuda|npu|xpu|privateuse1)_")
_DEVICE_KEY = re.compile(r"(?:^|_)(?:device|cuda|npu|xpu|privateuse1)_time")
_COST_NOT_MEASURED = (
    "Profiler overhead: not known for this file; in a program, prof.overhead() before prof.save() measures it for the file"
)
_COST_NOT_KNOWN = "Profiler overhead: not known; neither traces nor PyTorch's profiler tell it"
EXAMPLE = "mtprof table trace.json.gz --sort self_cpu_time_total --by shape -n 30"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    reading.add_sorting(parser)
    parser.add_argument("--by", choices=("name", "shape", "stack", "overload"), default="name", help="what to group by")
    parser.add_argument("--stack-depth", type=int, default=5, metavar="N", help="with --by stack: innermost frames that count")
    parser.add_argument("--corrected", action="store_true", help="also show times without what recording itself cost")
    reading.add_json(parser)
    parser.add_argument("--top-level", action="store_true", help="only ops that no other op called")


def run(args: argparse.Namespace) -> int:
    """Print the table, what recording cost, and on request the times corrected for it."""
    loaded = reading.open_recording(args.path)
    if args.sort is not None and _DEVICE_KEY.search(args.sort) and not loaded.store.has_device_rows:
        raise Failure(f"cannot sort by {args.sort!r}: no work of a device was recorded, only that of the CPU", USAGE)
    averages = loaded.key_averages(
        group_by_input_shape=args.by == "shape",
        group_by_stack_n=args.stack_depth if args.by == "stack" else 0,
        group_by_overload_name=args.by == "overload",
    )
    try:
        text = averages.table(
            sort_by=args.sort or "self_cpu_time_total", row_limit=args.limit, top_level_events_only=args.top_level
        )
    except (AttributeError, TypeError):
        if args.sort is None:
            raise
        raise Failure(f"cannot sort by {args.sort!r}, only by {', '.join(SORT_KEYS)}", USAGE) from None
    cost = loaded.overhead()
    if args.json:
        print(dumps(_as_plain(averages, loaded.store, args, cost), indent=1))
        return FINE
    print(text)
    if not len(loaded.store):
        return FINE
    # Only this package's own recordings, in its own files, have that option.
    print(cost or (_COST_NOT_MEASURED if "all_threads" in loaded.store.options else _COST_NOT_KNOWN))
    if told := first_use_text(loaded.store):
        print(told)
    if args.corrected:
        if cost is None:
            raise Failure("the file does not tell what recording cost, so times cannot be corrected for it")
        print_corrected(loaded.store, cost, args.limit)
    return FINE


def _as_plain(averages: EventList, store: EventStore, args: argparse.Namespace, cost: Overhead | None) -> dict[str, Any]:
    """The rows of the table in its order, times in microseconds, and what recording cost in nanoseconds."""
    shown_rows = [row for row in averages if not (args.top_level and row.cpu_parent is not None)]
    key = _DEVICE.sub(r"\1device_", args.sort or "self_cpu_time_total")
    shown_rows.sort(key=lambda row: getattr(row, key), reverse=True)
    columns = to_dict(reading.first(shown_rows, args.limit))
    return {
        "rows": [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)],
        "rows_in_all": len(shown_rows),
        "self_cpu_time_total": averages.self_cpu_time_total,
        "first_use_ns": first_use_ns(store),
        "overhead_ns": None if cost is None else _overhead(cost),
    }


def _overhead(cost: Overhead) -> dict[str, int]:
    return {"low": cost.low_ns, "likely": cost.total_ns, "high": cost.high_ns, "measured_on": cost.measured_on}


def print_corrected(store: EventStore, cost: Overhead, limit: int) -> None:
    """Self and total times by name as recorded, and without the estimated cost of recording each event."""
    host = np.flatnonzero(store.device_type == 0)
    label, count = store.label[host], len(store.labels)
    columns = [
        tree.sums(label, values[host], count) for values in (store.self_ns, cost.self_ns, store.duration, cost.duration_ns)
    ]
    print(f"\n{'self':>9} {'corrected':>9} {'total':>9} {'corrected':>9}  operator")
    order = np.argsort(-columns[1], kind="stable")
    for at in reading.first(order.tolist(), limit):
        print(" ".join(f"{duration(int(values[at])):>9}" for values in columns) + f"  {shown(store.labels[at])}")
