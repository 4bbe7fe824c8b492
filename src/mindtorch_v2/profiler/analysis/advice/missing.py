"""What rules could not look for, because the recording does not have it, and the option that records it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...._dispatch import observer
from ...config import RECORD_OPTIONS, SAMPLED_STACKS
from ...store.store import EventStore


@dataclass(frozen=True)
class Missing:
    """Data that was not recorded: the option of `mtprof run` and of `profile` that records it, and what it is needed for."""

    option: str
    keyword: str
    needed_for: str
    recorded: str = "off"

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values, for JSON."""
        return {"option": self.option, "keyword": self.keyword, "needed_for": self.needed_for}

    def __str__(self) -> str:
        return f"{self.keyword} was {self.recorded}: {self.needed_for}; record with --{self.option}"


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
    found = [Missing(option, RECORD_OPTIONS[option], needed[option]) for option, known in has.items() if not known]
    if store.metadata.get(SAMPLED_STACKS) and has["stack"]:
        found.insert(0, Missing("stack", RECORD_OPTIONS["stack"], "Python's time has no lines, nor have most loops", "sampled"))
    return found
