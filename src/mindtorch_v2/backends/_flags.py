"""A backend that is not there: `is_available()` is False and flags can be set and read back."""

from __future__ import annotations

from functools import partial
from typing import Any

from .._core.restoring import Actions, restoring


def absent_backend(namespace: dict[str, Any], **defaults: Any) -> None:
    """Fill a module with default flags, `is_available` and a `flags(...)` context manager."""
    names = set(defaults)
    namespace.update(defaults)

    def is_available() -> bool:
        return False

    @restoring
    def flags(undo: Actions, **changes: Any) -> None:
        unknown = set(changes) - names
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        undo.append(partial(namespace.update, {name: namespace[name] for name in changes}))
        namespace.update(changes)

    namespace.setdefault("is_available", is_available)
    namespace.setdefault("flags", flags)
