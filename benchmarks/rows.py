"""Row registry: the rows of each group, and the names, units and kinds of the values they report."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

GROUPS = ["profiler", "dispatch", "ops", "train", "models"]
THREADED = ("train", "models")  # the groups that are run for each thread count
SIZES = [10_000, 100_000, 1_000_000]
ROUNDS_AT = {100_000: 2, 1_000_000: 1}
_ROWS: dict[str, list[Row]] = {g: [] for g in GROUPS}


@dataclass
class Row:
    """One function `run(host, emit)`; it reports each of `outputs` through emit(name, value)."""

    id: str
    run: object
    outputs: list  # (name, unit, kind); kind is "", "diff" (a difference of two timings) or "info" (not scored)
    fresh: bool = False  # a new process for every sample
    sized: bool = False  # repeated for each event count
    cap: float = 60.0  # seconds without a reported value before the sample is given up


def row(group, outputs, **options):
    """Register the decorated function; outputs is one 'name unit [kind]' line or a list of them."""
    parsed = []
    for line in outputs if isinstance(outputs, list) else [outputs]:
        name, unit, *rest = line.split()
        parsed.append((name, unit, rest[0] if rest else ""))

    def register(fn):
        _ROWS[group].append(Row(f"{group}:{parsed[0][0]}", fn, parsed, **options))
        return fn

    return register


def load(group):
    if not _ROWS[group]:
        importlib.import_module(f"rows_{group}")
    return _ROWS[group]


def find(row_id):
    return next(r for r in load(row_id.split(":")[0]) if r.id == row_id)


def short(n):
    for unit, scale in (("M", 10**6), ("k", 10**3)):
        if n >= scale and n % scale == 0:
            return f"{n // scale}{unit}"
    return str(n)
