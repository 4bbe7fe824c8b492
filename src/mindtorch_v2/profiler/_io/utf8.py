"""The escaper of text in binary formats: everything that UTF-8 can encode stays as it is."""

from __future__ import annotations

import re

_HALVES = re.compile("[\ud800-\udfff]")


def utf8(text: str) -> bytes:
    """Text as UTF-8, with the replacement character for each half of a surrogate pair, as JSON has it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _HALVES.sub("\ufffd", text).encode()
