"""The ceilings of a machine: how fast it copies memory and multiplies matrices, measured here and kept in a file."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter_ns, time
from typing import Any, NamedTuple

import numpy as np

from .._io.files import write_file
from .._io.strict_json import dumps

_VARIABLE = "MTPROF_CEILINGS"
_COPY_BYTES = 1 << 28  # far more than a cache holds
_CACHED_BYTES = 1 << 18  # fits into the cache of one core
_SIDE = 1024
_LEAST_NS = 60_000_000  # of repeated measurements, in each round
_ROUNDS = 5  # through all ceilings: what holds a machine up for a moment does not hold up all rounds of one


@dataclass(frozen=True)
class Ceilings:
    """What a machine can do at most: bytes and FLOPs per second. A copied byte counts twice, as read and as written."""

    machine: str
    measured: float  # seconds since 1970
    copy_bytes_s: float
    cached_bytes_s: float
    float32_flops_s: float
    float64_flops_s: float
    threads: str  # of the matrix products, as the environment asks for; "" if it does not

    def attainable(self, intensity: float) -> float:
        """FLOPs per second at so many FLOPs per byte: what memory can feed, at most what can be computed."""
        return min(self.float32_flops_s, intensity * self.copy_bytes_s)

    @property
    def ridge(self) -> float:
        """FLOPs per byte from which on computing, not memory, is the limit."""
        return self.float32_flops_s / self.copy_bytes_s

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values, for JSON."""
        return asdict(self)


def default_path() -> Path:
    """Where `mtprof ceilings` keeps them: $MTPROF_CEILINGS, else the user's cache folder."""
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache) / "mindtorch_v2" / "ceilings.json"


def measure(clock: Callable[[], int] = perf_counter_ns, least_ns: int = _LEAST_NS) -> Ceilings:
    """Measure this machine, each ceiling by the fastest run of several rounds that take `least_ns` or longer."""
    threads = next(filter(None, map(os.environ.get, ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"))), "")
    works = (_copies(_COPY_BYTES), _copies(_CACHED_BYTES), _products(np.float32), _products(np.float64))
    rounds = [[work.units / _fastest(work.run, clock, least_ns) for work in works] for _ in range(_ROUNDS)]
    copied, cached, float32, float64 = map(max, zip(*rounds, strict=True))
    return Ceilings(machine_name(), time(), copied, cached, float32, float64, threads)


def machine_name() -> str:
    """What tells this machine from another: its name, processor and number of processors."""
    return f"{platform.node()}, {platform.machine()}, {os.cpu_count()} processors"


def save(ceilings: Ceilings, path: str | os.PathLike[str]) -> None:
    """Write them as JSON; folders are made."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    write_file(path, [dumps(ceilings.to_dict(), indent=1).encode() + b"\n"])


def load(path: str | os.PathLike[str] | None = None) -> Ceilings | None:
    """Read what `save` wrote; None if there is no such file. ValueError: it is something else."""
    path = default_path() if path is None else path
    try:
        with open(path, encoding="utf-8") as stream:
            content = json.load(stream)
        found = Ceilings(**content)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is no file of `mtprof ceilings`: {error}") from None
    speeds = (found.copy_bytes_s, found.cached_bytes_s, found.float32_flops_s, found.float64_flops_s)
    if not all(isinstance(speed, int | float) and 0 < speed < math.inf for speed in speeds):
        raise ValueError(f"{path} is no file of `mtprof ceilings`: its speeds are not numbers above 0")
    return found


class _Work(NamedTuple):
    """Something to measure, and how many bytes or FLOPs one run of it is."""

    run: Callable[[], Any]
    units: int


def _copies(size: int) -> _Work:
    source, target = np.ones(size // 8), np.zeros(size // 8)
    return _Work(lambda: np.copyto(target, source), 2 * size)


def _products(kind: type[np.floating[Any]]) -> _Work:
    random = np.random.default_rng(0)
    a, b = (random.random((_SIDE, _SIDE)).astype(kind) for _ in range(2))
    out = np.empty_like(a)
    return _Work(lambda: np.matmul(a, b, out=out), 2 * _SIDE**3)


def _fastest(run: Callable[[], Any], clock: Callable[[], int], least_ns: int) -> float:
    """Seconds of the fastest run, after one that does not count."""
    run()
    best, spent, runs = math.inf, 0, 0
    while spent < least_ns or runs < 3:
        start = clock()
        run()
        taken = max(1, clock() - start)
        best, spent, runs = min(best, taken), spent + taken, runs + 1
    return best / 1e9
