"""torch.distributed.checkpoint.api: what a checkpoint raises."""

from __future__ import annotations

from typing import Any

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """Saving or loading failed in some processes; `failures` has what each of them raised, by rank."""

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Any]:
        """What each process raised, by rank."""
        return self._failures

    def __str__(self) -> str:
        lines = "\n".join(f"rank: {rank}: {error}" for rank, error in sorted(self._failures.items()))
        return f"CheckpointException ranks:{self._failures.keys()}\n{lines}"
