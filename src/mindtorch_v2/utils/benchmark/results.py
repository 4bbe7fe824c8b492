"""What was timed, and the times: TaskSpec, Measurement, and how their numbers are shown."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..._core.blas import get_num_threads, set_num_threads
from ..._core.restoring import Actions, restoring

# The quartiles of a sound measurement lie within a tenth of the median; a quarter is a disturbed machine.
_WIDE, _VERY_WIDE = 0.1, 0.25
_MOST_FIGURES = 4
_SHORTEST_INTERVAL = 25e-9  # seconds: of no measurement more is known
_UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1, "second")}


@dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is timed: the statement, its set-up, and the names that tables show."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, with the sub-label behind it."""
        if self.label is None and "\n" in self.stmt:
            behind = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{behind}\n{textwrap.indent(self.stmt, '  ')}"
        behind = f": {self.sub_label}" if self.sub_label else ""
        return (self.stmt if self.label is None else self.label) + behind

    def setup_str(self) -> str:
        """The set-up as `summarize` shows it; nothing for none."""
        if self.setup == "pass" or not self.setup:
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and set-up, a line each."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join([f"{part}\n" if "\n" in part else part for part in parts if part])


@dataclass(init=True, repr=False)
class Measurement:
    """Times of one statement, in seconds: each of `raw_times` is of `number_per_run` executions."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "task_spec":  # asked for by pickle and copy, before there is one
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        """Seconds per execution of the statement, one value per run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean of `times`, in seconds."""
        return statistics.mean(self.times)

    @property
    def median(self) -> float:
        """The median of `times`, in seconds."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        first, third = self._quartiles()
        return third - first

    @property
    def significant_figures(self) -> int:
        """How many digits of the median can be relied on, one to four, by the spread of the middle half of the times."""
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        error = 1.645 * statistics.pstdev(middle) / math.sqrt(len(middle))  # 90 % of means of normal numbers lie within
        figures = math.floor(math.log10(self.median / max(error, _SHORTEST_INTERVAL)))
        return min(max(figures, 1), _MOST_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread so far that something else must have run."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _WIDE) -> bool:
        """Whether the quartiles lie within a share of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """That of the task."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """Where it was measured."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The sub-label, or the statement."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all that have it."""
        by_task: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            by_task.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(1, times, task) for task, times in by_task.items()]

    def _quartiles(self) -> tuple[float, float]:
        times = self.times
        if len(times) < 2:
            return times[0], times[0]
        first, _, third = statistics.quantiles(times, n=4, method="inclusive")
        return first, third

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        runs, executions, threads = len(self.raw_times), self.number_per_run, self.task_spec.num_threads
        lines = [f"<{__name__}.Measurement object>", self.task_spec.summarize()]
        if runs > 1:
            first, third = (each / scale for each in self._quartiles())
            lines.append(f"  Median: {self.median / scale:.2f} {unit}")
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({first:.2f} to {third:.2f})")
        else:
            lines.append(f"  {self.median / scale:.2f} {unit}")
        each = " per measurement" if runs > 1 else ""
        counts = f"{_counted(runs, 'measurement')}, {_counted(executions, 'run')}{each}, {_counted(threads, 'thread')}"
        lines.append(f"  {counts}")
        if self.has_warnings:
            share = self.iqr / self.median
            cause = (
                "suggests significant environmental influence" if share > _VERY_WIDE else "could indicate system fluctuation"
            )
            lines.append(f"  WARNING: Interquartile range is {share:.1%} of the median measurement.")
            lines.append(f"           This {cause}.")
        return "\n".join(lines)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time of some seconds is shown, and its length in seconds."""
    # By thousands of seconds, so that what is on the edge is shown in the larger unit.
    power = int(math.log10(t) // 3) if t > 0 else 0
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(power, "s")
    return unit, _UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """The name of a unit: "nanosecond" for "ns"."""
    return _UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """A number rounded to so many significant figures."""
    if n != int(n) or n < 1:
        raise ValueError(f"trim_sigfig(): n must be a positive integer, got {n}")
    return float(f"{x:.{int(n) - 1}e}")


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements, each once, in the order in which they come first."""
    return list(dict.fromkeys(elements))


@restoring
def set_torch_threads(undo: Actions, n: int) -> None:
    """Inside of the block, ops run on so many threads."""
    undo.append(partial(set_num_threads, get_num_threads()))
    set_num_threads(n)
