"""What devices did, for the page: use, steps by what they waited for, kernels, copies, launches."""

from __future__ import annotations

from typing import Any

from .._io.terminal import shown
from ..analysis.device.answer import device_answer
from ..store.store import EventStore

_MOST_KERNELS, _MOST_STEPS, _MOST_CHARACTERS = 300, 200, 400
_LISTS = {"steps": _MOST_STEPS, "overlap": _MOST_STEPS, "copies": 60, "launches": 60, "idle": 30}


def device_table(store: EventStore) -> dict[str, Any] | None:
    """The answer of `mtprof device` with bounded lists and names that a page can show; None if nothing ran on a device."""
    if not store.has_device_rows:
        return None
    answer = device_answer(store, _MOST_KERNELS)
    for name, most in _LISTS.items():
        answer[f"{name}_in_all"] = len(answer[name])
        answer[name] = answer[name][:most]
    for name in ("devices", "kernels", "copies", "idle", "launches"):
        answer[name] = [
            {key: shown(value, _MOST_CHARACTERS) if isinstance(value, str) else value for key, value in entry.items()}
            for entry in answer[name]
        ]
    return answer
