"""profiler.diff: compare profiles, live or loaded, or files of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..analysis.diff import Diff
from ..analysis.diff import diff as compare
from ..results.loaded import load
from ..results.mixin import ResultsMixin
from ..store.store import EventStore

Comparable = ResultsMixin | str | os.PathLike[str]


def diff(
    a: Comparable | Sequence[Comparable], b: Comparable | Sequence[Comparable], *, confidence: float = 0.99, least: float = 0.05
) -> Diff:
    """What became faster or slower from `a` to `b`: profiles that have ended, loaded ones, or paths of files.

    Ops are aligned by name, input shapes and module path, and compared step by step. `confidence` holds for all of them
    together; changes smaller than `least` (0.05: five per cent of the op's time) are not called a change.

    Each side may be a list of at least two instead. How the recordings of one side differ then shows what a difference
    between the sides is worth, which on a machine with other work one recording of each cannot.
    """
    return compare(_recordings(a), _recordings(b), confidence=confidence, least=least)


def _recordings(given: Comparable | Sequence[Comparable]) -> EventStore | list[EventStore]:
    return [_recording(one) for one in given] if isinstance(given, list | tuple) else _recording(given)


def _recording(given: Any) -> EventStore:
    if isinstance(given, ResultsMixin):
        return given._recording()
    if isinstance(given, (str, os.PathLike)):
        return load(given).store
    raise TypeError(f"diff compares profiles or paths of files, not {type(given).__name__}")
