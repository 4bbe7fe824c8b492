"""A backend that is not there: `is_available()` is False and flags can be set and read back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def absent_backend(namespace: dict[str, Any], **defaults: Any) -> None:
    """Fill a module with default flags, `is_available` and a `flags(...)` context manager."""
    names = set(defaults)
    namespace.update(defaults)

    def is_available() -> bool:
        return False

    @contextmanager
    def flags(**changes: Any) -> Iterator[None]:
        unknown = set(changes) - names
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        before = {name: namespace[name] for name in changes}
        namespace.update(changes)
        try:
            yield
        finally:
            namespace.update(before)

    namespace.setdefault("is_available", is_available)
    namespace.setdefault("flags", flags)
