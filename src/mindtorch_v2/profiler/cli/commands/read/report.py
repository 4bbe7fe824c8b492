"""One HTML page with everything.

It needs no server: it is opened from disk.
"""

from __future__ import annotations

import argparse
import pathlib
import webbrowser

from ... import reading
from ...exit_codes import FINE, Failure

EXAMPLE = "mtprof report trace.json.gz -o report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument("-o", "--output", default=None, help="file to write (default: the recording's name with .html)")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument("--title", default=None, help="title of the page (default: the recording's name)")
    reading.add_written_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the page and print its name."""
    target = args.output or reading.default_target(args.path, ".html")
    reading.check_apart(args.path, target)
    loaded = reading.open_recording(args.path)
    loaded.export_html(target, args.title or reading.title(args.path))
    reading.print_written(target, args.written_json, events=len(loaded.store))
    if args.open and not webbrowser.open(pathlib.Path(target).resolve().as_uri()):
        raise Failure("there is no browser to open the page in")
    return FINE
