"""Save what can be read of a file that was cut off or damaged."""

from __future__ import annotations

import argparse

from ...._io.terminal import shown
from ... import reading
from ...exit_codes import FINE

EXAMPLE = "mtprof repair crashed.mtp -o repaired.mtp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument("-o", "--output", required=True, help="file to write, as a saved profile")
    reading.add_written_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file and print what was recovered and what was lost."""
    reading.check_apart(args.path, args.output)
    loaded = reading.read_recording(args.path)
    store, recovery = loaded.store, loaded.recovery
    loaded.save(args.output)
    lost = [f"{recovery.bytes_dropped} bytes"] if recovery.bytes_dropped else []
    lost += [f"{count} x {shown(reason)}" for reason, count in recovery.skipped.items()] + list(map(shown, recovery.notes))
    if store.dropped_events:
        lost.append(f"{store.dropped_events} events that were dropped while recording")
    if args.written_json:
        figures = {"events": len(store), "allocations": len(store.mem_time), "lost": lost, "complete": recovery.complete}
        reading.print_written(args.output, as_json=True, **figures)
        return FINE
    seconds = (store.clock_end_ns - store.clock_start_ns) / 1e9
    print(f"recovered: {len(store)} events and {len(store.mem_time)} allocations and frees in {seconds:.3f} s")
    print("lost: " + ("; ".join(lost) if lost else "nothing that was written"))
    print("the file was " + ("complete" if recovery.complete else "cut off before its end"))
    reading.print_written(args.output)
    return FINE
