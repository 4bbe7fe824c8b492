"""What to change, why, and what it may gain."""

from __future__ import annotations

import argparse

from ...._io.strict_json import dumps
from ... import reading
from ...exit_codes import FINE

EXAMPLE = "mtprof advice trace.json.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the findings, the largest estimated gain first, and what could not be looked for."""
    recording = reading.open_recording(args.path)
    findings, missing = recording.advice(), recording.missing_for_advice()
    if args.json:
        answer = {"findings": [each.to_dict() for each in findings], "missing": [each.to_dict() for each in missing]}
        print(dumps(answer, indent=1))
        return FINE
    nothing = "nothing found to advise" if len(recording.store) else "nothing was recorded, so there is nothing to advise"
    print("\n\n".join(map(str, findings)) or nothing)
    if missing:
        print("\n" + "\n".join(f"not looked for: {each}" for each in missing))
    return FINE
