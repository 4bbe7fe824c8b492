"""What became faster or slower between two recordings.

Each difference is named with its confidence interval.
"""

from __future__ import annotations

import argparse

from ....analysis.comparison.diff import FEWEST_STEPS
from ....analysis.comparison.diff import diff as compare
from ... import reading
from ...diff_formats import FORMATS, Checked
from ...exit_codes import FINE, FOUND, USAGE, Failure

EXAMPLE = "mtprof diff before.mtp after.mtp --fail-over 5%"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="path",
        help="the two recordings, before and after: saved profiles or Chrome traces, .json or .json.gz",
    )
    parser.add_argument(
        "--to",
        nargs="+",
        default=None,
        metavar="path",
        help="several recordings after the change, where the first paths are several before it",
    )
    parser.add_argument(
        "--fail-over",
        type=percent,
        default=None,
        metavar="P%",
        help="exit with 1 if a step became slower by more than this, beyond doubt",
    )
    parser.add_argument("--fail-op-over", type=percent, default=None, metavar="P%", help="the same for any single op")
    parser.add_argument(
        "--fail-over-memory",
        type=percent,
        default=None,
        metavar="P%",
        help="the same if the peak of memory, or what is allocated in a step, grew by more than this (recorded with --memory)",
    )
    parser.add_argument("--confidence", type=percent, default=0.99, metavar="P%", help="of all intervals (default 99%%)")
    parser.add_argument("--least", type=percent, default=0.05, metavar="P%", help="smaller changes are not named (default 5%%)")
    reading.add_limit(parser, 20, "changes")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--format", choices=FORMATS, default="text", help="how to print it (default text)")
    form.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    parser.add_argument("--html", default=None, metavar="FILE", help="write the comparison as a page too")


def percent(text: str) -> float:
    """Parse "5%" or "5" as 0.05."""
    try:
        return float(text.removesuffix("%")) / 100
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage") from None


def sides(paths: list[str], to: list[str] | None) -> tuple[list[str], list[str]]:
    """Split the paths into those recorded before the change and those recorded after it."""
    if to is not None:
        return paths, to
    if len(paths) != 2:
        raise Failure(
            f"two recordings are compared, or several with several: before*.mtp --to after*.mtp; got {len(paths)}", USAGE
        )
    return paths[:1], paths[1:]


def run(args: argparse.Namespace) -> int:
    """Print what changed; exit with 1 if it is over a limit that was asked for."""
    before, after = sides(args.paths, args.to)
    a, b = ([reading.open_recording(path).store for path in side] for side in (before, after))
    try:
        comparison = compare(a, b, confidence=args.confidence, least=args.least)
    except ValueError as error:
        raise Failure(str(error), USAGE) from None
    if args.html:
        from ....report.comparison import export
        from ....report.flame_difference import pair_up

        export(comparison, args.html, (" ".join(before), " ".join(after)), pair_up(a, b))
    checked: list[Checked] = [
        (change, limit is not None and comparison.slower_by(change, limit))
        for changes, limit in (((comparison.step,), args.fail_over), (comparison.changes, args.fail_op_over))
        for change in changes
    ]
    most = args.fail_over_memory
    checked += [(change, most is not None and change.grown_by(most)) for change in comparison.memory]
    print(FORMATS[args.format](comparison, args.limit, checked))
    limited = args.fail_over is not None or args.fail_op_over is not None
    if limited and not comparison.enough:
        raise Failure(f"too few steps to tell whether anything is over a limit: {FEWEST_STEPS} are needed in each recording")
    if most is not None and not comparison.memory:
        raise Failure("not every recording has memory, so its limit cannot be checked: record with --memory")
    return FOUND if any(over for _, over in checked) else FINE
