"""Data is copied where a view, or the right layout from the start, would do."""

from __future__ import annotations

import numpy as np

from ...._dispatch import observer
from ...store import tree
from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ._evidence import in_own_spans, outermost, passes, recorded_ns, rows_named, share, slow_lines, typical_ns, under, usual_ns
from ._loops import in_loops
from .conversions import conversions
from .growing_tensor import growing

_COPIES = frozenset({"aten::contiguous", "aten::clone", "aten::_to_copy", "aten::to", "aten::repeat", "aten::copy_"})
_LEAST = 0.1


def rule(store: EventStore) -> list[Finding]:
    """Fires when copies outside the data loader and the optimizer take more than a tenth of the time.

    That the host waits for a device inside of a copy is no copying. Conversions and tensors that grow have their own rules.
    """
    rows = outermost(store, rows_named(store, _COPIES.__contains__))
    others = np.concatenate([conversions(store), growing(store)])
    around = np.zeros(len(store) + 1, np.bool_)
    around[store.parent[others]] = around[others] = True
    rows = rows[~in_own_spans(store)[rows] & ~in_loops(store)[rows] & ~around[rows] & ~under(store, others)[rows]]
    rows = rows[passes(store).of_row[rows] >= 0]
    calls = store.kind == observer.RUNTIME
    own, durations = usual_ns(store)
    times = durations[rows]
    if calls.any():
        times = times - tree.subtree_sums(store.parent, np.where(calls, own, 0))[rows]
    spent = typical_ns(store, rows, times)
    whole = recorded_ns(store)
    if not whole or spent < _LEAST * whole:
        return []
    by_name: dict[str, list[int]] = {}
    for row, ns in zip(rows.tolist(), times.tolist(), strict=True):
        by_name.setdefault(store.names[store.name[row]], []).append(ns)
    most = sorted(by_name.items(), key=lambda item: -sum(item[1]))
    seen = places(store, rows)
    inside = under(store, rows)
    inside[rows] = True
    slowest = slow_lines(store, inside) or seen
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
            slowest[0][0] if slowest else None,
            spent,
            share(spent, store),
        )
    ]
