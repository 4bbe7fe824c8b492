"""Statistics of a recording of any length: what `profile.aggregate()` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, log
from typing import Any

from .._io.terminal import padded, shown, width

# Quantiles come from a histogram whose bins grow by the factor _GROWTH: they are off by at most 2 %.
RELATIVE_ERROR = 0.02
_GROWTH = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
LOG_GROWTH = log(_GROWTH)
# Bins up to a day; what takes longer counts as that long.
BINS = ceil(log(86_400e9) / LOG_GROWTH) + 1

Key = tuple[str, str, str]  # name, shapes, module; "" where it was not recorded


def duration_of(number: int) -> float:
    """Nanoseconds that stand for a bin: both its ends are off by the same relative error."""
    upper: float = _GROWTH**number
    return 2 * upper / (1 + _GROWTH)


@dataclass
class Summary:
    """Durations in nanoseconds: how many, sum, extremes, and the histogram (count by number of the bin) for quantiles."""

    count: int = 0
    sum_ns: int = 0
    min_ns: int = 0
    max_ns: int = 0
    bins: dict[int, int] = field(default_factory=dict)

    def quantile(self, q: float) -> float:
        """The duration in nanoseconds that a part q of all do not exceed, off by at most RELATIVE_ERROR."""
        if not 0 <= q <= 1:
            raise ValueError(f"a quantile is between 0 and 1, not {q}")
        if not self.count:
            raise ValueError("there is no quantile of nothing")
        rank = q * (self.count - 1)
        seen = 0
        for number in sorted(self.bins):
            seen += self.bins[number]
            if seen > rank:
                return min(max(duration_of(number), self.min_ns), self.max_ns)
        return float(self.max_ns)

    @property
    def mean_ns(self) -> float:
        """The mean in nanoseconds; 0 if there is no duration."""
        return self.sum_ns / self.count if self.count else 0.0

    def merged(self, other: Summary) -> Summary:
        """The summary of the durations of both."""
        if not self.count or not other.count:
            return self if self.count else other
        bins = dict(self.bins)
        for number, count in other.bins.items():
            bins[number] = bins.get(number, 0) + count
        return Summary(
            self.count + other.count,
            self.sum_ns + other.sum_ns,
            min(self.min_ns, other.min_ns),
            max(self.max_ns, other.max_ns),
            bins,
        )

    def to_dict(self) -> dict[str, Any]:
        """The summary as a dict of plain values, which JSON takes."""
        return {
            "count": self.count,
            "sum_ns": self.sum_ns,
            "min_ns": self.min_ns,
            "max_ns": self.max_ns,
            "bins": sorted(self.bins.items()),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Summary:
        """The summary that to_dict() was called on."""
        return cls(
            values["count"],
            values["sum_ns"],
            values["min_ns"],
            values["max_ns"],
            {int(number): int(count) for number, count in values["bins"]},
        )


@dataclass
class AggregateRow:
    """All calls of one op, with the same input shapes and in the same module where those were recorded.

    calls: durations of single calls. steps: what the op took in each step in which it ran. self_ns: without what it called.
    """

    name: str
    shapes: str
    module: str
    self_ns: int
    flops: int
    calls: Summary
    steps: Summary

    @property
    def key(self) -> Key:
        """Name, shapes and module, which no other row has."""
        return self.name, self.shapes, self.module

    @property
    def count(self) -> int:
        """How many calls were counted."""
        return self.calls.count

    @property
    def sum_ns(self) -> int:
        """Nanoseconds that all calls took together."""
        return self.calls.sum_ns

    @property
    def min_ns(self) -> int:
        """Nanoseconds of the shortest call."""
        return self.calls.min_ns

    @property
    def max_ns(self) -> int:
        """Nanoseconds of the longest call."""
        return self.calls.max_ns

    @property
    def mean_ns(self) -> float:
        """Nanoseconds of a call on average."""
        return self.calls.mean_ns

    def quantile(self, q: float) -> float:
        """Nanoseconds that a part q of the calls do not exceed, off by at most RELATIVE_ERROR."""
        return self.calls.quantile(q)

    def merged(self, other: AggregateRow) -> AggregateRow:
        """The row of the calls of both, with this one's name, shapes and module."""
        return AggregateRow(
            self.name,
            self.shapes,
            self.module,
            self.self_ns + other.self_ns,
            self.flops + other.flops,
            self.calls.merged(other.calls),
            self.steps.merged(other.steps),
        )


# The columns that a table may be sorted by.
_SORTS: dict[str, Callable[[AggregateRow], float]] = {
    "sum": lambda row: row.sum_ns,
    "self": lambda row: row.self_ns,
    "count": lambda row: row.count,
    "mean": lambda row: row.mean_ns,
    "min": lambda row: row.min_ns,
    "max": lambda row: row.max_ns,
    "p50": lambda row: row.quantile(0.5),
    "p99": lambda row: row.quantile(0.99),
    "flops": lambda row: row.flops,
}
# Name, Shapes and Module are aligned left; the other columns of a table are numbers.
_TEXT_COLUMNS = (0, 11, 12)


