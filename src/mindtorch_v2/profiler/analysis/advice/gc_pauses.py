"""Python's garbage collector stops the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import user_frame
from ._evidence import passes, recorded_ns

COLLECT = "<built-in function collect>"
_LEAST = 0.1
_FAR = 10  # times the median of a generation
_FEWEST = 3  # of a generation: how long fewer took tells more of the machine
_LEAST_CALLED = 0.2  # of the pauses: there are three generations, and the short ones are many


def rule(store: EventStore) -> list[Finding]:
    """Fires when collections take more than a tenth of the time, and half of that without the longest.

    A long one may be another program's doing: the clock goes on while a machine runs something else. So one that is far above
    the median of its generation counts as the median, and a single one is not enough. Pauses are (start, end, generation) in
    the options.
    """
    found = passes(store).steps
    pauses = [
        pause
        for pause in store.options.get("gc_pauses") or ()
        if len(found.start) and ((found.start <= pause[0]) & (pause[0] < found.end)).any()
    ]
    whole = recorded_ns(store)
    lengths = _undisturbed_ns(pauses)
    spent, longest = sum(lengths), max(lengths, default=0)
    if not whole or spent < _LEAST * whole or spent - longest < _LEAST / 2 * whole:
        return []
    generations = np.bincount([generation for _, _, generation in pauses])
    counted = ", ".join(f"{count} of generation {g}" for g, count in enumerate(generations.tolist()) if count)
    called = np.flatnonzero((store.kind == observer.PYTHON) & np.isin(store.name, _numbers(store, COLLECT)))
    seen = _callers(store, called)
    return [
        Finding(
            "gc_pauses",
            "The garbage collector interrupts the steps",
            "The program calls gc.collect() itself: once every so many steps is enough."
            if len(called) >= _LEAST_CALLED * len(pauses)
            else "Call gc.freeze() after set-up, or gc.disable() and gc.collect() every so many steps.",
            (
                f"{len(pauses)} pauses ({counted}) took {duration(spent)}, the longest {duration(longest)}",
                *(f"{count} calls of gc.collect() at {line}" for line, count in seen[:3]),
            ),
            seen[0][0] if seen else None,
            spent,
            min(1.0, spent / whole),
        )
    ]


def _numbers(store: EventStore, name: str) -> list[int]:
    return [number for number, each in enumerate(store.names) if each == name]


def _callers(store: EventStore, calls: NDArray[np.intp]) -> list[tuple[str, int]]:
    """The user's lines that made calls, most frequent first."""
    frames = (user_frame(store.stacks[number]) for number in store.stack[calls].tolist() if number >= 0)
    return Counter(frame for frame in frames if frame is not None).most_common()


def _undisturbed_ns(pauses: Sequence[tuple[int, int, int]]) -> list[int]:
    """How long each pause took; one far above the median of its generation counts as that, and few of one do not count."""
    of_generation: dict[int, list[int]] = {}
    for start, end, generation in pauses:
        of_generation.setdefault(generation, []).append(end - start)
    medians = {
        generation: sorted(lengths)[len(lengths) // 2] if len(lengths) >= _FEWEST else 0
        for generation, lengths in of_generation.items()
    }
    return [
        end - start if end - start <= _FAR * medians[generation] else medians[generation] for start, end, generation in pauses
    ]
