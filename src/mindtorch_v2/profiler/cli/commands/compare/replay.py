"""One recorded call of an op as a script that calls it again.

It takes input shapes: profile(record_shapes=True), or `mtprof run --shapes`.
"""

from __future__ import annotations

import argparse

from ...._io.files import write_file
from ...._io.strict_json import dumps
from ....analysis.replay import ReplayError, find_call, script
from ... import reading
from ...exit_codes import FINE, USAGE, Failure
from ...parser import near_event

EXAMPLE = "mtprof replay profile.mtp aten::addmm -o addmm.py"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument("event", help="name of an op, of which the longest call is taken, or the id of an event")
    parser.add_argument("-o", "--output", default=None, metavar="FILE", help="file to write (default: print the script)")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="how often the script calls it (default 20)")
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the script."""
    if args.runs < 1:
        raise Failure("--runs must be 1 or more", USAGE)
    store = reading.open_recording(args.path).store
    try:
        row = find_call(store, args.event)
        text = script(store, row, reading.title(args.path), args.runs)
    except ReplayError as error:
        hint = near_event(args.event, store.names) if args.event not in store.names else ""
        raise Failure(f"{args.event}: {error}{': ' + hint if hint else ''}", USAGE) from None
    if args.json:
        found = {"name": store.names[store.name[row]], "id": row + 1, "duration_ns": int(store.duration[row])}
        print(dumps({**found, "script": text}, indent=1))
        return FINE
    if args.output is None:
        print(text, end="")
        return FINE
    reading.check_apart(args.path, args.output)
    write_file(args.output, [text.encode()])
    reading.print_written(args.output)
    return FINE
