"""Copies between host and device hold up the kernels."""

from __future__ import annotations

import numpy as np

from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ._device import device_use, times_of, touches_host

_LEAST = 0.05  # of the time


def rule(store: EventStore) -> list[Finding]:
    """Fires when a device copies to or from the host, and runs no kernel meanwhile, for a twentieth of the time."""
    use = device_use(store)
    if use is None:
        return []
    rows = use.copies[touches_host(store, use.copies)]
    alone = ((times_of(store, rows) & use.passes) - times_of(store, use.kernels)).total
    part = use.share(alone)
    if part < _LEAST:
        return []
    pageable = any("Pageable" in store.names[name] for name in np.unique(store.name[rows]).tolist())
    seen = places(store, rows)
    times = {name: int(store.duration[rows[store.name[rows] == name]].sum()) for name in np.unique(store.name[rows]).tolist()}
    return [
        Finding(
            "device_copies",
            "Copies between host and device hold up the kernels",
            ("The host's memory is not pinned: DataLoader(pin_memory=True) and " if pageable else "")
            + "to(device, non_blocking=True) let a copy run beside kernels. Make tensors on the device where they are used.",
            (
                f"{len(rows):,} copies, during {duration(alone)} of which no kernel ran",
                *(f"{store.names[name]}: {duration(ns)}" for name, ns in sorted(times.items(), key=lambda item: -item[1])[:3]),
            ),
            seen[0][0] if seen else None,
            alone,
            part,
        )
    ]
