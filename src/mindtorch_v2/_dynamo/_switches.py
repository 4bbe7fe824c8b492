"""Switches of a module that are other ones for a while."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from .._core.cpython import without_signals_at_entry


class Patch(ContextDecorator):
    """Other values of a module's switches for a block, or for the calls of a function."""

    def __init__(self, switches: dict[str, Any], changes: dict[str, Any], place: str) -> None:
        for name in changes:
            if name not in switches or name.startswith("_") or callable(switches[name]):
                raise AttributeError(f"{place}.{name} does not exist")
        self._switches, self._changes = switches, changes
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self._before.append({name: self._switches[name] for name in self._changes})
        self._switches.update(self._changes)

    @without_signals_at_entry
    def __exit__(self, *raised: object) -> None:
        self._switches.update(self._before.pop())
