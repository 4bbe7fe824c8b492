"""torch.distributed.checkpoint.stateful: objects that give and take their own state."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """Anything with state_dict() and load_state_dict(), such as an application's state, a model or an optimizer."""

    def state_dict(self) -> dict[str, Any]:
        """What is to be saved."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what was loaded."""
