"""Parquet, by way of pyarrow (the extra `parquet`)."""

from __future__ import annotations

import io
import os

from .._io.files import write_file
from ..store.store import EventStore
from ..views.tabular import chosen, needed


def export(
    store: EventStore,
    path: str | os.PathLike[str],
    *,
    what: str = "events",
    group_by_input_shape: bool = False,
    group_by_stack_n: int = 0,
) -> None:
    """Write a recording's rows, or its averages when `what` is "averages". ImportError if pyarrow is missing."""
    arrow = needed("pyarrow", "parquet", "writing Parquet")
    parquet = needed("pyarrow.parquet", "parquet", "writing Parquet")
    made = io.BytesIO()
    parquet.write_table(arrow.table(chosen(store, what, group_by_input_shape, group_by_stack_n)), made)
    write_file(path, [made.getvalue()])
