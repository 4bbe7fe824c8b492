"""Tensors are converted to another dtype in every step."""

from __future__ import annotations

import numpy as np

from ...store.store import EventStore, InputInfo
from ..findings import Finding, duration
from ..source.places import places
from ._evidence import in_own_spans, passes, recorded_ns, rows_named, share, slow_lines, typical_ns
from ._loops import in_loops
from .promotion import widened

_LEAST = 0.05  # of the recorded time
_FEWEST = 1  # of a pass
# The numbers of floating dtypes as ops are given them, by the names of element types. Whole numbers are made into others
# because the next op wants those.
_NUMBERS = {"c10::Half": 5, "float": 6, "double": 7, "c10::BFloat16": 15}


def rule(store: EventStore) -> list[Finding]:
    """Fires when conversions outside the data loader and the optimizer take a twentieth of the time; needs record_shapes."""
    rows = conversions(store)
    rows = rows[~in_own_spans(store)[rows] & ~in_loops(store)[rows] & (passes(store).of_row[rows] >= 0)]
    # What was widened by mistake is converted back: that has a rule of its own.
    wide = widened(store)
    rows = rows[[store.input_infos[number].types[0] not in wide for number in store.shapes[rows].tolist()]]
    spent = typical_ns(store, rows)
    if len(rows) < _FEWEST * passes(store).count or not spent or spent < _LEAST * recorded_ns(store):
        return []
    kinds, counts = np.unique(store.shapes[rows], return_counts=True)
    most = np.argsort(-counts)[:3].tolist()
    chosen = np.zeros(len(store), np.bool_)
    chosen[rows] = True
    seen = slow_lines(store, chosen) or places(store, rows)
    return [
        Finding(
            "conversions",
            "Tensors are converted to another dtype again and again",
            "Make the tensor with the dtype it is used with, or convert it once before the loop: weights and constants where "
            "they are made, data in the dataset or the collating function.",
            (
                f"{len(rows):,} conversions took {duration(spent)}",
                *(f"{int(counts[at]):,} of {_described(store.input_infos[kinds[at]])}" for at in most),
            ),
            seen[0][0] if seen else None,
            spent,
            share(spent, store),
        )
    ]


def conversions(store: EventStore) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Copies that change the dtype."""
    changes = [number for number, info in enumerate(store.input_infos) if _changes_dtype(info)]
    rows = rows_named(store, "aten::_to_copy".__eq__)
    return rows[np.isin(store.shapes[rows], changes)]


def _changes_dtype(info: InputInfo) -> bool:
    wanted = _number(info)
    return wanted in _NUMBERS.values() and bool(info.types) and _NUMBERS.get(info.types[0], wanted) != wanted


def _number(info: InputInfo) -> int | None:
    """The number of the dtype that a conversion is told to make."""
    given = info.concrete[1] if len(info.concrete) > 1 else None
    text = str(given) if given is not None and not isinstance(given, bool) else ""
    return int(text) if text.isdecimal() else None


def _described(info: InputInfo) -> str:
    names = {number: name.removeprefix("c10::") for name, number in _NUMBERS.items()}
    wanted = _number(info)
    return f"{list(info.dims[0])} from {info.types[0].removeprefix('c10::')} to {names.get(-1 if wanted is None else wanted)}"
