"""A tensor grows piece by piece, and each piece copies all that came before."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ._evidence import Rows, in_own_spans, recorded_ns, rows_named, share, usual_ns

_FEWEST = 8  # calls in a row that each had more to copy
_LEAST = 0.05  # of the recorded time


def rule(store: EventStore) -> list[Finding]:
    """Fires when a cat at one line gets a longer and longer input, eight times or more in a row; needs record_shapes."""
    rows = growing(store)
    spent = int(usual_ns(store)[1][rows].sum())
    if not spent or spent < _LEAST * recorded_ns(store):
        return []
    seen = places(store, rows)
    sizes = [_elements(store.input_infos[number].dims) for number in store.shapes[rows].tolist()]
    return [
        Finding(
            "growing_tensor",
            "A tensor is put together piece by piece",
            "Each cat copies all pieces so far: a thousand of them copy half a million. Collect the pieces in a list and cat "
            "once after the loop, or write into a tensor of the final size.",
            (f"{len(rows):,} calls took {duration(spent)}, with {min(sizes):,} to {max(sizes):,} elements",),
            seen[0][0] if seen else None,
            spent,
            share(spent, store),
        )
    ]


def growing(store: EventStore) -> Rows:
    """Calls of cat, by stack, that belong to a row of calls with more and more elements."""
    rows = rows_named(store, lambda name: name in ("aten::cat", "aten::concat"))
    rows = rows[(store.shapes[rows] >= 0) & ~in_own_spans(store)[rows]]
    elements = np.array([_elements(store.input_infos[number].dims) for number in store.shapes[rows].tolist()], np.int64)
    found: list[int] = []
    for stack in np.unique(store.call_stack[rows]).tolist():
        own = np.flatnonzero(store.call_stack[rows] == stack)
        grows = np.append(False, elements[own][1:] > elements[own][:-1])
        begins = np.append(np.flatnonzero(~grows), len(own))
        for first, last in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            if last - first >= _FEWEST:
                found += own[first:last].tolist()
    return rows[np.array(found, np.intp)]


def _elements(dims: tuple[Any, ...]) -> int:
    """The elements of the list of tensors that an op is given first."""
    tensors = dims[0] if dims and isinstance(dims[0], tuple) else ()
    return sum(math.prod(each) for each in tensors if isinstance(each, tuple))
