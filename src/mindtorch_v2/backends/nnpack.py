"""torch.backends.nnpack: a library of kernels that is not used here."""

from __future__ import annotations

from functools import partial

from .._core.restoring import Actions, restoring

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


@restoring
def flags(undo: Actions, enabled: bool = False) -> None:
    """Keep the switch inside a block, and put it back."""
    undo.append(partial(set_flags, _enabled))
    set_flags(enabled)
