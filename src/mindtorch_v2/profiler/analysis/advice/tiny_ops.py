"""Most of the ops' time goes into calling them rather than into their work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ._evidence import Rows, call_cost_ns, in_own_spans, passes, recorded_ns, share, top_names, undisturbed_self_ns
from ._loops import in_loops

_FEWEST = 1000
_TINY = 3  # times the least cost of a call, of any op or of an op that is tiny itself
_LEAST = 0.5  # of the ops' own time
_LEAST_OF_ALL = 0.02  # of the recorded time


def rule(store: EventStore) -> list[Finding]:
    """Fires when at least half the ops' own time is in ops that take at most three times the least cost of a call.

    That cost is the cheapest op's. An op that costs up to three times as much at its best is tiny as well, and so are its calls
    up to three times its best: on a busy machine the same call takes now one time, now two. What interrupted an op for long is
    no time of its own here: one interruption takes as long as thousands of tiny ops.
    """
    ops = np.flatnonzero((store.kind == observer.OP) & (store.device_type == 0) & (passes(store).of_row >= 0))
    # Of those of an optimizer, of a data loader and of loops there are rules of their own.
    ops = ops[~in_own_spans(store)[ops] & ~in_loops(store)[ops]]
    if len(ops) < _FEWEST:
        return []
    cost = call_cost_ns(store)
    alone = undisturbed_self_ns(store, ops)
    small = alone <= _TINY * np.maximum(cost, _best_of_tiny_ops(store, ops, alone, _TINY * cost))
    tiny, spent = ops[small], int(alone[small].sum())
    if len(tiny) < _FEWEST or spent < _LEAST * int(alone.sum()) or spent < _LEAST_OF_ALL * recorded_ns(store):
        return []
    names = top_names(store, tiny, own=alone[small])
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


def _best_of_tiny_ops(store: EventStore, ops: Rows, alone: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """For each row the tenth percentile of its op's times, or 0 if that is above a limit."""
    kinds, which = np.unique(store.label[ops], return_inverse=True)
    best = np.array([np.quantile(alone[which == kind], 0.1) for kind in range(len(kinds))]).astype(np.int64)
    return np.where(best <= limit, best, 0)[which]
