"""Single events, filtered."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....analysis.findings import duration
from ....store.store import EventStore
from ....views.event_factory import flat_shapes
from ... import reading
from ...exit_codes import FINE, USAGE, Failure
from ...parser import near_event

EXAMPLE = "mtprof events trace.json --name 'aten::mm' --longer-than 1ms -n 10"

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument("--name", default="", help="only events whose name has this in it")
    parser.add_argument("--step", type=int, default=None, help="only events of this step")
    parser.add_argument("--id", type=int, default=None, help="only this event, with its stack; --json tells ids")
    parser.add_argument("--inside", type=int, default=None, metavar="ID", help="only events that this one called itself")
    parser.add_argument("--longer-than", type=nanoseconds, default=0, metavar="TIME", help="only longer ones, e.g. 50us, 1ms")
    parser.add_argument("--slowest", action="store_true", help="longest first instead of in order of start")
    reading.add_limit(parser, 50, "events")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")


def nanoseconds(text: str) -> int:
    """Parse "50us" as 50,000."""
    for unit in sorted(_UNITS, key=len, reverse=True):
        number = text.removesuffix(unit)
        if number != text:
            return round(float(number) * _UNITS[unit])
    raise argparse.ArgumentTypeError(f"{text!r} has no unit: ns, us, ms or s")


def run(args: argparse.Namespace) -> int:
    """Print the events that pass all filters, one a line."""
    store = reading.open_recording(args.path).store
    names = [number for number, name in enumerate(store.names) if args.name in name]
    rows = np.flatnonzero(np.isin(store.name, names) & (store.duration >= args.longer_than))
    if args.step is not None:
        reading.check_step(store, args.step)
        rows = rows[store.step[rows] == args.step]
    for ident, place in ((args.id, np.arange(len(store))), (args.inside, store.parent)):
        if ident is not None:
            if not 1 <= ident <= len(store):
                raise Failure(f"there is no event {ident}: ids are 1 to {len(store)}", USAGE)
            rows = rows[place[rows] == ident - 1]
    if args.slowest:
        rows = rows[np.argsort(-store.duration[rows], kind="stable")]
    if not len(rows):
        named = near_event(args.name, store.names) if args.name and not names else ""
        print(f"mtprof events: no event is of that kind{': ' + shown(named) if named else ''}", file=sys.stderr)
    listed = reading.first(rows.tolist(), args.limit)
    for row in listed:
        thread = store.threads[store.tid[row]]
        name = store.names[store.name[row]]
        start = int(store.start[row]) - store.clock_start_ns
        if args.json:
            line: dict[str, Any] = {
                "id": row + 1,
                "parent_id": int(store.parent[row]) + 1 or None,
                "name": name,
                "start_ns": start,
                "duration_ns": int(store.duration[row]),
                "thread": thread.ident,
                "step": int(store.step[row]),
                "depth": int(store.depth[row]),
            }
            if args.id is not None:
                line |= _details(store, row)
            print(dumps(line))
        else:
            label = "  " * int(store.depth[row]) + shown(name)
            print(f"{start / 1e6:14.6f} ms  {duration(int(store.duration[row])):>9}  thread {thread.ident}  {label}")
            for frame in _details(store, row)["stack"] if args.id is not None else ():
                print(f"    {shown(frame)}")
    if len(listed) < len(rows) and not args.json:
        print(f"... {len(rows) - len(listed):,} more")
    return FINE


def _details(store: EventStore, row: int) -> dict[str, Any]:
    """What is told of a single event only."""
    shapes, module, stack = (int(column[row]) for column in (store.shapes, store.module, store.call_stack))
    return {
        "self_ns": int(store.self_ns[row]),
        "flops": int(store.flops[row]),
        "bytes": int(store.self_bytes[row]),
        "shapes": flat_shapes(store.input_infos[shapes].dims) if shapes >= 0 else None,
        "module": store.modules[module] if module >= 0 else None,
        "stack": list(store.stacks[stack]) if stack >= 0 else [],
        "calls": int((store.parent == row).sum()),
    }
