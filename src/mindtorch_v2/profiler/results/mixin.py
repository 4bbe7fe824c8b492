"""What can be asked of any finished recording: advice and the recorder's own cost. Loaded when first asked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..store.store import EventStore
from . import writers

if TYPE_CHECKING:
    from ..analysis.findings import Finding
    from ..analysis.memory_categories import Uses
    from ..analysis.overhead import Overhead


class ResultsMixin:
    """Mixed into profiles, live and loaded: whatever has a recording."""

    def _recording(self) -> EventStore:
        """The recording that the answers are about."""
        raise NotImplementedError

    def _calibration(self) -> Any:
        """What an event cost where the recording was made, None if nobody knows."""
        from ..analysis import overhead  # here and below: analysis is imported when a question is asked

        return overhead.calibration_of(self._recording())

    def advice(self) -> list[Finding]:
        """What to change, why, where, and what it may gain: the largest estimated gain first."""
        from ..analysis.advice import advise

        return advise(self._recording())

    def overhead(self) -> Overhead | None:
        """What recording cost, and times without it. None for a trace of which that is not known."""
        from ..analysis.overhead import estimate

        calibration = self._calibration()
        return None if calibration is None else estimate(self._recording(), calibration)

    def export_html(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Write a report to look at in a browser: one file, without server or network.

        It shows the last window: overview, operators, calls, timeline, memory, modules and advice.
        """
        writers.get("html")(
            self._recording(),
            path,
            title=title,
            findings=self.advice(),
            memory=self._memory_uses(),
            overhead=self.overhead(),
        )

    def _memory_uses(self) -> Uses | None:
        """What memory was used for, None where the recording does not tell."""
        from ..analysis.memory_categories import kept_in

        return kept_in(self._recording())
