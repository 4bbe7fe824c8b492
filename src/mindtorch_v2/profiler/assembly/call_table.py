"""Code objects as entries of a saved file's table, and back: name, file, and the line of each bytecode offset."""

from __future__ import annotations

from typing import Any

from ..recording.python_calls.stream import Called
from .python_rows import BUILTIN, FRAME, SavedCode, Shortener, Target, target_of


def described(what: Called, shorten: Shortener) -> list[Any]:
    """The table entry of a code object, an open frame or a builtin's text."""
    target = target_of(what, shorten)
    if target.code is None:
        return [target.text]
    lines = [[start, line] for start, _, line in target.code.co_lines() if line is not None]
    return [
        target.text,
        target.file,
        target.code.co_name,
        target.code.co_firstlineno,
        int(target.inside),
        int(target.library),
        lines,
    ]


def restored(entry: Any) -> Target:
    """The Target that a table entry describes; TypeError or ValueError if it is malformed."""
    if not isinstance(entry, list) or not entry or not isinstance(entry[0], str):
        raise TypeError("not a call")
    if len(entry) == 1:
        return Target(BUILTIN, entry[0], None, False, True)
    text, file, name, first, inside, library, lines = entry
    if not isinstance(file, str) or not isinstance(name, str):
        raise TypeError("not a call")
    places = tuple((int(start), int(line)) for start, line in lines)
    return Target(FRAME, text, SavedCode(name, int(first), places), bool(inside), bool(library), file)


LOST = Target(BUILTIN, "<lost>", None, False, True)
