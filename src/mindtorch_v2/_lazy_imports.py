"""Names of a package that are imported at their first use, so that importing the package stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, modules: tuple[str, ...] = (), names: dict[str, tuple[str, ...]] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, for submodules and for names that live in them.

    `names` maps a module, relative to the package (".func", "..nn"), to the names that are taken from it. A name becomes an
    attribute of the package at its first use, so `__getattr__` runs once for each. What has none of both may be a name that
    refuses its use: see `_refused_names`.
    """
    module_of = {name: module for module, listed in (names or {}).items() for name in listed}

    def load(name: str) -> Any:
        if name in modules:
            return import_module(f".{name}", package)
        module = module_of.get(name)
        if module is not None:
            value = getattr(import_module(module, package), name)
        elif name.startswith("_"):
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        else:
            value = _refused_names().find(package, name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *module_of, *_refused_names().listed(package)})

    return load, list_names


def _refused_names() -> Any:
    return import_module("._refused_names", __name__.partition(".")[0])


class _RefusedModules:
    """The last of the finders: modules of torch that have no file here, since nothing in them works. See `_refused`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        """How to make such a module; None for any other name."""
        own = __name__.partition(".")[0]
        return import_module("._refused", own).find_spec(name) if name.startswith(own + ".") else None


sys.meta_path.append(_RefusedModules)
