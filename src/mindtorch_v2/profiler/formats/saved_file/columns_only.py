"""Reads chosen columns and tables of a finished saved profile, without making a recording of them.

A digest of one of a thousand files needs a third of its columns and none of its objects; `reader` makes whole recordings.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from .._recovery import Recovery
from . import coding
from .frames import END, HEADER, LOG, MEMORY, META, ROWS, TABLE, frames
from .layout import (
    AS_RECORDED,
    COLUMN_HEAD,
    IN_ROW_ORDER,
    MEMORY_ROW_COLUMNS,
    MOST_ROWS_PER_FRAME,
    ROW_COLUMNS,
    ROWS_HEAD,
    TABLE_HEAD,
    TABLES,
)

# Files unpack to at most so many rows for each of their bytes: one row takes bytes of at least one column.
_MOST_ROWS_PER_BYTE, _FREE_ROWS = 200, 1 << 20


class NotPlainError(Exception):
    """The file is damaged or streamed: only the whole reader can say what is in it."""


@dataclass
class ChosenColumns:
    """What was asked for of a file. `end` is an end, though files have durations; a column that a file lacks is absent."""

    meta: dict[str, Any]
    tables: dict[str, list[Any]] = field(default_factory=dict)
    columns: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    rows: int = 0


def read_columns(file: BinaryIO, size: int, columns: Collection[str], tables: Collection[str]) -> ChosenColumns:
    """Read the chosen columns (of rows and of memory) and tables (as their JSON) of a file of `size` bytes.

    NotPlainError: frames are missing, or the rows are in the order in which they were recorded. TraceError: no saved profile.
    """
    recovery = Recovery("saved")
    chosen = ChosenColumns({})
    parts: dict[str, list[tuple[int, bytes]]] = {}
    expected = {ROWS: 0, MEMORY: 0}
    most = _FREE_ROWS + _MOST_ROWS_PER_BYTE * size
    announced: dict[str, int] | None = None
    try:
        for kind, body in frames(file, recovery, (HEADER.size, size)):
            if kind == META:
                chosen.meta = orjson.loads(body)
            elif kind == TABLE:
                _add_table(body, chosen.tables, tables)
            elif kind in (ROWS, MEMORY):
                first, count = ROWS_HEAD.unpack_from(body)
                if first != expected[kind] or count > MOST_ROWS_PER_FRAME or first + count > most:
                    raise NotPlainError("rows are missing")
                expected[kind] += count
                _add_rows(body, count, ROW_COLUMNS if kind == ROWS else MEMORY_ROW_COLUMNS, columns, parts)
            elif kind == END:
                announced = orjson.loads(body)
            elif kind == LOG:
                raise NotPlainError("the file has logs")
        chosen.rows = expected[ROWS]
        chosen.columns = _joined(parts, expected)
    except (LookupError, TypeError, ValueError, struct.error) as error:
        raise NotPlainError(str(error)) from None
    complete = announced == {"rows": expected[ROWS], "memory": expected[MEMORY]}
    if not complete or not recovery.intact or chosen.meta.get("order", IN_ROW_ORDER) == AS_RECORDED:
        raise NotPlainError("the file is not a finished one")
    return chosen


def _add_table(body: bytes, tables: dict[str, list[Any]], wanted: Collection[str]) -> None:
    number, first, count = TABLE_HEAD.unpack_from(body)
    if number < len(TABLES) and TABLES[number] in wanted:
        known = tables.setdefault(TABLES[number], [])
        entries = orjson.loads(memoryview(body)[TABLE_HEAD.size :])
        if first != len(known) or len(entries) != count:
            raise NotPlainError("entries of a table are missing")
        known += entries


def _add_rows(
    body: bytes, count: int, order: tuple[str, ...], wanted: Collection[str], parts: dict[str, list[tuple[int, bytes]]]
) -> None:
    """Add the coded columns of a frame, each with its number of rows."""
    at, end = ROWS_HEAD.size, len(body)
    while at < end:
        number, length = COLUMN_HEAD.unpack_from(body, at)
        at += COLUMN_HEAD.size
        if number < len(order) and order[number] in wanted:
            parts.setdefault(order[number], []).append((count, body[at : at + length]))
        at += length


def _joined(parts: dict[str, list[tuple[int, bytes]]], expected: dict[int, int]) -> dict[str, NDArray[np.int64]]:
    """The columns, decoded into one array each: frames are small, and columns of their own would cost more than the numbers."""
    joined = {}
    for name, pieces in parts.items():
        count = expected[MEMORY if name in MEMORY_ROW_COLUMNS else ROWS]
        if sum(rows for rows, _ in pieces) != count:
            raise NotPlainError("a column is missing in a part of the file")
        joined[name] = _decoded(pieces, count)
    if "end" in joined and "start" in joined:
        joined["end"] = joined["start"] + joined["end"]
    return joined


def _decoded(pieces: list[tuple[int, bytes]], count: int) -> NDArray[np.int64]:
    if len({data for _, data in pieces}) == 1 and coding.is_constant(pieces[0][1]):
        return coding.decode(pieces[0][1], count)
    values = np.empty(count, np.int64)
    at = 0
    for rows, data in pieces:
        coding.decode_into(data, values[at : at + rows])
        at += rows
    return values
