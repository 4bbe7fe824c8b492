"""mtprof convert: a recording written for another tool."""

from __future__ import annotations

import argparse

from ..exporters import get as exporter
from . import reading
from .exit_codes import USAGE, Failure

EXAMPLE = "mtprof convert trace.json.gz --to speedscope -o trace.speedscope.json"

# what to call it -> (exporter, ending of the file)
FORMATS = {
    "chrome": ("chrome", ".json"),
    "saved": ("saved", ".mtp"),
    "perfetto": ("perfetto", ".pftrace"),
    "speedscope": ("speedscope", ".speedscope.json"),
    "collapsed": ("collapsed", ".collapsed.txt"),
    "pprof": ("pprof", ".pb.gz"),
    "csv": ("csv", ".csv"),
    "parquet": ("parquet", ".parquet"),
    "html": ("html", ".html"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    reading.add_path(parser)
    parser.add_argument("--to", choices=FORMATS, default=None, help="format (default: by the ending of --output)")
    parser.add_argument("-o", "--output", default=None, help="file to write (default: the recording's name, another ending)")


def run(args: argparse.Namespace) -> int:
    """Write the file."""
    wanted = args.to or _by_ending(args.output)
    name, ending = FORMATS[wanted]
    loaded = reading.open_recording(args.path)
    target = args.output or args.path.removesuffix(".gz").removesuffix(".json").removesuffix(".mtp") + ending
    if target == args.path:
        raise Failure("the output would replace the input: name another file with --output", USAGE)
    try:
        exporter(name)(loaded.store, target)
    except ImportError as error:  # an extra that is not installed
        raise Failure(str(error), USAGE) from None
    print(target)
    return 0


def _by_ending(output: str | None) -> str:
    for name, (_, ending) in sorted(FORMATS.items(), key=lambda item: -len(item[1][1])):
        if output and (output.endswith(ending) or output.endswith(ending + ".gz")):
            return name
    raise Failure(f"say the format with --to: {', '.join(FORMATS)}", USAGE)
