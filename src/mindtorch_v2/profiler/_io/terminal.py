"""The escaper of text for terminals, and how wide text is there.

Names come from programs and from files of others. What a terminal would obey or not show (escape sequences, line breaks, marks
that turn the direction of writing, characters without width, halves of surrogate pairs) is shown as Python writes it in a
string: \\x1b, \\n, \\u202e. Backslashes stay as they are, so that paths of Windows can be read.
"""

from __future__ import annotations

import unicodedata

_CUT = "..."
# Names are cut to this many characters where nothing else bounds a line.
MOST_CHARACTERS = 1000


class _Escapes(dict[int, str | int]):
    """For str.translate: characters that are shown escaped, by code; filled as characters are met."""

    def __missing__(self, code: int) -> str | int:
        character = chr(code)
        shown = code if character.isprintable() else character.encode("unicode_escape", "backslashreplace").decode("ascii")
        self[code] = shown
        return shown


class _Columns(dict[str, int]):
    """Columns of a terminal that a printable character takes; filled as characters are met."""

    def __missing__(self, character: str) -> int:
        if unicodedata.category(character) in ("Mn", "Me"):  # written over the character before it
            columns = 0
        else:
            columns = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        self[character] = columns
        return columns


_escapes = _Escapes()
_columns = _Columns()


def shown(text: str, most: int = MOST_CHARACTERS) -> str:
    """Text on one line with everything escaped that is not printable; cut after `most` characters, with a note of how many.

    What is cut off is not looked at, so that a name of any length takes the same time.
    """
    if len(text) <= most:
        return text if text.isprintable() else text.translate(_escapes)
    return f"{text[:most].translate(_escapes)}{_CUT} ({len(text):,} characters)"


def width(text: str) -> int:
    """How many columns printable text takes."""
    return len(text) if text.isascii() else sum(map(_columns.__getitem__, text))


def cut(text: str, most: int) -> str:
    """The beginning of printable text that takes at most `most` columns. No character counts for less than one column."""
    if len(text) <= most and text.isascii():
        return text
    taken = 0
    for at, character in enumerate(text):
        taken += max(1, _columns[character])
        if taken > most:
            return text[:at]
    return text


def cut_front(text: str, most: int) -> str:
    """The end of printable text that takes at most `most` columns. No character counts for less than one column."""
    if len(text) <= most and text.isascii():
        return text
    return cut(text[::-1], most)[::-1]


def padded(text: str, columns: int, left: bool = False) -> str:
    """Printable text with spaces on its left, or with `left` on its right, so that it takes that many columns."""
    spaces = " " * (columns - width(text))
    return text + spaces if left else spaces + text
