"""What setting up ops took, which happens once in a process, when an op is first called or differentiated: its code is
compiled, or read if an earlier process has left it.
"""

from __future__ import annotations

import numpy as np

from ..._dispatch import observer
from ..store.derived import FIRST_USES
from ..store.store import EventStore
from .findings import duration


def first_use_ns(store: EventStore) -> int:
    """The time of all first uses during a recording."""
    return int(store.self_ns[store.is_first_use].sum())


def ops_used_first(store: EventStore) -> list[str]:
    """The ops that were set up during a recording."""
    names = np.unique(store.name[store.is_first_use]).tolist()
    return [store.names[name].removeprefix(observer.FIRST_USE_PREFIX) for name in names]


def first_use_text(store: EventStore) -> str:
    """A line about it for a terminal; "" if there was none."""
    ops = len(ops_used_first(store))
    if not ops:
        return ""
    took = duration(first_use_ns(store))
    used = f"First use of {ops} op{'s'[: ops > 1]}"
    return f"{used}: {took} of setting up, once in a process; it is the row {FIRST_USES!r}, and in no other row's self time"
