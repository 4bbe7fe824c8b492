"""The outcome of reading a file: TraceError if there is no recording in it, Recovery for what was lost of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._io.terminal import shown

NOT_STRICT = "some of it is not strict JSON"


class TraceError(ValueError):
    """A file holds no recording that could be read; the message says why."""


@dataclass
class Recovery:
    """How far a file could be read.

    complete: whether the file has the end that its writer puts there. bytes_dropped: how much of it was not
    understood. skipped: events that were left out, counted by reason. notes: what else a user should know.
    """

    format: str
    complete: bool = True
    bytes_read: int = 0
    bytes_dropped: int = 0
    frames: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def intact(self) -> bool:
        """Whether everything was read."""
        return self.complete and not self.bytes_dropped and not self.skipped and not self.notes

    def skip(self, reason: str, count: int = 1) -> None:
        """Count events that are left out."""
        if count:
            self.skipped[reason] = self.skipped.get(reason, 0) + count

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values, for JSON."""
        return {
            "format": self.format,
            "complete": self.complete,
            "bytes_read": self.bytes_read,
            "bytes_dropped": self.bytes_dropped,
            "frames": self.frames,
            "skipped": dict(self.skipped),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        parts = ["complete" if self.complete else "cut off before its end"]
        if self.bytes_dropped:
            parts.append(f"{self.bytes_dropped} bytes could not be read")
        parts += [f"{count} x {shown(reason)}" for reason, count in self.skipped.items()]
        return "; ".join([*parts, *map(shown, self.notes)])
