"""Advice: rules that look at a recording and say what to change, why, and what it may gain.

To add a rule, write a module here whose `rule(store)` returns findings, and add its name to RULES. `advise` runs them all;
their modules are imported when it is called. `_evidence` has what rules ask of a recording.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from ...store.store import EventStore
from ..findings import Finding

__all__ = ["RULES", "Finding", "advise"]

Rule = Callable[[EventStore], list[Finding]]

# Modules of this package. Findings of equal gain are listed in this order.
RULES = (
    "data_loader_wait",
    "host_sync",
    "tiny_ops",
    "copies",
    "promotion",
    "unused_graph",
    "unused_gradients",
    "single_tensor_optimizer",
    "memory_growth",
    "gc_pauses",
)


def rules() -> Mapping[str, Rule]:
    """All rules by name, imported."""
    return {name: import_module(f"{__name__}.{name}").rule for name in RULES}


def advise(store: EventStore) -> list[Finding]:
    """What all rules find, the largest estimated gain first."""
    findings = [finding for rule in rules().values() for finding in rule(store)]
    return sorted(findings, key=lambda finding: -(finding.gain_ns or 0))
