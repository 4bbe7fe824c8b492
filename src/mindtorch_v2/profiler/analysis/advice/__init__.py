"""Advice: rules that look at a recording and say what to change, why, and what it may gain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from ...store.store import EventStore
from ..findings import Finding

__all__ = ["RULES", "Finding", "advise"]

Rule = Callable[[EventStore], list[Finding]]

# Each is a module of this package whose `rule(store)` returns findings.
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
    """All rules by name."""
    return {name: import_module(f"{__name__}.{name}").rule for name in RULES}


def advise(store: EventStore) -> list[Finding]:
    """What all rules find, the largest estimated gain first."""
    found = [finding for rule in rules().values() for finding in rule(store)]
    return sorted(found, key=lambda finding: -(finding.gain_ns or 0))
