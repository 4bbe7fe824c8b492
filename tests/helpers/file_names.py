"""Names of files that not every locale has: where the encoding of file names is not UTF-8, open() itself refuses some."""

from __future__ import annotations

import sys

import pytest


def possible(name: str) -> str:
    """The name without the characters that no file name can have here."""
    encoding = sys.getfilesystemencoding()
    return name.encode(encoding, "ignore").decode(encoding)


def skip_if_impossible(name: str) -> None:
    """Skip a test that is about a name which no file can have here."""
    try:
        name.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
    except UnicodeEncodeError as error:
        pytest.skip(f"file names are encoded as {error.encoding} in this locale")
