"""Single events, filtered."""

from __future__ import annotations

import argparse

import numpy as np

from ..._io.strict_json import dumps
from ..._io.terminal import shown
from ...analysis.findings import duration
from .. import reading
from ..exit_codes import FINE

EXAMPLE = "mtprof events trace.json --name 'aten::mm' --longer-than 1ms -n 10"

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument("--name", default="", help="only events whose name has this in it")
    parser.add_argument("--step", type=int, default=None, help="only events of this step")
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
    if args.slowest:
        rows = rows[np.argsort(-store.duration[rows], kind="stable")]
    listed = reading.first(rows.tolist(), args.limit)
    for row in listed:
        thread = store.threads[store.tid[row]]
        name = store.names[store.name[row]]
        start = int(store.start[row]) - store.clock_start_ns
        if args.json:
            line = {
                "name": name,
                "start_ns": start,
                "duration_ns": int(store.duration[row]),
                "thread": thread.ident,
                "step": int(store.step[row]),
                "depth": int(store.depth[row]),
            }
            print(dumps(line))
        else:
            label = "  " * int(store.depth[row]) + shown(name)
            print(f"{start / 1e6:14.6f} ms  {duration(int(store.duration[row])):>9}  thread {thread.ident}  {label}")
    if len(listed) < len(rows) and not args.json:
        print(f"... {len(rows) - len(listed):,} more")
    return FINE
