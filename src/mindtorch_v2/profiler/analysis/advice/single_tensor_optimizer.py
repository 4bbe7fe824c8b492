"""The optimizer updates one parameter at a time."""

from __future__ import annotations

import numpy as np

from ...._dispatch import observer
from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ._evidence import call_cost_ns, in_closures, outermost, rows_named, share, under

_FEWEST = 16  # ops in one optimizer step
_FEWEST_EACH = 8  # of each kind: for a few parameters it is not worth a change
_LEAST = 0.01  # of the recorded time


def rule(store: EventStore) -> list[Finding]:
    """Fires when an optimizer step runs ops for each of many parameters and none of them is a _foreach or _fused one."""
    findings = []
    by_name: dict[int, list[int]] = {}
    for row in outermost(store, rows_named(store, lambda name: name.startswith("Optimizer.step#"))).tolist():
        by_name.setdefault(int(store.name[row]), []).append(row)
    grouped = [n for n, name in enumerate(store.names) if name.startswith(("aten::_foreach", "aten::_fused"))]
    for name, rows in by_name.items():
        tops = np.array(rows, np.intp)
        updating = under(store, tops) & ~in_closures(store)
        inside = np.flatnonzero(updating & (store.kind == observer.OP))
        calls = len(inside) / len(tops)
        if calls < _FEWEST or np.isin(store.name[inside], grouped).any():
            continue
        # One call per kind of op instead of one per parameter.
        kinds = len(np.unique(store.name[inside]))
        if calls < _FEWEST_EACH * kinds:
            continue
        gain = int((calls - kinds) * len(tops) * call_cost_ns(store))
        part = share(gain, store)
        if part is None or part < _LEAST:
            continue
        optimizer = store.names[name].removeprefix("Optimizer.step#").removesuffix(".step")
        seen = places(store, tops)
        update_ns = int(store.self_ns[updating].sum() + store.self_ns[tops].sum())
        findings.append(
            Finding(
                "single_tensor_optimizer",
                f"{optimizer} updates one parameter at a time",
                f"{optimizer}(..., foreach=True) does one op for all parameters where this does one for each.",
                (f"{calls:.0f} ops of {kinds} kinds in a step, which takes {duration(update_ns / len(tops))}",),
                seen[0][0] if seen else None,
                gain,
                part,
            )
        )
    return findings
