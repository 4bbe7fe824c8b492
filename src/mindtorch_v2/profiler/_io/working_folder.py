"""Paths where there may be no working folder."""

from __future__ import annotations

import os


def absolute(path: str) -> str | None:
    """The absolute path; None for a relative one if the working folder has been removed, as a job's scratch folder may be."""
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        return None
