"""Names of a package that are imported when they are first asked for, so that importing the package stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def later(
    package: str, modules: tuple[str, ...], names: dict[str, tuple[str, ...]] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, for submodules and for names that live in them.

    `names` maps a module, relative to the package (".func", "..nn"), to what is taken from it.
    """
    homes = {name: home for home, listed in (names or {}).items() for name in listed}

    def find(name: str) -> Any:
        if name in modules:
            return import_module(f".{name}", package)
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        found = getattr(import_module(home, package), name)
        setattr(sys.modules[package], name, found)
        return found

    def listing() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *homes})

    return find, listing
