"""Values are taken out of tensors inside the loop: on a device each one waits for all work before it."""

from __future__ import annotations

import numpy as np

from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.line_times import line_times
from ..source.places import places
from ._evidence import Rows, in_own_spans, outermost, passes, rows_named, share, typical_ns, typical_pieces_ns
from ._loops import PICKS, READS

SYNCS = READS  # ops that take a value out of a tensor
_FEWEST = 2  # in one step: a single .item() to log the loss is common


def rule(store: EventStore) -> list[Finding]:
    """Fires on two or more `.item()`-like calls per step outside of the optimizer and the data loader."""
    rows = _reads(store)
    per_step = len(rows) / max(1, passes(store).count)
    if per_step < _FEWEST:
        return []
    spent = _of_lines(store, rows)
    seen = places(store, rows)
    return [
        Finding(
            "host_sync",
            f"Values are read from tensors {per_step:.3g} times a step",
            "item(), bool(tensor) and equal() stop the program until the value is there; on a device they also stop it from "
            "running ahead. Keep sums in tensors and read them once, after the loop or every so many steps.",
            (
                f"{len(rows)} calls, which took {duration(spent)} with the lines they are on",
                *(f"{count} at {place}" for place, count in seen[:5]),
            ),
            seen[0][0] if seen else None,
            spent,
            share(spent, store),
        )
    ]


def reading_lines(store: EventStore) -> list[str]:
    """The lines that read values in every step, of which this rule speaks."""
    return [line for line, count in places(store, _reads(store)) if count >= _FEWEST * passes(store).count]


def _reads(store: EventStore) -> Rows:
    rows = outermost(store, rows_named(store, READS.__contains__))
    return rows[~in_own_spans(store)[rows] & (passes(store).of_row[rows] >= 0)]


def _of_lines(store: EventStore, rows: Rows) -> int:
    """What the calls took, with the rest of their lines: the indexing, and the Python around it."""
    took = typical_ns(store, rows)
    pieces = line_times(store)
    lines = np.unique(pieces.line[np.isin(pieces.row, rows)])
    names = [number for number, name in enumerate(store.names) if name in READS or name in PICKS]
    reading = pieces.is_python | np.isin(store.name[pieces.row], names)
    return max(took, typical_pieces_ns(store, np.flatnonzero(np.isin(pieces.line, lines[lines >= 0]) & reading)))
