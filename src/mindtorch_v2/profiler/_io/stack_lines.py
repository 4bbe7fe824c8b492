"""The escaper of frames in collapsed stacks, `root;caller;callee N`: a frame is one word without semicolons."""

from __future__ import annotations

from .terminal import shown

_SEPARATORS = str.maketrans(" ;\t\n\r", "_____")


def stack_frame(frame: str) -> str:
    """A frame as a word; what separates frames and lines becomes an underscore, other control characters are escaped."""
    return shown(frame.translate(_SEPARATORS), 10_000).replace(" ", "_")
