"""profiler.diff: compare profiles, live or loaded, or files of them."""

from __future__ import annotations

import os

from ._answers import Answers
from ._store import EventStore
from .analysis.diff import Diff
from .analysis.diff import diff as compare
from .formats.loaded import load

Comparable = Answers | str | os.PathLike[str]


def diff(a: Comparable, b: Comparable, *, confidence: float = 0.99, least: float = 0.05) -> Diff:
    """What became faster or slower from `a` to `b`: profiles that have ended, loaded ones, or paths of files.

    Ops are aligned by name, input shapes and module path, and compared step by step. `confidence` holds for all of them
    together; changes smaller than `least` (0.05: five per cent of the op's time) are not called a change.
    """
    return compare(_recording(a), _recording(b), confidence=confidence, least=least)


def _recording(given: Comparable) -> EventStore:
    if isinstance(given, Answers):
        return given._recording()
    if isinstance(given, (str, os.PathLike)):
        return load(given).store
    raise TypeError(f"diff compares profiles or paths of files, not {type(given).__name__}")
