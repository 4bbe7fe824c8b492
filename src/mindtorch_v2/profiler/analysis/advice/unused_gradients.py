"""Gradients are computed and then not used by any optimizer."""

from __future__ import annotations

import numpy as np

from ...._dispatch import observer
from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ._evidence import outermost, rows_named, share, usual_ns

_FEWEST = 3


def rule(store: EventStore) -> list[Finding]:
    """Fires when gradients are thrown away before use: a zero_grad follows a backward with no optimizer step between."""
    steps = store.start[rows_named(store, lambda name: name.startswith("Optimizer.step#"))]
    zeros = np.sort(store.start[rows_named(store, lambda name: name.startswith("Optimizer.zero_grad#"))])
    engine = outermost(store, np.flatnonzero(store.kind == observer.ENGINE))
    if len(zeros) < _FEWEST or not len(engine):
        return []
    # A backward is wasted if a zero_grad comes after it before any optimizer step.
    times = store.start[engine]
    never = np.iinfo(np.int64).max
    next_zero = np.append(zeros, never)[np.searchsorted(zeros, times, side="right")]
    next_step = np.append(np.sort(steps), never)[np.searchsorted(np.sort(steps), times, side="right")]
    wasted = engine[(next_zero < next_step) & (next_zero != never)]
    dropped = len(np.unique(next_zero[(next_zero < next_step) & (next_zero != never)]))
    if dropped < _FEWEST:
        return []
    spent = int(usual_ns(store)[1][wasted].sum())
    seen = places(store, wasted)
    return [
        Finding(
            "unused_gradients",
            "Gradients are computed for nothing",
            "zero_grad() throws away gradients that no optimizer step has used. Skip backward() there, or detach what needs "
            "no gradient (the input of a discriminator, a target network).",
            (f"{dropped} times gradients were dropped; computing them took {duration(spent)}",),
            seen[0][0] if seen else None,
            spent,
            share(spent, store),
        )
    ]
