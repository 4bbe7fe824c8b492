"""Values are taken out of tensors inside the loop: on a device each one waits for all work before it."""

from __future__ import annotations

from ...store.store import EventStore
from ..findings import Finding, duration
from ..places import places
from ..steps import step_of, steps
from ._evidence import outermost, rows_named, share, under

_SYNCS = frozenset({"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal"})
_FEWEST = 2  # in one step: a single .item() to log the loss is common


def rule(store: EventStore) -> list[Finding]:
    """Fires on two or more `.item()`-like calls per step outside of the optimizer and the data loader."""
    rows = outermost(store, rows_named(store, _SYNCS.__contains__))
    own = rows_named(store, lambda name: name.startswith(("Optimizer.", "enumerate(DataLoader)")))
    rows = rows[~under(store, own)[rows]]
    which = steps(store)
    rows = rows[step_of(store, which)[rows] >= 0]
    if len(rows) < _FEWEST * max(1, len(which.start)):
        return []
    spent = int(store.duration[rows].sum())
    seen = places(store, rows)
    per_step = len(rows) / max(1, len(which.start))
    return [
        Finding(
            "host_sync",
            f"Values are read from tensors {per_step:.3g} times a step",
            "item(), bool(tensor) and equal() stop the program until the value is there; on a device they also stop it from "
            "running ahead. Keep sums in tensors and read them once, after the loop or every so many steps.",
            (f"{len(rows)} calls took {duration(spent)}", *(f"{count} at {place}" for place, count in seen[:5])),
            seen[0][0] if seen else None,
            spent,
            share(spent, store),
        )
    ]
