"""Warnings about what a program does, said of its own line."""

from __future__ import annotations

import sys
import warnings

_OURS = __name__.partition(".")[0]
_said: set[str] = set()


def warn(text: str) -> None:
    """UserWarning at the innermost line that is not of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)


def warn_once(text: str) -> None:
    """The same, but only the first time in a process."""
    if text not in _said:
        _said.add(text)
        warn(text)
