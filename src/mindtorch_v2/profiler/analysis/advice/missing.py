"""What rules could not look for, because the recording does not have it, and the option that records it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...._dispatch import observer
from ...config import RECORD_OPTIONS
from ...store.store import EventStore


@dataclass(frozen=True)
class Missing:
    """Data that was not recorded: the option of `mtprof run` and of `profile` that records it, and what it is needed for."""

    option: str
    keyword: str
    needed_for: str

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.keyword} was off: {self.needed_for}; record with --{self.option}"


def missing(store: EventStore) -> list[Missing]:
    """What was not recorded of what rules need; nothing of an empty recording."""
    if not len(store):
        return []
    has = {
        "stack": bool((store.call_stack >= 0).any() or (store.kind == observer.PYTHON).any()),
        "shapes": bool((store.shapes >= 0).any()),
        "memory": bool(len(store.mem_time)) or bool(store.options.get("profile_memory")),
    }
    needed = {
        "stack": "lines are not known, nor loops that repeat an op",
        "shapes": "conversions, mixed floating types and tensors that grow are not looked for",
        "memory": "memory that grows from step to step is not looked for",
    }
    return [Missing(option, RECORD_OPTIONS[option], needed[option]) for option, known in has.items() if not known]
