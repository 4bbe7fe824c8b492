"""`mtprof`: finds the subcommand, runs it, and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from ...version import __version__ as torch_version
from . import exit_codes

PACKAGE = "mindtorch_v2"

# name -> what it does, in the order of --help. Each is a module of this package with add_arguments(parser), run(args)
# and EXAMPLE; it is imported when its command is used.
COMMANDS = {
    "run": "run a script under the profiler",
    "table": "the operators and what they took",
    "events": "single events, filtered",
    "tree": "the call tree, or the module tree",
    "memory": "where memory went, and what held it at the peak",
    "flops": "FLOPs by operator, and how fast they were done",
    "advice": "what to change, why, and what it may gain",
    "report": "one HTML page with everything",
    "diff": "what became faster or slower between two recordings",
    "convert": "write a recording for another tool",
    "validate": "check a file",
    "repair": "save what can be read of a file that was cut off or damaged",
    "demo": "record a small training run and show what can be done with it",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    parser = _parser(given[0] if given and given[0] in COMMANDS else None)
    args = parser.parse_args(given)
    if args.version:
        print(_version())
        return exit_codes.FINE
    if not hasattr(args, "run"):
        parser.print_help()
        return exit_codes.USAGE
    try:
        code: int = args.run(args)
        sys.stdout.flush()  # here, so that a reader who went away is noticed here
        return code
    except exit_codes.Failure as failure:
        print(f"mtprof {args.command}: {failure}", file=sys.stderr)
        return failure.code
    except BrokenPipeError:  # `mtprof table x | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.FINE
    except OSError as error:
        print(f"mtprof {args.command}: {error}", file=sys.stderr)
        return exit_codes.UNREADABLE
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED


def _parser(wanted: str | None) -> argparse.ArgumentParser:
    """The parser, with the arguments of the wanted command alone: the others need not be imported."""
    parser = argparse.ArgumentParser(
        prog="mtprof",
        description="Record, read and compare profiles: saved ones, Chrome traces, and those of PyTorch (.json, .json.gz).",
        epilog=f"exit codes: {exit_codes.MEANING}",
    )
    parser.add_argument("--version", action="store_true", help="say which version this is")
    commands = parser.add_subparsers(metavar="command", dest="command")
    for name, summary in COMMANDS.items():
        module = _command(name) if name == wanted else None
        one = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=f"example:\n  {module.EXAMPLE}" if module else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if module:
            module.add_arguments(one)
            one.set_defaults(run=module.run)
    return parser


def _version() -> str:
    """What is installed; a checkout that is not installed has no version of its own."""
    from importlib import metadata  # here, because hardly any call asks for it

    try:
        own = metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        own = "(not installed)"
    return f"mtprof of {PACKAGE} {own}, which follows torch {torch_version}"


def _command(name: str) -> ModuleType:
    return import_module(f".{name}", __package__)
