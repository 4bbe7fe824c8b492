"""Warnings that point at the line of the user's program."""

from __future__ import annotations

import warnings

from ..._core import dtype as dt
from ..._core.cpython import stack_level
from ..._core.warn_always import Always

_OURS = __name__.partition(".")[0]
_said: set[str] = set()


def warn(text: str) -> None:
    """UserWarning at the innermost line that is not of this package."""
    warnings.warn(text, UserWarning, stacklevel=stack_level(_OURS))


def warn_once(text: str) -> None:
    """As `warn`, but a message is shown once per process."""
    if Always.on or text not in _said:
        _said.add(text)
        warn(text)


def _of_complex_half() -> None:
    warn_once("ComplexHalf support is experimental and many operators don't support it yet.")


dt.on_complex_half = _of_complex_half
