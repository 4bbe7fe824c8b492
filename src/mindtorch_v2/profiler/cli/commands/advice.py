"""mtprof advice: what to change, why, where, and what it may gain."""

from __future__ import annotations

import argparse
import json

from . import reading

EXAMPLE = "mtprof advice trace.json.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    reading.add_path(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the findings."""
    found = reading.open_recording(args.path).advice()
    if args.json:
        print(json.dumps([finding.to_dict() for finding in found], indent=1))
    elif not found:
        print("nothing found to advise")
    else:
        print("\n\n".join(map(str, found)))
    return 0
