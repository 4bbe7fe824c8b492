"""Where code comes from, by its file name: the user, a library, or this runtime, whose inside no stack or trace shows.

torch's C++ does not show there either.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from ...._dispatch import observer

USER, INSIDE, ENTRY, LIBRARY = range(4)

_PACKAGE = os.path.abspath(__file__).removesuffix(os.path.join("profiler", "recording", "python_calls", "code_origin.py"))
# The parts of this package that are compiled code in torch, and the profiler itself.
_INSIDE = re.compile(r"(.*/)?_(?!_init__\.py)\w*(/|\.py$)|(npu/)?profiler/|nn/modules/module\.py$")
_GENERATED = re.compile(r"<\w+::[^>]*>$")  # file names of generated op entries
_GENERATED_INSIDE = re.compile(r"<\w+ \w+::[^>]*>$")  # of what is generated for ops elsewhere, such as their backward
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
# Installed packages inside the standard library's folder. They are the user's, as those anywhere else are.
_SITE_PACKAGES = tuple(_STANDARD + folder + os.sep for folder in ("site-packages", "dist-packages"))


# Of the profiler's own files.
PROFILER_FOLDER = os.path.join(_PACKAGE, "profiler") + os.sep

# The function that imports a module which is not loaded yet; its argument `name` is the module's. Inside run the interpreter's
# own work and the bodies of modules: millions of calls for large packages. A recording has one row for each import instead.
IMPORT_SYSTEM = "<frozen importlib."  # how the file names of its code begin
IMPORT_PREFIX = observer.IMPORT_PREFIX  # of the text of such a row
FIND_AND_LOAD: CodeType = importlib._bootstrap._find_and_load.__code__  # type: ignore[attr-defined]


def inner_code(function: Callable[..., Any], name: str) -> CodeType:
    """The code of the inner function `name` that `function` defines; all its closures share that code."""
    return next(code for code in function.__code__.co_consts if isinstance(code, CodeType) and code.co_name == name)


def classify(filename: str) -> int:
    """INSIDE: this runtime's own code. ENTRY: the generated entry of an op. LIBRARY: NumPy or the standard library, whose
    calls are hidden where the inside makes them. USER: everything else.
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
