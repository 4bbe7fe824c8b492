"""Advice: rules that look at a recording and say what to change, why, and what it may gain.

To add a rule, write a module here whose `rule(store)` returns findings, and add its name to RULES. `advise` runs them all;
their modules are imported when it is called. `_evidence` has what rules ask of a recording; `missing` tells what they could not
look for, because it was not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module

from ...store.store import EventStore
from ..findings import Finding
from ._device import device_use
from ._evidence import passes
from .missing import Missing, missing

__all__ = ["RULES", "Finding", "Missing", "advise", "missing"]

Rule = Callable[[EventStore], list[Finding]]

# Modules of this package. Findings of equal gain are listed in this order.
RULES = (
    "data_loader_wait",
    "python_between_ops",
    "exposed_communication",
    "device_idle",
    "device_sync",
    "device_copies",
    "small_kernels",
    "host_sync",
    "row_loop",
    "repeated_op",
    "tiny_ops",
    "growing_tensor",
    "conversions",
    "copies",
    "promotion",
    "unused_graph",
    "unused_gradients",
    "single_tensor_optimizer",
    "memory_growth",
    "gc_pauses",
)

# Those about the host's time, which costs nothing while a device is at work anyway.
_OF_HOST = frozenset({"python_between_ops", "host_sync", "row_loop", "repeated_op", "tiny_ops", "single_tensor_optimizer"})
_LEAST = 0.01  # of the recorded time: a smaller gain is not worth a change


def rules() -> Mapping[str, Rule]:
    """All rules by name, imported."""
    return {name: import_module(f"{__name__}.{name}").rule for name in RULES}


def advise(store: EventStore) -> list[Finding]:
    """What all rules find, the largest estimated gain first, without gains below a hundredth of the time."""
    use = device_use(store) if len(store) else None
    skipped = _OF_HOST if use is not None and use.is_limit else frozenset()
    if use is not None:
        skipped |= {"host_sync"}  # device_sync knows how long the device idled
    findings = [finding for name, rule in rules().items() if name not in skipped for finding in rule(store)]
    findings = [finding for finding in findings if finding.share is None or finding.share >= _LEAST]
    if findings and passes(store).count > 1:  # which is what shares are of
        findings = [replace(finding, of_steps=True) for finding in findings]
    return sorted(findings, key=lambda finding: -(finding.gain_ns or 0))
