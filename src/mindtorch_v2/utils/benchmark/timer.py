"""Timer."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from time import perf_counter as timer
from typing import Any

from .results import Measurement, TaskSpec, set_torch_threads


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
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._timer = timeit.Timer(stmt, setup, timer=timer, globals=dict(globals or {}))

    def _run(self, number: int) -> float:
        with set_torch_threads(self._task_spec.num_threads):
            return self._timer.timeit(number)

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

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
