"""The training loop waits for its data."""

from __future__ import annotations

from ...store.store import EventStore
from ..findings import Finding, duration
from ..places import places
from ._evidence import outermost, recorded_ns, rows_named

_LEAST = 0.1


def rule(store: EventStore) -> list[Finding]:
    """Fires when more than a tenth of the time is spent in next(DataLoader)."""
    rows = outermost(store, rows_named(store, lambda name: name.startswith("enumerate(DataLoader)")))
    whole = recorded_ns(store)
    waited = int(store.duration[rows].sum())
    if not whole or waited < _LEAST * whole:
        return []
    one_process = any("_SingleProcessDataLoaderIter" in store.names[n] for n in store.name[rows].tolist())
    what = (
        "All loading happens in the training process. DataLoader(num_workers=...) loads ahead while a step computes."
        if one_process
        else "The workers do not keep up: more of them, cheaper transforms, or a larger prefetch_factor would."
    )
    where = places(store, rows)
    return [
        Finding(
            "data_loader_wait",
            "The loop waits for its data loader",
            what,
            (f"{len(rows)} fetches took {duration(waited)}, {duration(waited / len(rows))} each",),
            where[0][0] if where else None,
            waited,
            min(1.0, waited / whole),
        )
    ]
