"""What is slow in a job of many ranks: rank, link, step or op.

Each recording becomes a small digest; digests merge to one answer. Clocks of hosts are aligned by the collectives they share.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ...._io.files import write_file
from ....formats import TraceError
from ... import reading
from ...exit_codes import FINE, FOUND, USAGE, Failure
from ...progress import CountLine

EXAMPLE = "mtprof ranks out/          mtprof ranks report out/ -o ranks.html"

ACTIONS = ("report", "merge", "digest", "diff")
_HELP = (
    "recordings of the ranks: a folder, a pattern, files, s3://...; after a word that says what to make of them: "
    "report (a page), merge (one trace on one clock, for Perfetto), digest (one small file), diff (two jobs)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("paths", nargs="+", metavar="path", help=_HELP)
    parser.add_argument(
        "-o", "--output", default=None, metavar="FILE", help="what to write: ranks.html, merged.json.gz, job.mtranks"
    )
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument(
        "--processes", type=int, default=None, metavar="N", help="read with so many processes (default: all cores)"
    )
    engine.add_argument("--dask", default=None, metavar="ADDRESS", help="read on a Dask cluster, tcp://host:8786")
    engine.add_argument("--ray", default=None, metavar="ADDRESS", help="read on a Ray cluster, ray://host:10001 or auto")
    parser.add_argument("--ranks", default=None, metavar="0,3,8-15", help="merge: only these ranks")
    parser.add_argument("--steps", default=None, metavar="10-12", help="merge: only these steps")
    parser.add_argument(
        "--reports",
        type=int,
        default=8,
        metavar="N",
        help="report: pages of so many ranks beside it, those that stand out first",
    )
    parser.add_argument(
        "--fail", action="store_true", help="exit with 1 if a rank, link or step stands out (diff: if it became slower)"
    )
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the answer."""
    action = args.paths[0] if args.paths[0] in ACTIONS and len(args.paths) > 1 else ""
    paths = args.paths[1:] if action else args.paths
    if action == "diff":
        return _diff(paths, args)
    digests = _digests(paths, args)
    if digests is None:  # a process that mpiexec started beside the first
        return FINE
    if action == "digest":
        return _write_digests(digests, args)
    answers = _answers(digests)
    if action == "report":
        return _report(answers, paths, args)
    if action == "merge":
        return _merge(answers, paths, args)
    print(answers.to_json() if args.json else answers.text())
    return FOUND if args.fail and answers.findings else FINE


def _digests(paths: list[str], args: argparse.Namespace) -> Any:
    from ....ranks.engines import WorkerVersionError
    from ....ranks.loading import digest

    with CountLine("reading ranks", "files") as line:
        try:
            return digest(paths, processes=args.processes, dask=args.dask, ray=args.ray, progress=line.update)
        except ImportError as error:
            raise Failure(str(error), USAGE) from None
        except WorkerVersionError as error:
            raise Failure(str(error), USAGE) from None


def _answers(digests: Any) -> Any:
    from ....ranks import JobAnswers, merge

    try:
        return JobAnswers(merge(*digests))
    except TraceError as error:
        raise Failure(str(error)) from None


def _write_digests(digests: Any, args: argparse.Namespace) -> int:
    from ....ranks.digest_file import ENDING, write_digests

    blocks, left_out = digests
    target = args.output or f"job{ENDING}"
    write_file(target, [write_digests(blocks)])
    for entry in sorted(left_out):
        print(f"mtprof: left out {entry.source}: {entry.reason}", file=sys.stderr)
    reading.print_written(target)
    return FINE


def _report(answers: Any, paths: list[str], args: argparse.Namespace) -> int:
    from ....ranks.page import export
    from ....ranks.rank_pages import write_rank_pages

    target = args.output or "ranks.html"
    with CountLine("writing pages of ranks", "pages") as line:
        links = write_rank_pages(answers, paths, target, args.reports, line.update)
    export(answers, target, links=links)
    reading.print_written(target)
    return FINE


def _merge(answers: Any, paths: list[str], args: argparse.Namespace) -> int:
    from ....ranks.merged_trace import UnconnectedError, write_merged_trace

    target = args.output or "merged.json.gz"
    with CountLine("merging ranks", "ranks") as line:
        try:
            write_merged_trace(answers, paths, target, _numbers(args.ranks), _numbers(args.steps), line.update)
        except UnconnectedError as error:
            raise Failure(str(error)) from None
        except ValueError as error:
            raise Failure(str(error), USAGE) from None
    reading.print_written(target)
    return FINE


def _diff(paths: list[str], args: argparse.Namespace) -> int:
    from ....ranks.job_diff import compare

    if len(paths) != 2:
        raise Failure(f"two jobs are compared: mtprof ranks diff before/ after/; got {len(paths)}", USAGE)
    sides = [_digests([path], args) for path in paths]
    if any(side is None for side in sides):
        return FINE
    difference = compare(*(_answers(side) for side in sides))
    print(difference.to_json() if args.json else difference.text())
    return FOUND if args.fail and difference.slower else FINE


def _numbers(text: str | None) -> set[int] | None:
    """Parse "0,3,8-15"; None for all."""
    if text is None:
        return None
    numbers: set[int] = set()
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
    except ValueError:
        raise Failure(f"{text!r} is not a list of numbers such as 0,3,8-15", USAGE) from None
    return numbers
