"""Methods of every finished recording: advice, the recorder's own cost, the report. They import `analysis` when called."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..store.store import EventStore
from . import writers

if TYPE_CHECKING:
    from ..analysis.advice import Missing
    from ..analysis.findings import Finding
    from ..analysis.memory.categories import Uses
    from ..analysis.overhead import Calibration, Overhead


class ResultsMixin:
    """Mixed into live and loaded profiles, which implement `_recording`."""

    def _recording(self) -> EventStore:
        """The recording that the methods are about."""
        raise NotImplementedError

    def _calibration(self) -> Calibration | None:
        """What recording an event cost on the machine of the recording, None if that is not known."""
        from ..analysis import overhead  # here and below: most profiles never need analysis

        return overhead.calibration_of(self._recording())

    def advice(self) -> list[Finding]:
        """What to change, why, where, and what it may gain: the largest estimated gain first."""
        from ..analysis.advice import advise

        return advise(self._recording())

    def missing_for_advice(self) -> list[Missing]:
        """What advice() could not look for, because it was not recorded, and the option that records it."""
        from ..analysis.advice import missing

        return missing(self._recording())

    def overhead(self) -> Overhead | None:
        """What recording cost, and times without it. None for a trace that does not tell."""
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
        """What each allocation was used for, None where the recording does not tell."""
        from ..analysis.memory.categories import stored_uses

        return stored_uses(self._recording())
