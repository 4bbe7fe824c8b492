"""Write a recording for another tool."""

from __future__ import annotations

import argparse

from ....exporters.stacks import NoStacksError
from ....results import writers
from ... import reading
from ...exit_codes import FINE, USAGE, Failure

EXAMPLE = "mtprof convert trace.json.gz --to speedscope -o trace.speedscope.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument("--to", choices=writers.ENDINGS, default=None, help="format (default: by the ending of --output)")
    parser.add_argument("-o", "--output", default=None, help="file to write (default: the recording's name, another ending)")
    reading.add_written_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file and print its name."""
    format = args.to or _format_by_ending(args.output)
    target = args.output or reading.default_target(args.path, writers.ENDINGS[format])
    reading.check_apart(args.path, target)
    loaded = reading.open_recording(args.path)
    try:
        if format == "html":
            loaded.export_html(target, reading.title(args.path))
        else:
            loaded.export(format, target)
    except ImportError as error:  # an extra that is not installed
        raise Failure(str(error), USAGE) from None
    except NoStacksError as error:
        raise Failure(str(error)) from None
    reading.print_written(target, args.written_json, format=format, events=len(loaded.store))
    return FINE


def _format_by_ending(output: str | None) -> str:
    longest_first = sorted(writers.ENDINGS.items(), key=lambda item: -len(item[1]))  # .speedscope.json before .json
    for format, ending in longest_first:
        if output and output.endswith((ending, ending + ".gz")):
            return format
    raise Failure(f"say the format with --to: {', '.join(writers.ENDINGS)}", USAGE)
