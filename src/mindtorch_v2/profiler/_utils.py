"""torch.profiler._utils: walks over the trees of kineto_results.experimental_event_tree(), and what they tell of a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .analysis.device.queue import BasicEvaluation as BasicEvaluation
from .analysis.device.queue import EventKey as EventKey
from .analysis.device.queue import EventMetrics as EventMetrics
from .analysis.device.queue import Interval as Interval
from .views.traversal import traverse_bfs as traverse_bfs
from .views.traversal import traverse_dfs as traverse_dfs

_Node = TypeVar("_Node")
_IN_A_FILE = re.compile(r"\.py\(.*\)")


def source_code_location(event: Any) -> str:
    """The name of the innermost Python function around an event, or torch's text that says there is none."""
    while event is not None:
        if _IN_A_FILE.search(event.name):
            return str(event.name)
        event = event.parent
    return "No source code location found"


def index_of_first_match(
    seq: Sequence[_Node], predicate: Callable[[_Node], Any], start: int = 0, end: int | None = None
) -> int | None:
    """The index of the first match in seq[start:end], None if there is none."""
    stop = len(seq) if end is None else min(end, len(seq))
    return next((at for at in range(start, stop) if predicate(seq[at])), None)


def argmax(
    seq: Sequence[_Node], key: Callable[[_Node], Any] = lambda item: item, start: int = 0, end: int | None = None
) -> int | None:
    """The index of the first largest item in seq[start:end], None if that is empty."""
    stop = len(seq) if end is None else min(end, len(seq))
    return max(range(start, stop), key=lambda at: key(seq[at]), default=None)
