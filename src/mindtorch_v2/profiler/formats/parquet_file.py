"""Parquet files, written by pyarrow (the extra `parquet`)."""

from __future__ import annotations

import io
import os

from .._io.files import write_file
from .._io.utf8 import utf8
from ..store.store import EventStore
from ..views.tabular import file_table, import_extra


def export(
    store: EventStore,
    path: str | os.PathLike[str],
    *,
    what: str = "events",
    group_by_input_shape: bool = False,
    group_by_stack_n: int = 0,
) -> None:
    """Write a recording's rows, or its averages when `what` is "averages". ImportError if pyarrow is missing."""
    arrow = import_extra("pyarrow", "parquet", "writing Parquet")
    parquet = import_extra("pyarrow.parquet", "parquet", "writing Parquet")
    file = io.BytesIO()
    table = file_table(store, what, group_by_input_shape, group_by_stack_n)
    parquet.write_table(arrow.table({name: list(map(_cell, cells)) for name, cells in table.items()}), file)
    write_file(path, [file.getvalue()])


def _cell(value: object) -> object:
    return utf8(value).decode() if isinstance(value, str) else value