class AggregateStats:
    """Statistics by op, and by input shapes and module where those were recorded. Those of several processes can be merged.

    steps: how many steps were counted.
    """

    def __init__(self, rows: Iterable[AggregateRow], steps: int) -> None:
        self.rows = list(rows)
        self.steps = steps

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def count(self) -> int:
        """How many events were counted, of all ops."""
        return sum(row.count for row in self.rows)

    @property
    def self_ns(self) -> int:
        """Nanoseconds that all events took, where no moment of a thread counts twice."""
        return sum(row.self_ns for row in self.rows)

    def by_name(self) -> dict[str, AggregateRow]:
        """Rows of one name merged, whatever their shapes and modules."""
        rows: dict[str, AggregateRow] = {}
        for row in self.rows:
            bare = AggregateRow(row.name, "", "", row.self_ns, row.flops, row.calls, row.steps)
            rows[row.name] = rows[row.name].merged(bare) if row.name in rows else bare
        return rows

    def quantile(self, q: float, name: str) -> float:
        """Nanoseconds that a part q of the calls of an op do not exceed, off by at most RELATIVE_ERROR."""
        rows = self.by_name()
        if name not in rows:
            raise KeyError(f"no event is named {name!r}")
        return rows[name].quantile(q)

    def merge(self, other: AggregateStats) -> AggregateStats:
        """Statistics of both together: of two processes, or of two parts of one job."""
        rows = {row.key: row for row in self.rows}
        for row in other.rows:
            rows[row.key] = rows[row.key].merged(row) if row.key in rows else row
        return AggregateStats(rows.values(), self.steps + other.steps)

    def table(self, sort_by: str = "self", row_limit: int = 100) -> str:
        """The rows as a text table, largest first. sort_by: self, sum, count, mean, min, max, p50, p99 or flops."""
        if sort_by not in _SORTS:
            raise ValueError(f"sort_by is one of {', '.join(_SORTS)}, not {sort_by!r}")
        chosen = sorted(self.rows, key=_SORTS[sort_by], reverse=True)[: None if row_limit < 0 else row_limit]
        titles = ["Name", "Self %", "Self", "Total", "Calls", "Mean", "Min", "p50", "p99", "Max", "Per step"]
        extras = [
            (title, values)
            for title, values in (
                ("Shapes", [shown(row.shapes) for row in chosen]),
                ("Module", [shown(row.module) for row in chosen]),
            )
            if any(values)
        ]
        whole = self.self_ns or 1
        lines = [
            [
                shown(row.name),
                f"{100 * row.self_ns / whole:.2f}%",
                _time(row.self_ns),
                _time(row.sum_ns),
                str(row.count),
                *map(_time, (row.mean_ns, row.min_ns, row.quantile(0.5), row.quantile(0.99), row.max_ns)),
                _time(row.steps.mean_ns),
                *(values[at] for _, values in extras),
            ]
            for at, row in enumerate(chosen)
        ]
        lines.insert(0, titles + [title for title, _ in extras])
        widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
        rule = "  ".join("-" * columns for columns in widths)
        texts = [
            "  ".join(
                padded(cell, columns, left=at in _TEXT_COLUMNS)
                for at, (cell, columns) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        footer = f"{self.count} events in {self.steps} steps; self time total: {_time(self.self_ns)}"
        return "\n".join([rule, texts[0], rule, *texts[1:], rule, footer, ""])

    def to_dict(self) -> dict[str, Any]:
        """The statistics as a dict of plain values, which JSON takes."""
        return {
            "steps": self.steps,
            "relative_error": RELATIVE_ERROR,
            "rows": [
                {
                    "name": row.name,
                    "shapes": row.shapes,
                    "module": row.module,
                    "self_ns": row.self_ns,
                    "flops": row.flops,
                    "calls": row.calls.to_dict(),
                    "steps": row.steps.to_dict(),
                }
                for row in self.rows
            ],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AggregateStats:
        """The statistics that to_dict() was called on, in this process or another."""
        if values["relative_error"] != RELATIVE_ERROR:
            raise ValueError("the statistics count durations in other ranges than this version does")
        return cls(
            [
                AggregateRow(
                    row["name"],
                    row["shapes"],
                    row["module"],
                    row["self_ns"],
                    row["flops"],
                    Summary.from_dict(row["calls"]),
                    Summary.from_dict(row["steps"]),
                )
                for row in values["rows"]
            ],
            values["steps"],
        )

    def __repr__(self) -> str:
        return f"<AggregateStats: {len(self.rows)} rows, {self.count} events, {self.steps} steps>"


def _time(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if ns >= size:
            return f"{ns / size:.3f}{unit}"
    return f"{ns / 1e3:.3f}us"
