"""History for gradients is kept of results that are never differentiated."""

from __future__ import annotations

import numpy as np

from ...._dispatch import observer
from ...store.store import EventStore
from ..findings import Finding, duration
from ..places import places
from ..steps import step_of, steps
from ._evidence import recorded_ns, top_names

_FEWEST = 20
_LEAST = 0.05


def rule(store: EventStore) -> list[Finding]:
    """Fires when whole steps record history (sequence numbers) and no backward uses it."""
    forward = np.flatnonzero((store.kind == observer.OP) & (store.seq >= 0) & (store.device_type == 0))
    which = steps(store)
    at = step_of(store, which)
    backward = store.kind == observer.BACKWARD
    with_backward = np.zeros(len(which.start) + 1, np.bool_)
    with_backward[at[backward]] = True
    rows = forward[(at[forward] >= 0) & ~with_backward[at[forward]]]
    spent = int(store.self_ns[rows].sum())
    if len(rows) < _FEWEST or spent < _LEAST * recorded_ns(store):
        return []
    seen = places(store, rows)
    return [
        Finding(
            "unused_graph",
            "Gradients could be computed here, but never are",
            "These ops noted how to differentiate them and kept their inputs alive, and no backward() followed. Evaluation "
            "under torch.no_grad() or torch.inference_mode() needs less memory and time.",
            (
                f"{len(rows):,} ops, {duration(spent)}",
                *(f"{name}: {count:,} calls" for name, count, _ in top_names(store, rows, 3)),
            ),
            seen[0][0] if seen else None,
        )
    ]
