"""A device communicates, and computes nothing meanwhile."""

from __future__ import annotations

from ...store.store import EventStore
from ..device.summary import classes
from ..findings import Finding, duration
from ..source.places import places
from ._device import device_use, times_of
from ._evidence import top_names

_LEAST = 0.1  # of the time


def rule(store: EventStore) -> list[Finding]:
    """Fires when collectives run for a tenth of the time while nothing is computed."""
    use = device_use(store)
    if use is None:
        return []
    computing, talking, _ = classes(store, use.kernels)
    during = times_of(store, talking) & use.passes
    alone = (during - times_of(store, computing)).total
    part = use.share(alone)
    if part < _LEAST:
        return []
    seen = places(store, talking)
    return [
        Finding(
            "exposed_communication",
            "The device communicates, and computes nothing meanwhile",
            "DistributedDataParallel reduces gradients while others are computed: smaller buckets (bucket_cap_mb) begin "
            "earlier, no_sync() reduces accumulated gradients once. A rank that waits for a slower one looks the same: "
            "`mtprof ranks` on the recordings of all ranks tells which it is.",
            (
                f"{len(talking):,} collectives took {duration(during.total)}, {duration(alone)} of it while nothing was "
                "computed",
                *(f"{name}: {count:,} calls, {duration(ns)}" for name, count, ns in top_names(store, talking, 3)),
            ),
            seen[0][0] if seen else None,
            alone,
            part,
        )
    ]
