"""Opens a recording by what is in the file, whatever it is called."""

from __future__ import annotations

import os

from .._store import EventStore
from . import kineto, saved
from ._frames import MAGIC
from ._recovery import Recovery
from ._source import Progress


def read_any(
    path: str | os.PathLike[str], progress: Progress | None = None, max_bytes: int | None = None
) -> tuple[EventStore, Recovery]:
    """The recording in a saved profile or in a trace, gzipped or not, and how far it could be read."""
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
    if start == MAGIC:
        return saved.read(path, progress, max_bytes)
    return kineto.read(path, progress, max_bytes)
