"""torch.backends.nnpack: a library of kernels that is not used here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["flags", "is_available", "set_flags"]

_enabled = True


def is_available() -> bool:
    """Whether NNPACK is there: it is not."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Keep the switch, which changes nothing; returns what it was."""
    before = globals()["_enabled"]
    globals()["_enabled"] = _enabled
    return (before,)


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Keep the switch inside a block, and put it back."""
    (before,) = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before)
