"""The program's own code with time, memory and calls by line.

It takes stacks: profile(with_stack=True), or `mtprof run --stack`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....analysis.findings import duration, size
from ....analysis.source.lines import FileLines, Line, SourceLines, source_lines
from ... import reading
from ...exit_codes import FINE, USAGE, Failure

EXAMPLE = "mtprof lines profile.mtp --file train.py"

_AROUND = 2  # lines of code shown before and after a line with figures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument("--file", default=None, metavar="NAME", help="only files whose name ends with this")
    parser.add_argument("--hot", action="store_true", help="only the lines with most self time, of all files together")
    parser.add_argument("--whole", action="store_true", help="whole files, with the lines on which nothing was recorded")
    parser.add_argument("--ops", action="store_true", help="name the ops of each line")
    reading.add_limit(parser, 20, "files, or with --hot lines,")
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the files with their figures, most self time first."""
    store = reading.open_recording(args.path).store
    folder = os.path.dirname(os.path.abspath(args.path)) if reading.is_named(args.path) else None
    found = source_lines(store, folder)
    if not found.files:
        raise Failure("no line of a program was recorded: profile(with_stack=True), or `mtprof run --stack`")
    files = [file for file in found.files if args.file is None or file.name.endswith(args.file)]
    if not files:
        known = ", ".join(file.name for file in reading.first(found.files, 10))
        raise Failure(f"no file whose name ends with {args.file!r}: there are {known}", USAGE)
    if args.json:
        print(dumps(_as_plain(found, files, args), indent=1))
        return FINE
    if found.limits:
        print(shown(found.limits) + "\n")
    if args.hot:
        _print_hot(files, args)
    else:
        _print_files(found, files, args)
    return FINE


def _hottest(files: list[FileLines]) -> list[tuple[FileLines, Line]]:
    pairs = [(file, line) for file in files for line in file.lines.values()]
    return sorted(pairs, key=lambda pair: -pair[1].self_ns)


def _as_plain(found: SourceLines, files: list[FileLines], args: argparse.Namespace) -> dict[str, object]:
    hot = _hottest(files)
    listed = {id(line) for _, line in reading.first(hot, args.limit)} if args.hot else {id(line) for _, line in hot}
    kept = files if args.hot else reading.first(files, args.limit)
    return {
        "files": [
            {
                "name": file.name,
                "path": file.source.path,
                "state": file.source.state,
                "self_ns": file.self_ns,
                "lines": [
                    {**line.to_dict(), "text": _text(file, number)}
                    for number, line in sorted(file.lines.items())
                    if id(line) in listed
                ],
            }
            for file in kept
        ],
        "files_in_all": len(files),
        "lines_in_all": len(hot),
        "elsewhere_ns": found.elsewhere_ns,
        "by_function": found.by_function,
        "sampled": found.sampled or None,
    }


def _text(file: FileLines, number: int) -> str | None:
    return file.source.lines[number - 1] if 0 < number <= len(file.source.lines) else None


def _print_hot(files: list[FileLines], args: argparse.Namespace) -> None:
    print(_HEAD + "  line")
    for file, line in reading.first(_hottest(files), args.limit):
        text = (_text(file, line.number) or "").strip()
        print(f"{_figures(line)}  {shown(file.name)}:{line.number}  {shown(text)}".rstrip())


def _print_files(found: SourceLines, files: list[FileLines], args: argparse.Namespace) -> None:
    for file in reading.first(files, args.limit):
        print(f"{shown(file.name)}  {duration(file.self_ns)}")
        if file.note:
            print(f"  {file.note}")
        print(_HEAD)
        for text in _code(file, args.whole, args.ops):
            print(text)
        print()
    left = len(files) - len(reading.first(files, args.limit))
    if left:
        print(f"... {left} more files")
    if found.elsewhere_ns:
        print(f"{duration(found.elsewhere_ns)} in events that no line of the program called")


_HEAD = f"{'total':>9} {'self':>9} {'Python':>9} {'backward':>9} {'memory':>9} {'calls':>7}"
_BLANK = " " * len(_HEAD)


def _figures(line: Line) -> str:
    times = (line.total_ns, line.self_ns, line.python_ns, line.backward_ns)
    cells = [f"{duration(ns) if ns else '':>9}" for ns in times]
    return " ".join([*cells, f"{size(line.bytes) if line.bytes else '':>9}", f"{line.calls or '':>7}"])


def _code(file: FileLines, whole: bool, ops: bool) -> Iterator[str]:
    """The lines of a file with their figures; "..." stands for lines without any."""
    texts = file.source.lines
    near = {number + by for number in file.lines for by in range(-_AROUND, _AROUND + 1)}
    last = max([len(texts), *(file.lines if not texts else ())], default=0)
    skipped = False
    for number in range(1, last + 1) if texts else sorted(file.lines):
        if not whole and number not in near:
            skipped = True
            continue
        if skipped:
            yield f"{_BLANK}        ..."
            skipped = False
        line = file.lines.get(number)
        text = shown(texts[number - 1]) if texts else ""
        yield f"{_BLANK if line is None else _figures(line)} {number:>5}  {text}".rstrip()
        if ops and line is not None:
            for name, spent in line.ops.items():
                yield f"{_BLANK}          {duration(spent)} {shown(name)}"
