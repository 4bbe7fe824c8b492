"""What compiling the code of ops took, which happens once in a process, when an op is first called or differentiated."""

from __future__ import annotations

import numpy as np

from ..._dispatch import observer
from ..store.derived import FIRST_USES
from ..store.store import EventStore
from .findings import duration


def first_use_ns(store: EventStore) -> int:
    """The time of all compilations during a recording."""
    return int(store.self_ns[store.is_first_use].sum())


def ops_used_first(store: EventStore) -> list[str]:
    """The ops whose code was compiled during a recording."""
    names = np.unique(store.name[store.is_first_use]).tolist()
    return [store.names[name].removeprefix(observer.FIRST_USE_PREFIX) for name in names]


def first_use_text(store: EventStore) -> str:
    """A line about it for a terminal; "" if nothing was compiled."""
    ops = len(ops_used_first(store))
    if not ops:
        return ""
    took = duration(first_use_ns(store))
    used = f"First use of {ops} op{'s'[: ops > 1]}"
    return f"{used}: {took} of compiling, once in a process; it is the row {FIRST_USES!r}, and in no other row's self time"
