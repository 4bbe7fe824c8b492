"""The garbage collector's pauses while a recording runs, which advice and traces show."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any


class GcPauseLog:
    """(start, end, generation) of every collection between start() and stop(), whichever thread it ran on."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.pauses: list[tuple[int, int, int]] = []
        self._clock = clock
        self._began: int | None = None

    def start(self) -> None:
        """Install the callback that the collector calls."""
        gc.callbacks.append(self._on_collection)

    def stop(self) -> None:
        """Remove the callback; nothing happens if it is not installed."""
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)

    def _on_collection(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._began = self._clock()
        elif self._began is not None:
            self.pauses.append((self._began, self._clock(), int(info["generation"])))
            self._began = None
