"""What the commands that read a recording have in common: arguments, the file or pipe to read, default names of outputs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from .._io.strict_json import dumps
from .._io.terminal import shown
from ..formats import TraceError
from ..formats._source import Pipe
from ..formats.cache import read_cached
from ..formats.detect import read_any
from ..results.loaded import LoadedProfile
from ..store.store import EventStore
from .exit_codes import USAGE, Failure
from .progress import ProgressLine

T = TypeVar("T")

STDIN = "-"


def add_path(parser: argparse.ArgumentParser) -> None:
    """Add the argument `path`: the recording to read."""
    parser.add_argument("path", help="saved profile, Chrome trace (.json, .json.gz) or Ascend folder; - is standard input")


def add_sorting(parser: argparse.ArgumentParser) -> None:
    """Add --sort and --limit."""
    parser.add_argument(
        "--sort", "--sort-by", default=None, metavar="KEY", help="column, e.g. self_cpu_time_total, cpu_time_total, count"
    )
    add_limit(parser, 20)


def add_limit(parser: argparse.ArgumentParser, default: int, what: str = "rows") -> None:
    """Add --limit, for `first`."""
    parser.add_argument("-n", "--limit", type=int, default=default, help=f"{what} to show (default {default}, -1 for all)")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json: the same figures for programs, as docs/json.md describes them."""
    parser.add_argument("--json", action="store_true", help="as JSON")


def add_written_json(parser: argparse.ArgumentParser) -> None:
    """Add --json to a command that writes: what it wrote, for programs. It is no question that `mtprof mcp` may ask."""
    parser.add_argument("--json", dest="written_json", action="store_true", help="tell what was written as JSON, in one line")


def first(rows: Sequence[T], limit: int) -> Sequence[T]:
    """The rows within the limit: all of them if it is negative."""
    return rows if limit < 0 else rows[:limit]


def check_step(store: EventStore, step: int) -> None:
    """Fail if a recording has no event of a step, and say which steps it has."""
    steps = np.unique(store.step).tolist()
    if step not in steps:
        known = (
            f"it has {steps[0]} to {steps[-1]}"
            if len(steps) > 1
            else f"all of it is step {steps[0]}"
            if steps and steps != [0]
            else "it was recorded without steps, which `mtprof run --schedule` or profile.step() tells"
            if steps
            else "it is empty"
        )
        raise Failure(f"nothing was recorded in step {step}: {known}", USAGE)


def stem(path: str) -> str:
    """A recording's path without .json, .json.gz or .mtp."""
    return path.removesuffix(".gz").removesuffix(".json").removesuffix(".mtp")


def source(path: str) -> str | os.PathLike[str]:
    """What `load` is to read: the path, or standard input for "-"."""
    if path != STDIN:
        return path
    if sys.stdin is None:
        raise Failure("there is no standard input to read from", USAGE)
    return Pipe(sys.stdin.buffer, "standard input")


def is_named(path: str) -> bool:
    """Whether the recording has a name of its own, unlike what comes out of a pipe."""
    return path != STDIN and (os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path))


def default_target(path: str, ending: str) -> str:
    """Where to write what is made of a recording without --output: beside it."""
    if not is_named(path):
        raise Failure("what comes out of a pipe has no name: say with --output what file to write", USAGE)
    return stem(path) + ending


def title(path: str) -> str:
    """The recording's name for a page's title."""
    return os.path.basename(path) if is_named(path) else "recording"


def check_apart(source: str, target: str) -> None:
    """Fail if a command would write over the file it reads."""
    if os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target):
        raise Failure("the output would replace the input: name another file with --output", USAGE)


def print_written(target: str, as_json: bool = False, **figures: object) -> None:
    """Print the name of the file that was written, or as JSON its path and size with further figures: on stderr if that was
    standard output, where it would be part of it."""
    taken = os.path.exists(target) and sys.stdout is not None and _is_stdout(target)
    text = dumps({"path": os.path.abspath(target), "bytes": size_of(target), **figures}) if as_json else shown(target)
    print(text, file=sys.stderr if taken else sys.stdout)


def size_of(target: str) -> int:
    """The bytes of a file, or of all files of a folder, as Ascend's formats are."""
    if not os.path.isdir(target):
        return os.path.getsize(target)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(target) for name in names)


def _is_stdout(target: str) -> bool:
    try:
        return os.path.samestat(os.stat(target), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # standard output without a descriptor
        return False


def open_recording(path: str) -> LoadedProfile:
    """Read a recording and note on stderr what could not be read of it."""
    loaded = read_recording(path)
    if not len(loaded.store) and loaded.recovery.skipped:
        raise Failure(f"{path}: no event of a recording is in it: {loaded.recovery}")
    if not loaded.recovery.intact:
        print(f"mtprof: {shown(path)}: {loaded.recovery}", file=sys.stderr)
    if not len(loaded.store):
        print(f"mtprof: {shown(path)}: there are no events in it", file=sys.stderr)
    return loaded


def read_recording(path: str) -> LoadedProfile:
    """Read a recording, with a progress line if it takes long. A Failure says why there is none in the file."""
    with ProgressLine(f"reading {path}") as line:
        try:
            what = source(path)
            return LoadedProfile(*read_cached(what, lambda: read_any(what, line.update), line.update))
        except TraceError as error:
            raise Failure(f"{path}: {error}") from None
