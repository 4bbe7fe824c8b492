"""Warnings that point at the line of the user's program."""

from __future__ import annotations

import warnings

from ..._core.cpython import stack_level

_OURS = __name__.partition(".")[0]
_said: set[str] = set()


def warn(text: str) -> None:
    """UserWarning at the innermost line that is not of this package."""
    warnings.warn(text, UserWarning, stacklevel=stack_level(_OURS))


def warn_once(text: str) -> None:
    """As `warn`, but a message is shown once per process."""
    if text not in _said:
        _said.add(text)
        warn(text)
