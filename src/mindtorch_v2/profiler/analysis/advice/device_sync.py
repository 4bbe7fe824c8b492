"""The host waits for a device, and the device then has nothing to do."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ._device import device_use, waits
from ._evidence import passes

_FEWEST = 2  # in one pass: reading the loss once is common


def rule(store: EventStore) -> list[Finding]:
    """Fires on two or more blocking calls a pass after which the device idles until the host has launched more."""
    use = device_use(store)
    if use is None:
        return []
    rows = waits(store)
    per_pass = len(rows) / max(1, passes(store).count)
    if per_pass < _FEWEST or not len(use.idle):
        return []
    # The stretch in which the host returned, or the next one if the device was still at work on something else.
    at = np.searchsorted(use.idle.end, store.end[rows], side="right")
    known = at < len(use.idle)
    stretches = np.unique(at[known][use.idle.start[at[known]] <= store.end[rows][known]])
    returned = np.array([store.end[rows][known & (at == number)].min() for number in stretches.tolist()], np.int64)
    lost = int((use.idle.end[stretches] - np.maximum(returned, use.idle.start[stretches])).sum())
    waited = int(store.duration[rows].sum())
    above = store.linked[rows]
    callers = Counter(store.names[store.name[row]] for row in above[above >= 0].tolist())
    seen = places(store, above[above >= 0].astype(np.intp))
    return [
        Finding(
            "device_sync",
            f"The host waits for the device {per_pass:.3g} times a step",
            "item(), bool(tensor), print(tensor), copies to the host and from memory that is not pinned wait until the device "
            "has done all its work; then it idles until there is more. Read values once, after the loop or every so many "
            "steps, and copy with non_blocking=True from pinned memory.",
            (
                f"{len(rows):,} calls waited {duration(waited)}; the device idled for {duration(lost)} after they returned",
                *(f"{count:,} in {name}" for name, count in callers.most_common(3)),
                *(f"{count:,} at {place}" for place, count in seen[:3]),
            ),
            seen[0][0] if seen else None,
            lost,
            use.share(lost),
        )
    ]
