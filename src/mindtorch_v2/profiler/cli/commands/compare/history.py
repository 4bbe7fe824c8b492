"""How time and memory went over many recordings.

One recording for each version, in a folder or by name.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from collections.abc import Iterator

from ...._io.strict_json import dumps
from ...._io.terminal import cut, padded, shown
from ....analysis.comparison.history import Point, history
from ....analysis.findings import duration, relative_change
from ....exporters.table import format_memory
from ....report.history import export
from ....store.store import EventStore
from ... import reading
from ...exit_codes import FINE, FOUND, USAGE, Failure

EXAMPLE = "mtprof history nightly/ --html trend.html"

_ENDINGS = (".mtp", ".json", ".json.gz")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_LABEL_COLUMNS = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("paths", nargs="+", metavar="path", help="recordings, or folders of them")
    parser.add_argument(
        "--git",
        default=None,
        metavar="RANGE",
        help="recordings named by a commit of this range (v1.0..main), in its order (default: all, by when they were recorded)",
    )
    parser.add_argument("--html", default=None, metavar="FILE", help="write a page with charts too")
    parser.add_argument("--fail", action="store_true", help="exit with 1 if the last one is slower than that before it")
    reading.add_limit(parser, -1, "recordings, the last ones,")
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print one line for each recording."""
    files = [file for path in args.paths for file in _recordings(path)]
    if not files:
        raise Failure(f"there is no recording ({', '.join(_ENDINGS)}) in {', '.join(args.paths)}", USAGE)
    ordered = _by_commit(files, args.git) if args.git is not None else _by_time(files)
    chosen = ordered if args.limit < 0 else ordered[max(0, len(ordered) - args.limit) :]
    points = list(history(_opened(chosen)))
    if args.html is not None:
        export(points, args.html)
    if args.json:
        print(dumps({"recordings": [point.to_dict() for point in points], "recordings_in_all": len(ordered)}, indent=1))
    else:
        _print_table(points)
    return FOUND if args.fail and points and points[-1].verdict == "slower" else FINE


def _recordings(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(_ENDINGS))


def _by_time(files: list[str]) -> list[tuple[str, str]]:
    """Labels and paths, oldest first. Reading all of them twice keeps one in memory at a time."""
    when = {path: reading.open_recording(path).store.wall_start_ns or os.stat(path).st_mtime_ns for path in files}
    return [(os.path.basename(reading.stem(path)), path) for path in sorted(files, key=when.__getitem__)]


def _by_commit(files: list[str], revisions: str) -> list[tuple[str, str]]:
    """Labels and paths of the recordings whose names have a commit of the range in them, in its order."""
    command = ["git", "log", "--reverse", "--encoding=UTF-8", "--format=%H %s", revisions, "--"]
    try:
        listed = subprocess.run(command, encoding="utf-8", errors="replace", capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise Failure("--git needs the program git", USAGE) from None
    except subprocess.CalledProcessError as error:
        raise Failure(f"git does not know the range {revisions!r}: {error.stderr.strip()}", USAGE) from None
    named = [(name, path) for path in files for name in _COMMIT.findall(os.path.basename(path))]
    ordered = []
    for line in listed.splitlines():
        commit, _, subject = line.partition(" ")
        ordered += [(f"{commit[:9]} {subject}", path) for name, path in named if commit.startswith(name)]
    if not ordered:
        raise Failure(f"no recording is named by one of the {len(listed.splitlines())} commits of {revisions!r}", USAGE)
    return ordered


def _opened(files: list[tuple[str, str]]) -> Iterator[tuple[str, str, EventStore]]:
    for label, path in files:
        yield label, path, reading.open_recording(path).store


def _print_table(points: list[Point]) -> None:
    print(f"{'':{_LABEL_COLUMNS}} {'a step':>9} {'p95':>9} {'change':>8} {'ops':>7} {'peak':>10}  verdict")
    for point in points:
        change = "" if point.ratio is None else relative_change(point.ratio)
        peak = "" if point.peak is None else format_memory(point.peak)
        label = padded(cut(shown(point.label), _LABEL_COLUMNS), _LABEL_COLUMNS, left=True)
        verdict = f"{point.verdict}; most: {shown(point.largest)}" if point.largest else point.verdict
        times = f"{duration(point.step_ns):>9} {duration(point.p95_ns):>9} {change:>8}"
        print(f"{label} {times} {point.ops:>7.0f} {peak:>10}  {verdict}".rstrip())
