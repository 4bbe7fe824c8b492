"""The escaper of cells of CSV files, which spreadsheets open: text is never a formula there, and has no control characters."""

from __future__ import annotations

from .terminal import shown

# What a spreadsheet takes for the beginning of a formula; the wide forms too, which some read as the plain ones.
_FORMULAS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_MOST = 32_000  # a spreadsheet's cell has at most 32,767 characters


def csv_cell(value: object) -> object:
    """A cell. Numbers stay as they are; text that a spreadsheet would compute gets an apostrophe in front, as OWASP advises.

    Line breaks stay: a stack has a frame on each of its lines, and the cell is quoted.
    """
    if not isinstance(value, str):
        return value
    text = value if value.isprintable() and len(value) <= _MOST else _lines(value)
    return "'" + text if value.startswith(_FORMULAS) else text


def _lines(value: str) -> str:
    return "\n".join(shown(line, _MOST) for line in value[: 4 * _MOST].split("\n"))
