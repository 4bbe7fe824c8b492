"""Python's garbage collector stops the program."""

from __future__ import annotations

import numpy as np

from ...store.store import EventStore
from ..findings import Finding, duration
from ._evidence import recorded_ns

_LEAST = 0.1


def rule(store: EventStore) -> list[Finding]:
    """Fires when collections take more than a tenth of the time, and half of that without the longest.

    A single long one may be another program's doing: the clock goes on while a machine runs something else. Pauses are
    (start, end, generation) in the options.
    """
    pauses = store.options.get("gc_pauses") or ()
    whole = recorded_ns(store)
    spent = sum(end - start for start, end, _ in pauses)
    longest = max((end - start for start, end, _ in pauses), default=0)
    if not whole or spent < _LEAST * whole or spent - longest < _LEAST / 2 * whole:
        return []
    generations = np.bincount([generation for _, _, generation in pauses])
    counted = ", ".join(f"{count} of generation {g}" for g, count in enumerate(generations.tolist()) if count)
    return [
        Finding(
            "gc_pauses",
            "The garbage collector interrupts the steps",
            "Call gc.freeze() after set-up, or gc.disable() and gc.collect() every so many steps.",
            (f"{len(pauses)} pauses ({counted}) took {duration(spent)}, the longest {duration(longest)}",),
            None,
            spent,
            min(1.0, spent / whole),
        )
    ]
