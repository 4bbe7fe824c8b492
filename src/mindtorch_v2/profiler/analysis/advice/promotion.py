"""One float64 tensor makes a float32 computation double."""

from __future__ import annotations

import numpy as np

from ...._dispatch import observer
from ...store.store import EventStore
from ..findings import Finding, duration
from ..places import places
from ._evidence import share, top_names

_WIDE = {"double": ("float", "c10::Half", "c10::BFloat16"), "float": ("c10::Half", "c10::BFloat16")}


def rule(store: EventStore) -> list[Finding]:
    """Fires when ops are given tensors of different floating types; needs record_shapes."""
    mixed = [number for number, info in enumerate(store.input_infos) if _promotes(info.types, info.dims)]
    if not mixed:
        return []
    explicit = [n for n, name in enumerate(store.names) if name in ("aten::copy_", "aten::_to_copy", "aten::to")]
    rows = np.flatnonzero(np.isin(store.shapes, mixed) & (store.kind == observer.OP) & ~np.isin(store.name, explicit))
    if not len(rows):
        return []
    spent = int(store.self_ns[rows].sum())
    seen = places(store, rows)
    gain = spent // 2
    return [
        Finding(
            "promotion",
            "Ops mix floating types, so they compute in the wider one",
            "A float64 array (NumPy's default) or constant among float32 tensors makes the result, and all that follows, "
            "float64: twice the memory and about half the speed. Convert it once with .float() where it is made.",
            tuple(f"{name}: {count:,} calls, {duration(ns)}" for name, count, ns in top_names(store, rows)),
            seen[0][0] if seen else None,
            gain,
            share(gain, store),
        )
    ]


def _promotes(types: tuple[str, ...], dims: tuple[object, ...]) -> bool:
    """Whether the input tensors have a wider and a narrower floating type; a 0-d tensor does not widen others."""
    pairs = zip(types, dims, strict=False)
    real = {kind for kind, dim in pairs if isinstance(dim, tuple) and dim and not isinstance(dim[0], tuple)}
    return any(wide in real and any(narrow in real for narrow in narrows) for wide, narrows in _WIDE.items())
