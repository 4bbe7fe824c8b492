"""How long the steps take that a schedule leaves unrecorded: what recording costs is seen by comparison with them."""

from __future__ import annotations

from collections import deque

from ..._dispatch import observer

# So many of the last steps are enough for a median.
_KEPT = 64


class UnrecordedSteps:
    """The durations of the last steps during which nothing recorded on any thread, without the first of all."""

    def __init__(self) -> None:
        self._durations: deque[int] = deque(maxlen=_KEPT)
        self._began = 0  # when the step now running began; 0 if something records, or it is the first

    def begin(self, *, is_first: bool = False) -> None:
        """A step begins. In the first one ops are compiled and memory is claimed, which later ones do not do."""
        self._began = 0 if is_first or observer.is_active() else observer.clock()

    def end(self) -> None:
        """The step ends."""
        if self._began and not observer.is_active():
            self._durations.append(observer.clock() - self._began)
        self._began = 0

    def durations(self) -> list[int]:
        """Nanoseconds of each, in order."""
        return list(self._durations)
