"""What `pytest --mtprof` does: records each test, checks its budgets, and shows the figures of all tests at the end."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import re
import statistics
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest
from _pytest.unittest import TestCaseFunction

from .._dispatch import observer
from ._io.files import write_file
from ._io.strict_json import dumps
from ._io.terminal import shown
from .analysis.advice.host_sync import SYNCS
from .analysis.findings import duration
from .analysis.memory.use import memory_use
from .config import _ExperimentalConfig
from .profiler import profile
from .store.store import EventStore

_RUNS_OF_TIMED_TESTS = 7
_LISTED = 20
_PROPERTY = "mtprof"


@dataclass(frozen=True)
class Budget:
    """What the marker of a test allows. Time is in seconds; None is no limit."""

    max_ops: float | None = None
    max_bytes: float | None = None
    max_syncs: float | None = None
    max_time: float | None = None
    runs: int | None = None

    def __post_init__(self) -> None:
        for name, limit in vars(self).items():
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or limit < 0):
                raise ValueError(f"{name} of the marker mtprof is a number that is not negative, not {limit!r}")
        if self.runs is not None and (not isinstance(self.runs, int) or self.runs < 1):
            raise ValueError(f"runs of the marker mtprof is a whole number above 0, not {self.runs!r}")

    @property
    def times(self) -> int:
        """How often the test is run: more than once if its time is limited, since a single time says little."""
        return self.runs or (_RUNS_OF_TIMED_TESTS if self.max_time is not None else 1)

    def broken(self, figures: Mapping[str, Any]) -> list[str]:
        """A sentence for each limit that the figures of a test are over.

        Time is over its limit if the lower end of its interval is: other work on the machine only makes a test slower.
        """
        said = [
            f"{figures[name]:,} {one if figures[name] == 1 else more}, over the limit of {limit:,}"
            for name, limit, one, more in (
                ("ops", self.max_ops, "op", "ops"),
                ("bytes", self.max_bytes, "byte at the peak", "bytes at the peak"),
                ("syncs", self.max_syncs, "value read from a tensor", "values read from tensors"),
            )
            if limit is not None and figures[name] > limit
        ]
        if self.max_time is not None and figures["time_low_ns"] > self.max_time * 1e9:
            low, high = duration(figures["time_low_ns"]), duration(figures["time_high_ns"])
            said.append(
                f"{duration(figures['time_ns'])} ({low} to {high} in {figures['runs']} runs), "
                f"and {duration(self.max_time * 1e9)} is allowed"
            )
        return said


def figures_of(store: EventStore, times_ns: list[int]) -> dict[str, Any]:
    """Ops, bytes at the peak beyond those at the start, and values read; the median of the times with an interval."""
    ops = store.kind == observer.OP
    names = [number for number, name in enumerate(store.names) if name in SYNCS]
    reads = np.isin(store.name, names)
    inner = reads & np.append(reads, False)[store.parent]  # aten::item calls aten::_local_scalar_dense
    peak = sum(use.peak - use.before for use in memory_use(store))
    low, high = median_interval(times_ns)
    return {
        "ops": int(ops.sum()),
        "bytes": peak,
        "syncs": int((reads & ~inner).sum()),
        "time_ns": int(statistics.median(times_ns)),
        "time_low_ns": low,
        "time_high_ns": high,
        "runs": len(times_ns),
    }


def median_interval(values: list[int]) -> tuple[int, int]:
    """Values between which the median lies with a confidence of 95 % or more; with fewer than six, the extremes."""
    ordered = sorted(values)
    count = len(ordered)
    below, chance = 0, 0.5**count
    # By the sign test: the median is below the k-th smallest as often as a coin falls k or more times on one side.
    term = chance
    while 2 * (chance + term * (count - below) / (below + 1)) <= 0.05:
        term *= (count - below) / (below + 1)
        chance += term
        below += 1
    return ordered[below], ordered[count - 1 - below]


class Recorded:
    """The plugin that --mtprof registers."""

    def __init__(self, config: pytest.Config) -> None:
        self._folder: str | None = config.getoption("mtprof_save")
        self._json: str | None = config.getoption("mtprof_json")
        if self._folder is not None:
            os.makedirs(self._folder, exist_ok=True)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Check the markers before any test runs."""
        for item in items:
            _budget(item)

    @staticmethod
    def _options() -> dict[str, Any]:
        return {"profile_memory": True, "experimental_config": _ExperimentalConfig(profile_all_threads=True)}

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
        """Record the test, all but the last run ahead of pytest's own, and fail it if it is over budget."""
        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        times = self._times_ahead(pyfuncitem, lambda: pyfuncitem.obj(**arguments))
        with profile(**self._options()) as prof, _told_run(len(times)):
            began = time.perf_counter_ns()
            result = yield
            times.append(time.perf_counter_ns() - began)
        self._check(pyfuncitem, prof, times)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Have a method of a unittest.TestCase, which pytest does not call itself, record itself."""
        if not isinstance(item, TestCaseFunction):
            return
        method = item.obj

        @functools.wraps(method)
        def recorded(*args: Any, **kwargs: Any) -> None:
            times = self._times_ahead(item, lambda: method(*args, **kwargs))
            with profile(**self._options()) as prof, _told_run(len(times)):
                began = time.perf_counter_ns()
                method(*args, **kwargs)
                times.append(time.perf_counter_ns() - began)
            self._check(item, prof, times)

        if not inspect.iscoroutinefunction(method):
            item.obj = recorded
        elif _budget(item) != Budget():
            pytest.fail("the budget of a coroutine of a unittest.TestCase cannot be checked", pytrace=False)

    def _times_ahead(self, item: pytest.Function, call: Callable[[], object]) -> list[int]:
        """The times of the runs before the last one, if the budget asks for several."""
        times: list[int] = []
        count = _budget(item).times
        if count > 1 and not inspect.iscoroutinefunction(item.obj):
            for number in range(count):
                with profile(**self._options()), _told_run(number):
                    began = time.perf_counter_ns()
                    call()
                    took = time.perf_counter_ns() - began
                if number:  # the first one compiles ops
                    times.append(took)
        return times

    def _check(self, item: pytest.Function, prof: profile, times: list[int]) -> None:
        """Keep the figures of a test, and fail it if they are over its budget."""
        figures = figures_of(prof._recording(), times)
        item.user_properties.append((_PROPERTY, figures))
        broken = _budget(item).broken(figures)
        if broken:
            if self._folder is not None:
                path = os.path.join(self._folder, re.sub(r"[^\w.-]+", "_", item.nodeid)[-150:] + ".mtp")
                prof.save(path)
                broken.append(f"recording: {path}")
            pytest.fail("over budget: " + "; ".join(broken), pytrace=False)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the figures of the tests that took longest, and write those of all."""
        rows = []
        for reports in terminalreporter.stats.values():
            for report in reports:
                figures = dict(getattr(report, "user_properties", ())).get(_PROPERTY)
                if figures is not None and getattr(report, "when", "") == "call":
                    rows.append({"test": report.nodeid, "outcome": report.outcome, **figures})
        rows.sort(key=lambda row: -row["time_ns"])
        if self._json is not None:
            write_file(self._json, [dumps({"tests": rows}, indent=1).encode()])
        if not rows:
            return
        terminalreporter.section("mtprof")
        terminalreporter.write_line(f"{'time':>9} {'runs':>4} {'ops':>9} {'peak':>13} {'reads':>6}  test")
        for row in rows[:_LISTED]:
            terminalreporter.write_line(
                f"{duration(row['time_ns']):>9} {row['runs']:>4} {row['ops']:>9,} {row['bytes']:>11,} B {row['syncs']:>6}  "
                f"{shown(row['test'])}"
            )
        if len(rows) > _LISTED:
            terminalreporter.write_line(f"... and {len(rows) - _LISTED} more tests; --mtprof-json writes all")


@contextmanager
def _told_run(before: int) -> Generator[None, None, None]:
    """Have an error of a test that ran before say so: it may come from what an earlier run left."""
    try:
        yield
    except Exception as error:
        if before:
            error.add_note("mtprof: the test ran before, with the same fixtures, since a limit of time needs several runs")
        raise


def _budget(item: pytest.Item) -> Budget:
    marker = item.get_closest_marker("mtprof")
    if marker is None:
        return Budget()
    limits = [field.name for field in fields(Budget)]
    for name in marker.kwargs:
        if name not in limits:
            near = difflib.get_close_matches(name, limits, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(limits)}"
            raise pytest.UsageError(f"{item.nodeid}: the marker mtprof has no {name}: {hint}")
    try:
        return Budget(*marker.args, **marker.kwargs)
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from None
