"""mtprof report: one HTML page with everything, to be opened from disk."""

from __future__ import annotations

import argparse
import os

from ..exporters import get as exporter
from . import reading

EXAMPLE = "mtprof report trace.json.gz -o report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    reading.add_path(parser)
    parser.add_argument("-o", "--output", default=None, help="file to write (default: the recording's name with .html)")
    parser.add_argument("--title", default=None, help="title of the page (default: the recording's name)")


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    loaded = reading.open_recording(args.path)
    name = os.path.basename(args.path)
    target = args.output or args.path.removesuffix(".gz").removesuffix(".json").removesuffix(".mtp") + ".html"
    exporter("html")(
        loaded.store, target, title=args.title or name, findings=loaded.advice(), overhead=loaded.overhead()
    )
    print(target)
    return 0
