"""Comma-separated values: a line per event or per average."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from itertools import islice

from .._io.csv_cells import csv_cell
from .._io.files import write_file
from ..store.store import EventStore
from ..views.tabular import Table, file_rows, to_dict

_BLOCK = 1 << 13


def export(
    store: EventStore,
    path: str | os.PathLike[str],
    *,
    what: str = "events",
    group_by_input_shape: bool = False,
    group_by_stack_n: int = 0,
) -> None:
    """Write a recording's rows, or its averages if `what` is "averages", gzipped if the name ends in .gz.

    Text that a spreadsheet would take for a formula has an apostrophe in front.
    """
    write_file(path, _blocks(to_dict(file_rows(store, what, group_by_input_shape, group_by_stack_n))))


def _blocks(table: Table) -> Iterator[bytes]:
    rows = zip(*(map(csv_cell, column) for column in table.values()), strict=True)
    block: list[tuple[object, ...]] = [tuple(table)]
    while block:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(block)
        yield text.getvalue().encode("utf-8", "replace")
        block = list(islice(rows, _BLOCK))
