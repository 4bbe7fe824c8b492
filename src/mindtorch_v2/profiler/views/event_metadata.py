"""FunctionEvent.event_metadata: the fields of a kernel or a collective in a device trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


def _text(value: str) -> str:
    return value.strip('"')


def _flag(value: str) -> bool:
    return value.lower() == "true"


# field, key in the trace, how its text is read
_FIELDS: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    ("registers_per_thread", "registers per thread", int),
    ("shared_memory", "shared memory", int),
    ("grid", "grid", json.loads),
    ("block", "block", json.loads),
    ("priority", "priority", int),
    ("blocks_per_sm", "blocks per SM", float),
    ("warps_per_sm", "warps per SM", float),
    ("occupancy", "occupancy", json.loads),
    ("est_occupancy_pct", "est. achieved occupancy %", float),
    ("queued", "queued", int),
    ("graph_id", "graph id", int),
    ("graph_node_id", "graph node id", int),
    ("stream", "stream", int),
    ("context", "context", int),
    ("channel", "channel", int),
    ("channel_type", "channel_type", int),
    ("bytes", "bytes", int),
    ("bandwidth_gb_s", "memory bandwidth (GB/s)", float),
    ("collective_name", "Collective name", _text),
    ("dtype", "dtype", _text),
    ("in_msg_nelems", "In msg nelems", int),
    ("out_msg_nelems", "Out msg nelems", int),
    ("in_split_size", "In split size", _text),
    ("out_split_size", "Out split size", _text),
    ("global_rank_start", "Global rank start", int),
    ("global_rank_stride", "Global rank stride", int),
    ("group_size", "Group size", int),
    ("process_group_name", "Process Group Name", _text),
    ("process_group_desc", "Process Group Description", _text),
    ("group_ranks", "Process Group Ranks", _text),
    ("rank", "Rank", int),
    ("src_rank", "Src Rank", int),
    ("dst_rank", "Dst Rank", int),
    ("seq", "Seq", int),
    ("is_async", "Is asynchronized op", _flag),
)

EventMetadata = NamedTuple("EventMetadata", [(field, Any) for field, _, _ in _FIELDS])  # type: ignore[misc]
EventMetadata.__doc__ = "The fields of one event in the device's trace; None for those it lacks."


def read_metadata(extra: Mapping[str, str] | None) -> EventMetadata | None:
    """Parse the texts of a trace's fields; None if there are none."""
    if not extra:
        return None
    return EventMetadata(*(read(extra[key]) if key in extra else None for _, key, read in _FIELDS))
