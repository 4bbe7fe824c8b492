"""A device has nothing to do for much of the time."""

from __future__ import annotations

from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ._device import device_use, fewer_launches, times_of, waits
from ._evidence import outermost, rows_named, slow_lines

_LEAST = 0.3  # of the time


def rule(store: EventStore) -> list[Finding]:
    """Fires when a device idles for three tenths of the passes; says during what of the host."""
    use = device_use(store)
    if use is None or use.idle_share < _LEAST:
        return []
    loading = outermost(store, rows_named(store, lambda name: name.startswith("enumerate(DataLoader)")))
    waiting = waits(store)
    fetches = times_of(store, loading)
    in_loader = (use.idle & fetches).total
    in_waits = ((use.idle & times_of(store, waiting)) - fetches).total
    idle = use.idle.total
    causes = [
        (in_loader, "the host loads data", "Load ahead: DataLoader(num_workers=..., pin_memory=True)."),
        (in_waits, "the host returns from waiting for the device", "Wait less often: see the lines that read values."),
        (
            idle - in_loader - in_waits,
            "the host prepares the next kernels",
            f"The host is what limits: larger batches, fewer and fused kernels ({fewer_launches(store)}), and less Python "
            "between ops keep the device at work.",
        ),
    ]
    causes.sort(key=lambda cause: -cause[0])
    lines = places(store, loading) if causes[0][1] == "the host loads data" else slow_lines(store, store.device_type == 0)
    return [
        Finding(
            "device_idle",
            f"The device is idle for {use.idle_share:.0%} of the time",
            causes[0][2],
            (
                f"it worked for {duration(use.busy.total)} of {duration(use.passes.total)}",
                *(f"{duration(ns)} idle while {what}" for ns, what, _ in causes if ns >= 0.05 * idle),
            ),
            lines[0][0] if lines else None,
            idle,
            use.idle_share,
        )
    ]
