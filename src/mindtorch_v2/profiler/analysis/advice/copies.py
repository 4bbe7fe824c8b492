"""Data is copied where a view, or the right layout from the start, would do."""

from __future__ import annotations

from ...store.store import EventStore
from ..findings import Finding, duration
from ..places import places
from ._evidence import outermost, recorded_ns, rows_named, under

_COPIES = frozenset({"aten::contiguous", "aten::clone", "aten::_to_copy", "aten::to", "aten::repeat", "aten::copy_"})
_LEAST = 0.1


def rule(store: EventStore) -> list[Finding]:
    """Fires when copies outside the data loader and the optimizer take more than a tenth of the time."""
    rows = outermost(store, rows_named(store, _COPIES.__contains__))
    own = rows_named(store, lambda name: name.startswith(("Optimizer.", "enumerate(DataLoader)")))
    rows = rows[~under(store, own)[rows]]
    spent = int(store.duration[rows].sum())
    whole = recorded_ns(store)
    if not whole or spent < _LEAST * whole:
        return []
    by_name: dict[str, list[int]] = {}
    for row in rows.tolist():
        by_name.setdefault(store.names[store.name[row]], []).append(int(store.duration[row]))
    most = sorted(by_name.items(), key=lambda item: -sum(item[1]))
    seen = places(store, rows)
    return [
        Finding(
            "copies",
            "Much time is spent on copying",
            "Copies come from contiguous() and reshape() of permuted tensors, from clone(), and from to() with another dtype "
            "or device. Make the tensor once with the layout and dtype it is used with, or keep it a view.",
            (
                *(f"{name}: {len(times):,} calls, {duration(sum(times))}" for name, times in most[:5]),
                *(f"{count} at {place}" for place, count in seen[:3]),
            ),
            seen[0][0] if seen else None,
            spent,
            min(1.0, spent / whole),
        )
    ]
