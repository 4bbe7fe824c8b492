"""What compiling the code of ops took, which happens once in a process, when an op is first called or differentiated."""

from __future__ import annotations

from ..store.store import EventStore
from .findings import duration


def first_use_ns(store: EventStore) -> int:
    """The time of all compilations during a recording."""
    return sum(end - start for start, end, *_ in store.first_uses)


def first_use_text(store: EventStore) -> str:
    """A line about it for a terminal; "" if nothing was compiled."""
    ops = {op for _, _, op, _ in store.first_uses}
    if not ops:
        return ""
    took = duration(first_use_ns(store))
    used = f"First use of {len(ops)} op{'s'[: len(ops) > 1]}"
    where = "It is in the times of what called them; `mtprof table --corrected` is without"
    return f"{used}: {took} of compiling, once in a process. {where}"
