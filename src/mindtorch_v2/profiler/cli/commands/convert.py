"""mtprof convert: a recording written for another tool."""

from __future__ import annotations

import argparse

from . import reading
from .exit_codes import USAGE, Failure

EXAMPLE = "mtprof convert trace.json.gz --to speedscope -o trace.speedscope.json"

# exporter -> ending of the file
FORMATS = {
    "chrome": ".json",
    "saved": ".mtp",
    "perfetto": ".pftrace",
    "speedscope": ".speedscope.json",
    "collapsed": ".collapsed.txt",
    "pprof": ".pb.gz",
    "csv": ".csv",
    "parquet": ".parquet",
    "html": ".html",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    reading.add_path(parser)
    parser.add_argument("--to", choices=FORMATS, default=None, help="format (default: by the ending of --output)")
    parser.add_argument("-o", "--output", default=None, help="file to write (default: the recording's name, another ending)")


def run(args: argparse.Namespace) -> int:
    """Write the file."""
    wanted = args.to or _by_ending(args.output)
    target = args.output or reading.default_target(args.path, FORMATS[wanted])
    reading.check_apart(args.path, target)
    loaded = reading.open_recording(args.path)
    try:
        if wanted == "html":
            loaded.export_html(target, reading.title(args.path))
        else:
            loaded.export(wanted, target)
    except ImportError as error:  # an extra that is not installed
        raise Failure(str(error), USAGE) from None
    print(target)
    return 0


def _by_ending(output: str | None) -> str:
    for name, ending in sorted(FORMATS.items(), key=lambda item: -len(item[1])):
        if output and (output.endswith((ending, ending + ".gz"))):
            return name
    raise Failure(f"say the format with --to: {', '.join(FORMATS)}", USAGE)
