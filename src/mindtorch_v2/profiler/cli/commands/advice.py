"""What to change, why, and what it may gain."""

from __future__ import annotations

import argparse

from ..._io.strict_json import dumps
from .. import reading
from ..exit_codes import FINE

EXAMPLE = "mtprof advice trace.json.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the findings, the largest estimated gain first."""
    findings = reading.open_recording(args.path).advice()
    if args.json:
        print(dumps([finding.to_dict() for finding in findings], indent=1))
    elif not findings:
        print("nothing found to advise")
    else:
        print("\n\n".join(map(str, findings)))
    return FINE
