"""profiler.diff: compare profiles, live or loaded, or files of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..analysis.comparison.diff import Diff
from ..analysis.comparison.diff import diff as compare
from ..results.loaded import load
from ..results.mixin import ResultsMixin
from ..store.store import EventStore

Comparable = ResultsMixin | str | os.PathLike[str]


def diff(
    a: Comparable | Sequence[Comparable], b: Comparable | Sequence[Comparable], *, confidence: float = 0.99, least: float = 0.05
) -> Diff:
    """What became faster or slower from `a` to `b`: profiles that have ended, loaded ones, or paths of files.

    Ops are aligned by name, input shapes and module path, and compared step by step. `confidence` holds for all of them
    together; changes smaller than `least` (0.05: five percent of the op's time) are not called a change.

    Each side may be a list of at least two instead. How the recordings of one side differ then shows what a difference
    between the sides is worth, which on a machine with other work one recording of each cannot.
    """
    return compare(_recordings(a), _recordings(b), confidence=confidence, least=least)


def _recordings(side: Comparable | Sequence[Comparable]) -> EventStore | list[EventStore]:
    return [_recording(each) for each in side] if isinstance(side, list | tuple) else _recording(side)


def _recording(source: Any) -> EventStore:
    if isinstance(source, ResultsMixin):
        return source._recording()
    if isinstance(source, (str, os.PathLike)):
        return load(source).store
    raise TypeError(f"diff compares profiles or paths of files, not {type(source).__name__}")
