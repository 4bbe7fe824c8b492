"""Warnings that point at the line of the user's program."""

from __future__ import annotations

import os
import sys
import warnings

from ..._core import dtype as dt
from ..._core.cpython import stack_level
from ..._core.warn_always import Always

_OURS = __name__.partition(".")[0]
_ROOT = __file__.partition(f"{os.sep}_ops{os.sep}")[0].removesuffix(_OURS)  # with its last separator
_said: set[str] = set()


def warn(text: str, depth: int = 1) -> None:
    """UserWarning at the innermost line that is not of this package. As those of torch's kernels it ends with the place in
    here that has something to tell: that of the caller, or `depth` calls above."""
    frame = sys._getframe(depth)
    place = frame.f_code.co_filename.removeprefix(_ROOT).replace(os.sep, "/")
    told = f"{text} (Triggered internally at {place}:{frame.f_lineno}.)"
    warnings.warn(told, UserWarning, stacklevel=stack_level(_OURS))


def warn_once(text: str) -> None:
    """As `warn`, but a message is shown once per process."""
    if Always.on or text not in _said:
        _said.add(text)
        warn(text, 2)


def _of_complex_half() -> None:
    warn_once("ComplexHalf support is experimental and many operators don't support it yet.")


dt.on_complex_half = _of_complex_half
