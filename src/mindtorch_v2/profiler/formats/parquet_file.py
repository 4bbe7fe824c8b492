"""Parquet files, written by pyarrow (the extra `parquet`)."""

from __future__ import annotations

import io
import os

from .._io.files import write_file
from ..store.store import EventStore
from ..views.tabular import file_rows, import_extra, to_arrow


def export(
    store: EventStore,
    path: str | os.PathLike[str],
    *,
    what: str = "events",
    group_by_input_shape: bool = False,
    group_by_stack_n: int = 0,
) -> None:
    """Write a recording's rows, or its averages when `what` is "averages". ImportError if pyarrow is missing."""
    parquet = import_extra("pyarrow.parquet", "parquet", "writing Parquet")
    file = io.BytesIO()
    parquet.write_table(to_arrow(file_rows(store, what, group_by_input_shape, group_by_stack_n)), file)
    write_file(path, [file.getvalue()])
