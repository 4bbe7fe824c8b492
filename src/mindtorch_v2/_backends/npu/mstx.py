"""CANN's library of marks, libms_tools_ext.so: tools of CANN that watch the process see what is marked. It may be missing."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from .driver import library_folders

LIBRARY = "libms_tools_ext.so"
_TEXT, _HANDLE, _NUMBER = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64
# Result and arguments of each function.
FUNCTIONS: Mapping[str, tuple[Any, list[Any]]] = {
    "mstxDomainCreateA": (_HANDLE, [_TEXT]),
    "mstxDomainMarkA": (None, [_HANDLE, _TEXT, _HANDLE]),
    "mstxDomainRangeEnd": (None, [_HANDLE, _NUMBER]),
    "mstxDomainRangeStartA": (_NUMBER, [_HANDLE, _TEXT, _HANDLE]),
    "mstxMarkA": (None, [_TEXT, _HANDLE]),
    "mstxRangeEnd": (None, [_NUMBER]),
    "mstxRangeStartA": (_NUMBER, [_TEXT, _HANDLE]),
}


class Marks:
    """The library, loaded. `stream` is the handle of one, or None for a mark of the host alone."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        self._calls = {name: library[name] for name in FUNCTIONS}
        for name, (result, arguments) in FUNCTIONS.items():
            self._calls[name].restype, self._calls[name].argtypes = result, arguments
        self._domains: dict[str, int | None] = {}

    def mark(self, message: str, stream: int | None, domain: str) -> None:
        """Mark a moment."""
        text = _bytes(message)
        if domain == "default":
            self._calls["mstxMarkA"](text, stream)
        else:
            self._calls["mstxDomainMarkA"](self._domain(domain), text, stream)

    def range_start(self, message: str, stream: int | None, domain: str) -> int:
        """Begin a range; returns the number that ends it."""
        text = _bytes(message)
        if domain == "default":
            return int(self._calls["mstxRangeStartA"](text, stream))
        return int(self._calls["mstxDomainRangeStartA"](self._domain(domain), text, stream))

    def range_end(self, number: int, domain: str) -> None:
        """End a range."""
        if domain == "default":
            self._calls["mstxRangeEnd"](number)
        else:
            self._calls["mstxDomainRangeEnd"](self._domain(domain), number)

    def _domain(self, name: str) -> int | None:
        if name not in self._domains:
            self._domains[name] = self._calls["mstxDomainCreateA"](_bytes(name))
        return self._domains[name]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace").replace(b"\0", b" ")


@cache
def marks() -> Marks | None:
    """The library, None where it is not found, cannot be loaded or lacks a function."""
    for folder in library_folders():
        if (folder / LIBRARY).is_file():
            try:
                return Marks(folder / LIBRARY)
            except (OSError, AttributeError):
                return None
    return None
