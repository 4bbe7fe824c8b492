"""Timer and Measurement."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable
from time import perf_counter as timer
from typing import Any

from ..._core.blas import get_num_threads, set_num_threads

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


class Measurement:
    """Times of one statement, in seconds per run."""

    def __init__(
        self,
        number_per_run: int,
        raw_times: list[float],
        stmt: str,
        label: str | None,
        sub_label: str | None,
        description: str | None,
        num_threads: int,
    ) -> None:
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.stmt, self.label, self.sub_label, self.description = stmt, label, sub_label, description
        self.num_threads = num_threads

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
        if len(self.times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    @property
    def title(self) -> str:
        """The label, or the statement, with the sub-label behind it."""
        name = self.label or self.stmt
        return f"{name}: {self.sub_label}" if self.sub_label else name

    def __repr__(self) -> str:
        def shown(seconds: float) -> str:
            scale, unit = next(((s, u) for s, u in _UNITS if seconds >= s), _UNITS[-1])
            return f"{seconds / scale:.2f} {unit}"

        lines = [f"<{__name__}.Measurement object>", self.title]
        if self.description:
            lines.append(self.description)
        if len(self.times) > 1:
            lines += [f"  Median: {shown(self.median)}", f"  IQR:    {shown(self.iqr)}"]
        else:
            lines.append(f"  {shown(self.median)}")
        runs = f"{self.number_per_run} run{'s' if self.number_per_run != 1 else ''}"
        threads = f"{self.num_threads} thread{'s' if self.num_threads != 1 else ''}"
        lines.append(f"  {len(self.times)} measurement{'s' if len(self.times) != 1 else ''}, {runs} per measurement, {threads}")
        return "\n".join(lines)


class Timer:
    """As timeit.Timer, with a warm-up, a number of threads, and runs that are long enough to be measured."""

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if str(language).lower() not in ("python", "py", "language.python") or global_setup:
            raise NotImplementedError("torch.utils.benchmark.Timer: only Python statements are timed")
        self._stmt, self._label, self._sub_label, self._description = stmt, label, sub_label, description
        self._num_threads = num_threads
        self._timer = timeit.Timer(stmt, setup, timer=timer, globals=dict(globals or {}))

    def _run(self, number: int) -> float:
        before = get_num_threads()
        try:
            set_num_threads(self._num_threads)
            return self._timer.timeit(number)
        finally:
            set_num_threads(before)

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._stmt, self._label, self._sub_label, self._description, self._num_threads)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement of `number` runs."""
        self._run(max(number // 100, 2))
        return self._measurement(number, [self._run(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> Measurement:
        """Several measurements: not in torch either."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, shortest: float) -> int:
        """How many runs it takes for a measurement to be much longer than reading the clock."""
        number = 1
        while True:
            taken = self._run(number)
            if taken >= shortest or number >= 10**9:
                return number
            number *= 10 if taken < shortest / 10 else 2

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2) -> Measurement:
        """As many measurements of equal length as fit into `min_run_time` seconds."""
        number = self._block(min_run_time / 1000)
        times: list[float] = []
        while not times or sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measurement(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measure until the quartiles lie within `threshold` of the median, or the time is over."""
        number = self._block(0.001)
        times: list[float] = []
        while True:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
            measurement = self._measurement(number, times)
            total = sum(times)
            if total >= max_run_time or (
                total >= min_run_time and len(times) > 3 and measurement.iqr / measurement.median < threshold
            ):
                return measurement
