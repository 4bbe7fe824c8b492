"""Which RetentionPolicy a profile's arguments ask for. Arguments that contradict each other raise when the profile is made."""

from __future__ import annotations

import os
from typing import Any

from ..config import SAMPLED
from .base import RetentionPolicy

MODES = ("ring", "aggregate")


def retention_policy(
    stream_to: str | os.PathLike[str] | None,
    flush_interval_s: float,
    max_memory_mb: float | None,
    mode: str | None,
    options: dict[str, Any],
) -> RetentionPolicy | None:
    """The policy for these arguments of profile(); None if rows stay with the recorder until the end, as in torch."""
    if stream_to is None and max_memory_mb is None and mode is None:
        _positive("flush_interval_s", flush_interval_s)
        return None
    if stream_to is not None and (max_memory_mb is not None or mode is not None):
        raise ValueError("stream_to keeps every event in a file, max_memory_mb and mode keep some in memory: choose one")
    if options.get("with_stack") == SAMPLED:
        raise ValueError(
            f"with_stack={SAMPLED!r} keeps its stacks in memory until the end: not with stream_to and max_memory_mb"
        )
    if options.get("acc_events"):
        raise ValueError("acc_events=True keeps every window in memory, which stream_to and max_memory_mb are there to avoid")
    if stream_to is not None:
        _positive("flush_interval_s", flush_interval_s)
        from .stream import Stream  # here, as below, because few profiles need it

        return Stream(stream_to, flush_interval_s)
    if mode is not None and mode not in MODES:
        raise ValueError(f"mode is {' or '.join(map(repr, MODES))}, not {mode!r}")
    if max_memory_mb is None:
        raise ValueError(f"mode={mode!r} needs max_memory_mb, the bound of what it keeps")
    _positive("max_memory_mb", max_memory_mb)
    if mode == "aggregate":
        if options.get("use_device"):
            raise NotImplementedError("mode='aggregate' adds up what the CPU records; for a device use mode='ring'")
        unkept = [name for name in ("with_stack", "profile_memory") if options.get(name)]
        if unkept:
            raise ValueError(f"mode='aggregate' keeps times by op, input shapes and module: leave out {' and '.join(unkept)}")
        from .aggregate import Aggregator

        return Aggregator(max_memory_mb)
    from .ring import Ring

    return Ring(max_memory_mb)


def _positive(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be more than 0, got {value}")
