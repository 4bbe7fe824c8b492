"""Everything that is known of the devices of a recording, as plain values: for JSON and for the page."""

from __future__ import annotations

from typing import Any

from ...store.store import EventStore
from . import idle, summary


def device_answer(store: EventStore, most: int | None = None) -> dict[str, Any]:
    """The tables of `mtprof device`, with at most so many kernels; lists are empty where nothing ran on a device."""
    kernels = summary.kernel_groups(store)
    return {
        "devices": [{**one._asdict(), "utilization": one.utilization} for one in summary.device_summaries(store)],
        "steps": [
            {"step": step.step, "duration_ns": step.duration_ns, **{f"{part}_ns": ns for part, ns in step.parts.items()}}
            for step in summary.step_breakdown(store)
        ],
        "kernels": [group._asdict() for group in kernels[:most]],
        "kernels_in_all": len(kernels),
        "copies": [
            {**group._asdict(), "gigabytes_per_second": group.gigabytes_per_second} for group in summary.copy_groups(store)
        ],
        "launches": [stats._asdict() for stats in summary.launch_stats(store)],
        "overlap": [step._asdict() for step in idle.step_overlap(store)],
        "idle": [cause._asdict() for cause in idle.idle_causes(store)],
        "limits": [limit._asdict() for limit in idle.limits(store)],
    }
