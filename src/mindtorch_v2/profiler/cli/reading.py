"""What the commands that read a recording have in common: the argument, the progress bar, the notes on what was lost."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, TypeVar

from ..formats import TraceError
from ..formats._source import Pipe
from ..results.loaded import LoadedProfile, load
from .exit_codes import USAGE, Failure

T = TypeVar("T")

STDIN = "-"
_PATIENCE_S = 1.0  # work that takes longer shows a bar


def add_path(parser: argparse.ArgumentParser, name: str = "path") -> None:
    """The recording to read."""
    parser.add_argument(name, help="saved profile or Chrome trace, .json or .json.gz; - is standard input")


def add_sorting(parser: argparse.ArgumentParser) -> None:
    """How a table is grouped, sorted and cut."""
    parser.add_argument(
        "--sort", "--sort-by", default=None, metavar="KEY", help="column, e.g. self_cpu_time_total, cpu_time_total, count"
    )
    add_limit(parser, 20)


def add_limit(parser: argparse.ArgumentParser, default: int, what: str = "rows") -> None:
    """How many lines to show."""
    parser.add_argument("-n", "--limit", type=int, default=default, help=f"{what} to show (default {default}, -1 for all)")


def first(rows: Sequence[T], limit: int) -> Sequence[T]:
    """The rows to show."""
    return rows if limit < 0 else rows[:limit]


def stem(path: str) -> str:
    """A recording's path without its ending."""
    return path.removesuffix(".gz").removesuffix(".json").removesuffix(".mtp")


def source(path: str) -> str | os.PathLike[str]:
    """What the argument stands for: a path, or standard input."""
    if path != STDIN:
        return path
    if sys.stdin is None:
        raise Failure("there is no standard input to read from", USAGE)
    return Pipe(sys.stdin.buffer, "standard input")


def is_named(path: str) -> bool:
    """Whether the recording has a name of its own, unlike what comes out of a pipe."""
    return path != STDIN and (os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path))


def default_target(path: str, ending: str) -> str:
    """Where to write what is made of a recording if nobody says: beside it."""
    if not is_named(path):
        raise Failure("what comes out of a pipe has no name: say with --output what file to write", USAGE)
    return stem(path) + ending


def title(path: str) -> str:
    """What to call a recording."""
    return os.path.basename(path) if is_named(path) else "recording"


def check_apart(source: str, target: str) -> None:
    """A command must not write over what it reads."""
    if os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target):
        raise Failure("the output would replace the input: name another file with --output", USAGE)


def open_recording(path: str) -> LoadedProfile:
    """Read a recording, with a progress bar if it takes long; what was lost of it is said on stderr."""
    with ProgressBar(f"reading {path}") as bar:
        try:
            loaded = load(source(path), bar.update)
        except TraceError as error:
            raise Failure(f"{path}: {error}") from None
    if not loaded.recovery.intact:
        print(f"mtprof: {path}: {loaded.recovery}", file=sys.stderr)
    return loaded


class ProgressBar:
    """A bar on stderr for work that takes more than a second; nothing where stderr is not a terminal."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._began = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, whole: int) -> None:
        """So much of it is done."""
        if not self._shown:
            return
        if self._bar is None and time.monotonic() - self._began > _PATIENCE_S:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._text, total=None)
        if self._bar is not None:
            # How much there is in a pipe is not known: the bar only moves.
            self._bar.update(self._task, completed=done, total=whole if whole > done else None)
