"""What a subcommand of `mtprof` is, and how one is found: by the name of its module in `commands`."""

from __future__ import annotations

import argparse
import pkgutil
from importlib import import_module
from typing import Protocol, cast, runtime_checkable

from . import commands


@runtime_checkable
class Command(Protocol):
    """What a module of `commands` has."""

    __doc__: str | None
    EXAMPLE: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare what the command takes."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it, and return the exit code. A Failure ends the command with one line on stderr."""


def names() -> list[str]:
    """The commands in alphabetical order, with a hyphen for an underscore. None of them is imported."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(commands.__path__))


def load(name: str) -> Command:
    """Import the module of a command."""
    return cast(Command, import_module(f"{commands.__name__}.{name.replace('-', '_')}"))


def summary(command: Command) -> str:
    """The first line of the command's docstring."""
    return (command.__doc__ or "").partition("\n")[0]
