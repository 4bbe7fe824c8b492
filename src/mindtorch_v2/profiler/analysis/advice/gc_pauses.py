"""Python's garbage collector stops the program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...store.store import EventStore
from ..findings import Finding, duration
from ._evidence import recorded_ns

_LEAST = 0.1
_FAR = 10  # times the median of a generation


def rule(store: EventStore) -> list[Finding]:
    """Fires when collections take more than a tenth of the time, and half of that without the longest.

    A long one may be another program's doing: the clock goes on while a machine runs something else. So one that is far above
    the median of its generation counts as the median, and a single one is not enough. Pauses are (start, end, generation) in
    the options.
    """
    pauses = store.options.get("gc_pauses") or ()
    whole = recorded_ns(store)
    lengths = _undisturbed_ns(pauses)
    spent, longest = sum(lengths), max(lengths, default=0)
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


def _undisturbed_ns(pauses: Sequence[tuple[int, int, int]]) -> list[int]:
    """How long each pause took; one far above the median of its generation counts as that."""
    of_generation: dict[int, list[int]] = {}
    for start, end, generation in pauses:
        of_generation.setdefault(generation, []).append(end - start)
    medians = {generation: sorted(lengths)[len(lengths) // 2] for generation, lengths in of_generation.items()}
    return [
        end - start if end - start <= _FAR * medians[generation] else medians[generation] for start, end, generation in pauses
    ]
