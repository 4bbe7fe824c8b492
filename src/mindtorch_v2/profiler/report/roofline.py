"""The points of the roofline for the page, by op and by module, with the ceilings of this machine if they were measured."""

from __future__ import annotations

from typing import Any

from .._io.terminal import shown
from ..analysis import ceilings as machine
from ..analysis.roofline import Point, roofline
from ..store.store import EventStore

_MOST_POINTS, _MOST_CHARACTERS = 60, 400


def roofline_table(store: EventStore) -> dict[str, Any]:
    """The points with most time as lists of name, calls, nanoseconds, FLOPs and bytes; none without FLOPs and shapes."""
    points: dict[str, list[list[Any]]] = {}
    if store.flops.any() and (store.shapes >= 0).any():
        groupings = ("op", "shape", *(("module",) if (store.module >= 0).any() else ()))
        points = {by: [_plain(point) for point in roofline(store, store.flops, by)[:_MOST_POINTS]] for by in groupings}
    return {
        "points": {by: found for by, found in points.items() if found},
        "results_counted": bool(len(store.mem_time)),
        "ceilings": _ceilings(store),
    }


def _plain(point: Point) -> list[Any]:
    return [shown(point.name, _MOST_CHARACTERS), point.calls, point.time_ns, point.flops, point.bytes]


def _ceilings(store: EventStore) -> dict[str, Any] | None:
    """Those of the host, which say nothing of work on a device."""
    if store.has_device_rows:
        return None
    try:
        found = machine.load()
    except (OSError, ValueError):  # not a reason to write no report
        return None
    return (
        None if found is None else {**found.to_dict(), "machine": shown(found.machine, _MOST_CHARACTERS), "ridge": found.ridge}
    )
