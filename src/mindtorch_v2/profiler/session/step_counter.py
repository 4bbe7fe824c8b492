"""KinetoStepTracker: one global step count for all that count steps: profilers, optimizers, training loops."""

from __future__ import annotations

from typing import ClassVar


class KinetoStepTracker:
    """The global step is the highest count of any requester; a requester's own count starts at the global step."""

    _current_step: ClassVar[int] = 0
    _counts: ClassVar[dict[str, int]] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Register a requester; it starts at the global step."""
        cls._counts[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Remove a requester; returns whether it was registered."""
        return cls._counts.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count a step of a requester and return the global step."""
        count = cls._counts[requester] = cls._counts.get(requester, cls._current_step) + 1
        if count > cls._current_step:
            cls._current_step = count
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The global step: the highest count of all requesters so far."""
        return cls._current_step
