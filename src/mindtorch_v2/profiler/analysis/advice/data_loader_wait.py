"""The training loop waits for its data."""

from __future__ import annotations

from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ._evidence import outermost, recorded_ns, rows_named, share, slow_lines, typical_ns, under

_LEAST = 0.1
_MOST = 0.3  # of the wait, for a line of the dataset to be named


def rule(store: EventStore) -> list[Finding]:
    """Fires when more than a tenth of the time is spent in next(DataLoader)."""
    rows = outermost(store, rows_named(store, lambda name: name.startswith("enumerate(DataLoader)")))
    whole = recorded_ns(store)
    waited = typical_ns(store, rows)
    if not whole or waited < _LEAST * whole:
        return []
    one_process = any("_SingleProcessDataLoaderIter" in store.names[n] for n in store.name[rows].tolist())
    what = (
        "All loading happens in the training process. DataLoader(num_workers=...) loads ahead while a step computes."
        if one_process
        else "The workers do not keep up: more of them, cheaper transforms, or a larger prefetch_factor would."
    )
    inner = slow_lines(store, under(store, rows))
    # In the dataset, the collating function or the sampler, if one of their lines takes most of it; else the loop.
    lines = inner if inner and inner[0][1] >= _MOST * waited else places(store, rows)
    return [
        Finding(
            "data_loader_wait",
            "The loop waits for its data loader",
            what,
            (
                f"{len(rows)} fetches took {duration(waited)}, {duration(waited / len(rows))} each",
                *(f"{duration(ns)} of it at {line}" for line, ns in inner),
            ),
            lines[0][0] if lines else None,
            waited,
            share(waited, store),
        )
    ]
