"""The garbage collector's pauses while something records."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any


class GcPauseLog:
    """Takes down (start, end, generation) of every collection between start() and stop(), on whatever thread."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.pauses: list[tuple[int, int, int]] = []
        self._clock = clock
        self._began: int | None = None

    def start(self) -> None:
        """Listen to the collector."""
        gc.callbacks.append(self._heard)

    def stop(self) -> None:
        """Listen no more. Nothing happens if it does not."""
        if self._heard in gc.callbacks:
            gc.callbacks.remove(self._heard)

    def _heard(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._began = self._clock()
        elif self._began is not None:
            self.pauses.append((self._began, self._clock(), int(info["generation"])))
            self._began = None
