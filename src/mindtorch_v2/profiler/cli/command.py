"""What a subcommand of `mtprof` is, and how one is found: by the name of its module in a package of `commands`."""

from __future__ import annotations

import argparse
import ast
import pkgutil
from importlib import import_module
from importlib.abc import SourceLoader
from importlib.machinery import ModuleSpec, PathFinder
from typing import Protocol, cast, runtime_checkable

from . import commands
from .parser import Parser


@runtime_checkable
class Command(Protocol):
    """What a module of a command has."""

    __doc__: str | None
    EXAMPLE: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare what the command takes."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it, and return the exit code. A Failure ends the command with one line on stderr."""


class Group:
    """The commands for one thing that a user wants; `title` says what that is."""

    def __init__(self, name: str) -> None:
        package = import_module(f"{commands.__name__}.{name}")
        self.title = (package.__doc__ or "").partition("\n")[0].removesuffix(".")
        self.modules = {
            module.name.replace("_", "-"): f"{package.__name__}.{module.name}"
            for module in pkgutil.iter_modules(package.__path__)
        }


def groups() -> list[Group]:
    """The groups in the order of the help text; no command is imported."""
    return [Group(name) for name in commands.GROUPS]


def names() -> list[str]:
    """The commands in alphabetical order, with a hyphen for an underscore. None of them is imported."""
    return sorted(name for group in groups() for name in group.modules)


def load(name: str) -> Command:
    """Import the module of a command."""
    return cast(Command, import_module(next(group.modules[name] for group in groups() if name in group.modules)))


def options(command: Command) -> list[str]:
    """The command's options that begin with two hyphens."""
    parser = Parser(add_help=False)
    command.add_arguments(parser)
    return parser.long_options


def summary(command: Command) -> str:
    """The first line of the command's docstring."""
    return (command.__doc__ or "").partition("\n")[0]


def first_line(module: str) -> str:
    """The same of a module that is not imported for that: most commands import much."""
    # Not by `importlib.util.find_spec`: pytest's loader, which may have claimed the package for its asserts, has no sources.
    spec = cast(ModuleSpec, PathFinder.find_spec(module, import_module(module.rpartition(".")[0]).__path__))
    loader = cast(SourceLoader, spec.loader)
    return (ast.get_docstring(ast.parse(cast(str, loader.get_source(module)))) or "").partition("\n")[0]


def version(package: str) -> str:
    """The version of an installed package; "" for a checkout that is not installed."""
    from importlib import metadata  # here, because hardly any call asks for it

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
