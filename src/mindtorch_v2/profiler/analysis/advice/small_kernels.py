"""Kernels are so short that launching them takes longer than running them."""

from __future__ import annotations

import numpy as np

from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ._device import device_use, fewer_launches
from ._evidence import passes, top_names

_FEWEST = 100  # in a pass
_SMALL_NS = 10_000
_LEAST_IDLE = 0.3


def rule(store: EventStore) -> list[Finding]:
    """Fires when most kernels of a pass take less than ten microseconds, and less than the device then waits for the next."""
    use = device_use(store)
    if use is None or len(use.kernels) < _FEWEST * max(1, passes(store).count) or use.idle_share < _LEAST_IDLE:
        return []
    times = store.duration[use.kernels]
    small = use.kernels[times < _SMALL_NS]
    idle = use.idle.end - use.idle.start
    between = int(idle[idle < _SMALL_NS * 10].sum())
    worked = int(store.duration[small].sum())
    if len(small) < 0.5 * len(use.kernels) or between < worked:
        return []
    seen = places(store, small)
    return [
        Finding(
            "small_kernels",
            f"{len(small) / max(1, passes(store).count):,.0f} kernels a step take less than {duration(_SMALL_NS)} each",
            "The device waits for the next launch longer than it works. Larger batches and fused ops launch less often: "
            f"{fewer_launches(store)}.",
            (
                f"{len(small):,} of {len(use.kernels):,} kernels, {duration(float(np.median(store.duration[small])))} in the "
                f"middle; they worked for {duration(worked)}, between them the device idled for {duration(between)} of "
                f"{duration(use.passes.total)}",
                *(f"{name}: {count:,} calls, {duration(ns)}" for name, count, ns in top_names(store, small, 3)),
            ),
            seen[0][0] if seen else None,
            between,
            use.share(between),
        )
    ]
