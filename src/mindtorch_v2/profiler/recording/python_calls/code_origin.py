"""Which Python code is this runtime's inside: not shown in stacks and traces, as torch's C++ is not shown either."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

USER, INSIDE, ENTRY, LIBRARY = range(4)

_PACKAGE = os.path.abspath(__file__).removesuffix(os.path.join("profiler", "recording", "python_calls", "code_origin.py"))
# Rooms of this package that stand for what is compiled in torch, and the profiler itself.
_INSIDE = re.compile(r"(.*/)?_(?!_init__\.py)\w*(/|\.py$)|profiler/|nn/modules/module\.py$")
_GENERATED = re.compile(r"<\w+::[^>]*>$")  # file names of generated op entries
_GENERATED_INSIDE = re.compile(r"<\w+ \w+::[^>]*>$")  # of what is generated for ops elsewhere, such as their backward
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
# Where packages that were installed live inside the standard library's folder; outside of it they need no telling apart.
_SITE_PACKAGES = tuple(_STANDARD + folder + os.sep for folder in ("site-packages", "dist-packages"))


def inner_code(function: Callable[..., Any], name: str) -> CodeType:
    """The code of the function of that name which `function` defines: all that it makes share it."""
    return next(code for code in function.__code__.co_consts if isinstance(code, CodeType) and code.co_name == name)


def belongs(filename: str) -> int:
    """INSIDE: this runtime's own. ENTRY: the generated entry of an op. LIBRARY: NumPy or the standard library, which
    are left out where the inside uses them. USER: everything else.
    """
    if filename.startswith(_PACKAGE):
        return INSIDE if _INSIDE.match(filename[len(_PACKAGE) :].replace(os.sep, "/")) else USER
    if _GENERATED.match(filename):
        return ENTRY
    if _GENERATED_INSIDE.match(filename):
        return INSIDE
    if filename.startswith(("<frozen ", "<string>", _NUMPY)):  # <string>: what namedtuple and dataclass generate
        return LIBRARY
    return LIBRARY if filename.startswith(_STANDARD) and not filename.startswith(_SITE_PACKAGES) else USER
