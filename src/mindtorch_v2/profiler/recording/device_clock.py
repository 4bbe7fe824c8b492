"""From other clocks to the recording's: a device's, and the wall's, compared again and again since clocks drift."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer

AGAIN_NS = 2_000_000_000  # after that long the clocks are compared again


class DeviceClock:
    """The clocks of the devices. `compare(index)` while recording, then `host_time(index, times)`."""

    def __init__(self, clock: Callable[[], int], timing: observer.DeviceTiming) -> None:
        self._clock, self._timing = clock, timing
        self._offsets: dict[int, list[tuple[int, int]]] = {}  # of each device: its time, and what to add to it
        self._due: dict[int, int] = {}

    def is_due(self, index: int, now: int) -> bool:
        """Whether the clocks should be compared."""
        return now >= self._due.get(index, 0)

    def compare(self, index: int, *, patient: bool = False) -> None:
        """Compare the clocks. A device that does not answer at once is asked again later; a patient caller waits, and is told
        by an exception if the device fails.
        """
        try:
            offset = self._timing.host_offset_ns(self._clock, index, patient)
        except RuntimeError:  # the program is told by its own calls
            if patient:
                raise
            offset = None
        now = self._clock()
        if offset is None:
            self._due[index] = now + AGAIN_NS // 10
            return
        self._offsets.setdefault(index, []).append((now - offset, offset))
        self._due[index] = now + AGAIN_NS

    def host_time(self, index: int, device_time: int) -> int:
        """A time of the device on the recording's clock; the offset is the one between the nearest two comparisons."""
        times, offsets = zip(*self._offsets[index], strict=True)
        origin, first = times[0], offsets[0]  # differences, which a double holds exactly
        drift = np.interp(device_time - origin, np.subtract(times, origin), np.subtract(offsets, first))
        return int(device_time + first + round(float(drift)))


class WallClock:
    """`time.time_ns()` beside the recording's clock: compared when made and by `compare()`."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._pairs: list[tuple[int, int]] = []
        self.compare()

    def compare(self) -> None:
        """Note both clocks, by the quickest of several readings."""
        readings = []
        for _ in range(5):
            start, wall, end = self._clock(), time.time_ns(), self._clock()
            readings.append((end - start, wall, (start + end) // 2))
        _, wall, here = min(readings)
        self._pairs.append((wall, here - wall))

    def wall_time(self, here: int) -> int:
        """A time of the recording's clock on the wall's, by the last comparison."""
        return here - self._pairs[-1][1]

    def host_times(self, wall: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of the wall clock on the recording's."""
        times, offsets = (np.array(column, np.int64) for column in zip(*self._pairs, strict=True))
        drift: Any = np.interp(wall - times[0], times - times[0], offsets - offsets[0])
        return np.asarray(wall + offsets[0] + np.round(drift).astype(np.int64))
