"""Most of the time goes into calling ops rather than into their work."""

from __future__ import annotations

import numpy as np

from ...._dispatch import observer
from ...store.store import EventStore
from ..findings import Finding, duration
from ..places import places
from ._evidence import call_cost_ns, share, top_names

_FEWEST = 1000
_TINY = 3  # times the least cost of a call
_LEAST = 0.5


def rule(store: EventStore) -> list[Finding]:
    """Fires when at least half the ops' own time is in ops that take at most three times the least cost of a call."""
    ops = np.flatnonzero((store.kind == observer.OP) & (store.device_type == 0))
    if len(ops) < _FEWEST:
        return []
    cost = call_cost_ns(store)
    alone = store.self_ns[ops]
    tiny = ops[alone <= _TINY * cost]
    spent = int(store.self_ns[tiny].sum())
    if len(tiny) < _FEWEST or spent < _LEAST * int(alone.sum()):
        return []
    names = top_names(store, tiny)
    seen = places(store, tiny)
    # Twice as much work in each call would halve the number of calls.
    gain = len(tiny) * cost // 2
    return [
        Finding(
            "tiny_ops",
            "Many tiny ops: the time goes into calls, not into arithmetic",
            f"A call costs about {duration(cost)} here whatever it works on. Larger batches, batched ops instead of Python "
            "loops, and fused functions (addmm, addcmul, _foreach_*) do the same work in fewer calls; the estimate assumes "
            "half as many.",
            (
                f"{len(tiny):,} of {len(ops):,} ops took {duration(spent)} together",
                *(f"{name}: {count:,} calls, {duration(ns)}" for name, count, ns in names),
            ),
            seen[0][0] if seen else None,
            gain,
            share(gain, store),
        )
    ]
