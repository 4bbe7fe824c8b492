"""`mtprof`: finds the subcommand, runs it, and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import cast

from ..._core.files import IN_PLACE_OF_A_FOLDER
from ...version import __version__ as torch_version
from .._io.terminal import shown
from . import command, exit_codes
from .parser import Parser, near

PACKAGE = "mindtorch_v2"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_closed_streams()
    _write_any_character()
    misplaced = arguments and arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version")
    if misplaced and any(word in command.names() for word in arguments[1:]):
        print(f"mtprof: {shown(arguments[0])} stands before the command: options of a command stand after it", file=sys.stderr)
        return exit_codes.USAGE
    if arguments and not arguments[0].startswith("-") and arguments[0] not in command.names():
        print(f"mtprof: {_unknown(arguments[0])}", file=sys.stderr)
        return exit_codes.USAGE
    if arguments[:1] == ["--version"]:
        print(_version())
        return exit_codes.FINE
    parser = _parser(arguments[0] if arguments else None)
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        _parser_of(parser, args.command).unknown(unknown, _elsewhere(unknown[0]))
    if not hasattr(args, "run"):
        parser.print_help()
        return exit_codes.USAGE
    environment = sys.modules.get("mindtorch_v2.profiler.live.environment")
    if environment is not None and args.command != "run":
        environment.close()  # MTPROF is about programs; only `run` runs one
    try:
        code: int = args.run(args)
        sys.stdout.flush()  # now, so that a closed pipe raises inside this try
        return code
    except exit_codes.Failure as failure:
        print(f"mtprof {args.command}: {shown(str(failure))}", file=sys.stderr)
        return failure.code
    except BrokenPipeError:  # `mtprof table x | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.FINE
    except OSError as error:
        print(f"mtprof {args.command}: {shown(_failure(error))}", file=sys.stderr)
        return exit_codes.UNREADABLE
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED


def _failure(error: OSError) -> str:
    """What is said of a file that cannot be read or written."""
    name = error.filename
    if isinstance(error, FileNotFoundError) and isinstance(name, str):
        folder = os.path.dirname(name)
        return f"there is no folder {folder!r}" if folder and not os.path.isdir(folder) else f"there is no file {name!r}"
    if isinstance(error, IsADirectoryError) and error.strerror != IN_PLACE_OF_A_FOLDER:
        return f"{name!r} is a folder: name a recording in it, or see `mtprof history --help`"
    if not error.strerror:
        return str(error)
    return f"{name!r}: {error.strerror}" if isinstance(name, str) else error.strerror  # without a name: standard output


def _unknown(name: str) -> str:
    """What is said of a command that there is not: the one that was meant, if that can be told."""
    to_read = f"to read that file: `mtprof table {name}`; for other questions see `mtprof --help`"
    hint = near(name, command.names()) or (to_read if os.path.exists(name) else f"there are {', '.join(command.names())}")
    return shown(f"there is no command {name!r}: {hint}")


def _elsewhere(argument: str) -> str:
    """What is said of an argument that the command does not have, but others may: which these are."""
    option = argument.partition("=")[0]
    if not option.startswith("-"):
        return "one recording is read; `mtprof diff` compares two" if os.path.exists(argument) else ""
    owners = [name for name in command.names() if option in command.options(command.load(name))]
    return f"that is an option of `mtprof {'`, `mtprof '.join(owners)}`" if owners else ""


def _open_closed_streams() -> None:
    """Have the null device take the place of closed streams, as cron jobs and daemons may have them (`>&-`).

    It takes their numbers too: the next file that is opened would else be what C code takes for standard output. Commands that
    read standard input still find that there is none.
    """
    if sys.stdin is not None and sys.stdout is not None and sys.stderr is not None:
        return
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  as long as the process


def _write_any_character() -> None:
    """Let characters that the terminal's encoding lacks be written escaped, instead of ending the command.

    Python chooses "surrogateescape" under LC_ALL=C, which knows what to do with file names, and refuses other characters.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")


def _parser(wanted: str | None) -> Parser:
    """The parser of all commands. Only the one that the first argument names is imported: the others are names."""
    names = command.names()
    parser = Parser(
        prog="mtprof",
        usage="mtprof COMMAND ... | mtprof COMMAND --help | mtprof --version",
        description=None if wanted in names else _overview(),
        epilog="exit codes:\n" + "\n".join(f"  {code:<3} {meaning}" for code, meaning in exit_codes.MEANING.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="say which version this is")
    subparsers = parser.add_subparsers(metavar="command", dest="command", help=argparse.SUPPRESS)
    for name in names:
        if name != wanted:
            subparsers.add_parser(name, prog=f"mtprof {name}")
            continue
        module = command.load(name)
        subparser = subparsers.add_parser(
            name,
            prog=f"mtprof {name}",
            description=command.summary(module),
            epilog=f"example:\n  {module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser


def _overview() -> str:
    """What `mtprof` is for, and its commands by what a user wants."""
    about = (
        "Record, read and compare profiles: saved ones (.mtp), Chrome traces and those\n"
        "of PyTorch (.json, .json.gz), folders of Ascend's profilers."
    )
    width = max(map(len, command.names())) + 2
    return "\n\n".join(
        [about]
        + [
            "\n".join(
                [f"{group.title}:"]
                + [f"  {name:<{width}}{command.first_line(group.modules[name]).removesuffix('.')}" for name in group.modules]
            )
            for group in command.groups()
        ]
    )


def _parser_of(parser: Parser, name: str | None) -> Parser:
    """The parser of a command; that of all of them if there is none."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and name in action.choices:
            return cast(Parser, action.choices[name])
    return parser


def _version() -> str:
    """The version line; a checkout that is not installed has no version of its own."""
    return f"mtprof of {PACKAGE} {command.version(PACKAGE) or '(not installed)'}, which follows torch {torch_version}"
