"""The garbage collector's pauses while a recording runs, which advice and traces show."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from ..._core.cpython import without_signals_at_entry


class GcPauseLog:
    """(start, end, generation) of every collection between start() and stop(), whichever thread it ran on."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.pauses: list[tuple[int, int, int]] = []
        self._times = iter(clock, -1)
        self._began: int | None = None

    def start(self) -> None:
        """Install the callback that the collector calls."""
        gc.callbacks.append(self._on_collection)

    def stop(self) -> None:
        """Remove the callback; nothing happens if it is not installed."""
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)

    @without_signals_at_entry
    def _on_collection(self, phase: str, info: dict[str, Any]) -> None:
        # Without a call: the collector reports and drops what a signal handler raises in it, and the user's interrupt with it.
        began = self._began
        if phase == "stop" and began is None:
            return
        for now in self._times:
            if phase == "start" or began is None:
                self._began = now
            else:  # a clock that was replaced meanwhile may be behind
                self.pauses += ((began, now if now > began else began, info["generation"]),)
                self._began = None
            break
