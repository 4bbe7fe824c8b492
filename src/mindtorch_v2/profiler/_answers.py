"""What can be asked of any finished recording: advice and the recorder's own cost. Loaded when first asked."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._store import EventStore
from .exporters import get as exporter

if TYPE_CHECKING:
    from .analysis.findings import Finding
    from .analysis.memory_categories import Uses
    from .analysis.overhead import Overhead


class Answers:
    """Mixed into profiles, live and loaded: whatever has a recording."""

    def _recording(self) -> EventStore:
        """The recording that the answers are about."""
        raise NotImplementedError

    def _calibration(self) -> Any:
        """What an event cost where the recording was made, None if nobody knows."""
        return _analysis("overhead").calibration_of(self._recording())

    def advice(self) -> list[Finding]:
        """What to change, why, where, and what it may gain: the largest estimated gain first."""
        found: list[Finding] = _analysis("advice").advise(self._recording())
        return found

    def overhead(self) -> Overhead | None:
        """What recording cost, and times without it. None for a trace of which that is not known."""
        calibration = self._calibration()
        if calibration is None:
            return None
        found: Overhead = _analysis("overhead").estimate(self._recording(), calibration)
        return found

    def export_html(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Write a report to look at in a browser: one file, without server or network.

        It shows the last window: overview, operators, calls, timeline, memory, modules and advice.
        """
        exporter("html")(
            self._recording(),
            path,
            title=title,
            findings=self.advice(),
            memory=self._memory_uses(),
            overhead=self.overhead(),
        )

    def _memory_uses(self) -> Uses | None:
        """What memory was used for, None where the recording does not tell."""
        found: Uses | None = _analysis("memory_categories").kept_in(self._recording())
        return found


def _analysis(name: str) -> Any:
    return import_module(f".analysis.{name}", __package__)
