"""Check a file.

Whether it is whole and well formed, and whether the recording in it makes sense.
"""

from __future__ import annotations

import argparse

from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....formats import TraceError
from ....formats.validate import validate_file
from ... import reading
from ...exit_codes import FINE, FOUND, Failure

EXAMPLE = "mtprof validate trace.json.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the problems; exit with 1 if there are any."""
    try:
        problems = validate_file(reading.source(args.path))
    except TraceError as error:
        raise Failure(f"{args.path}: {error}") from None
    errors = [problem for problem in problems if problem.severity == "error"]
    if args.json:
        print(dumps({"problems": [problem._asdict() for problem in problems], "errors": len(errors)}, indent=1))
        return FOUND if errors else FINE
    for problem in problems:
        print(problem)
    print(f"{shown(args.path)}: " + (f"{len(errors)} problems" if errors else "fine"))
    return FOUND if errors else FINE
