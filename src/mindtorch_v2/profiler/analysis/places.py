"""Lines of the user's code: the innermost frame of a stack that is not the framework's."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from ..store.store import EventStore

# Frames of the framework begin with these: files are recorded relative to sys.path.
_FRAMEWORK = ("mindtorch_v2/", "torch/", "<built-in", "<frozen")


def user_frame(frames: tuple[str, ...]) -> str | None:
    """The innermost frame that is not the framework's: "train.py(12)"."""
    for frame in frames:
        place = frame.split(": ", 1)[0]
        path = place.replace("\\", "/")
        framework = path.startswith(_FRAMEWORK) or any(f"-packages/{start}" in path for start in _FRAMEWORK)
        if not framework and "(" in place:
            return place
    return None


def places(store: EventStore, rows: NDArray[np.intp]) -> list[tuple[str, int]]:
    """The user's lines above the rows with the number of rows each, most frequent first; empty without stacks."""
    numbers, counts = np.unique(store.call_stack[rows], return_counts=True)
    lines: Counter[str] = Counter()
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        frame = user_frame(store.stacks[number]) if number >= 0 else None
        if frame is not None:
            lines[frame] += count
    return lines.most_common()
