"""Record a process that runs already.

The process must be armed (MTPROF=arm). The file is complete when the command ends.
"""

from __future__ import annotations

import argparse
import os
import sys

from ...._io.files import check_writable
from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....config import RECORD_OPTIONS
from ... import processes, reading
from ...exit_codes import FINE, NOTHING, UNREADABLE, USAGE, Failure

EXAMPLE = "mtprof attach 4711 --steps 10 --stack -o slow.mtp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    processes.add_pid(parser)
    parser.add_argument("--seconds", type=float, default=10.0, help="record at most so long (default 10)")
    parser.add_argument("--steps", type=int, default=None, metavar="N", help="end after N steps of the optimizers")
    for option in RECORD_OPTIONS:
        parser.add_argument(f"--{option}", action="store_true", help=f"as with `mtprof run --{option}`")
    parser.add_argument("--all", action="store_true", help="record all of these")
    parser.add_argument("-o", "--output", default=None, metavar="FILE", help="file to write, .mtp (default: attach-PID.mtp)")
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Have the process record itself, and print the name of the file when it is complete."""
    if not 0 < args.seconds < float("inf") or (args.steps is not None and args.steps < 1):
        raise Failure("--seconds must be above 0, and --steps 1 or more", USAGE)
    pid = processes.chosen(args.pid)
    target = os.path.abspath(args.output or f"attach-{pid}.mtp")
    if not target.endswith(".mtp"):
        raise Failure(f"a saved profile is written, so {args.output!r} must end in .mtp; `mtprof convert` makes others", USAGE)
    check_writable(target)  # before the process records
    options = [option for option in RECORD_OPTIONS if getattr(args, option) or args.all]
    request = {"request": "record", "path": target, "seconds": args.seconds, "steps": args.steps, "options": options}
    last = None
    for last in processes.answers(pid, request):
        if last["event"] == "recording" and not args.json:
            print(f"mtprof: process {pid} records: {shown(last['command'])}", file=sys.stderr, flush=True)
    if last is None or last["event"] != "complete":
        raise Failure(f"process {pid} ended before its recording was complete: {target} was not written", UNREADABLE)
    if args.json:
        print(dumps({key: last[key] for key in ("path", "bytes", "events", "steps")}))
    else:
        print(f"mtprof: {last['events']:,} events of {last['steps']} step{'' if last['steps'] == 1 else 's'}", file=sys.stderr)
        print(shown(target))
    if not last["events"]:
        raise Failure("nothing was recorded: the process ran no op meanwhile", NOTHING)
    return FINE
