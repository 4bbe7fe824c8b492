"""How many threads matrix products may use: the switch of the BLAS library that NumPy brings along."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

import numpy as np

# Names under which OpenBLAS builds export the same two functions.
_PREFIXES = ("scipy_openblas", "openblas")
_SUFFIXES = ("64_", "_64", "")


def _libraries() -> list[str]:
    """BLAS libraries beside NumPy: inside its wheel, or next to it."""
    root = os.path.dirname(np.__file__)
    folders = (f"{root}.libs", os.path.join(root, ".libs"), os.path.join(root, ".dylibs"))
    return [
        os.path.join(folder, name)
        for folder in folders
        if os.path.isdir(folder)
        for name in os.listdir(folder)
        if "openblas" in name
    ]


def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    for path in _libraries():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for prefix in _PREFIXES:
            for suffix in _SUFFIXES:
                getter = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
                setter = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                if getter is not None and setter is not None:
                    return getter, setter
    return None


class _Threads:
    """The figure users set, and the library's functions once they were looked for."""

    def __init__(self) -> None:
        self.count: int | None = None
        self.functions: tuple[Callable[[], int], Callable[[int], None]] | None = None
        self.searched = False

    def library(self) -> tuple[Callable[[], int], Callable[[int], None]] | None:
        if not self.searched:
            self.functions, self.searched = _functions(), True
        return self.functions


_threads = _Threads()


def get_num_threads() -> int:
    """How many threads an op may use."""
    if _threads.count is None:
        found = _threads.library()
        _threads.count = found[0]() if found is not None else os.cpu_count() or 1
    return _threads.count


def set_num_threads(count: int) -> None:
    """Let ops use up to `count` threads."""
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    found = _threads.library()
    if found is not None:
        found[1](count)
    _threads.count = count
