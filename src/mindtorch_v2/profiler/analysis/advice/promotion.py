"""One float64 tensor makes a float32 computation double."""

from __future__ import annotations

import numpy as np

from ...._dispatch import observer
from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ._evidence import Rows, in_own_spans, passes, share, top_names, typical_ns, usual_ns

_WIDE = {"double": ("float", "c10::Half", "c10::BFloat16"), "float": ("c10::Half", "c10::BFloat16")}
_ADVICE = {
    "double": "A float64 array (NumPy's default) or constant among narrower tensors makes the result, and all that follows, "
    "float64: at least twice the memory, and half the speed or less. Convert it once with .float() where it is made.",
    "float": "A float32 tensor among tensors of half precision makes the result, and all that follows, float32: twice the "
    "memory. Convert it once where it is made, or let autocast choose.",
}


def rule(store: EventStore) -> list[Finding]:
    """Fires when ops are given tensors of different floating types; needs record_shapes."""
    widest = [_promotes(info.types, info.dims) for info in store.input_infos]
    mixed = [number for number, wide in enumerate(widest) if wide]
    if not mixed:
        return []
    # A copy converts because it was told to, and what an op of another library does with two types is not known.
    explicit = ("aten::copy_", "aten::_to_copy", "aten::to")
    promoting = [n for n, name in enumerate(store.names) if name.startswith("aten::") and name not in explicit]
    rows = np.flatnonzero(np.isin(store.shapes, mixed) & (store.kind == observer.OP) & np.isin(store.name, promoting))
    rows = rows[~in_own_spans(store)[rows] & (passes(store).of_row[rows] >= 0)]
    if not len(rows):
        return []
    wide = "double" if any(widest[number] == "double" for number in store.shapes[rows].tolist()) else "float"
    rows = rows[[widest[number] == wide for number in store.shapes[rows].tolist()]]
    spent = _spent(store, rows)
    seen = places(store, rows)
    gain = spent // 2
    return [
        Finding(
            "promotion",
            "Ops mix floating types, so they compute in the wider one",
            _ADVICE[wide],
            tuple(f"{name}: {count:,} calls, {duration(ns)}" for name, count, ns in top_names(store, rows)),
            seen[0][0] if seen else None,
            gain,
            share(gain, store),
        )
    ]


def widened(store: EventStore) -> set[str]:
    """The floating types to which ops widened others."""
    found = rule(store)
    return {_promotes(info.types, info.dims) for info in store.input_infos} - {""} if found else set()


def _spent(store: EventStore, rows: Rows) -> int:
    """What the ops took, on the device if that is where they ran."""
    return typical_ns(store, rows, np.maximum(usual_ns(store)[0][rows], store.self_device_ns[rows]))


def _promotes(types: tuple[str, ...], dims: tuple[object, ...]) -> str:
    """The wider one if the input tensors have two floating types, else ""; a 0-d tensor does not widen others."""
    pairs = zip(types, dims, strict=False)
    real = {kind for kind, dim in pairs if isinstance(dim, tuple) and dim and not isinstance(dim[0], tuple)}
    return next((wide for wide, narrows in _WIDE.items() if wide in real and any(narrow in real for narrow in narrows)), "")
