"""A worker process: fetches batches by index, sends them back, and reports errors as they were."""

from __future__ import annotations

import dataclasses
import os
import queue
import random
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import _surface as torch
from ....multiprocessing.reductions import init_reductions
from .fetch import make_fetcher

# How often a worker looks whether its parent is still there, in seconds.
MP_STATUS_CHECK_INTERVAL = 5.0


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """What `get_worker_info()` tells inside a worker."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


class Failure:
    """An exception on its way from a worker: its type and the worker's traceback."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.kind = type(error)
        self.text = f"Caught {self.kind.__name__} {where}.\nOriginal {traceback.format_exc()}"

    def raise_again(self) -> None:
        """Raise the same type here; where that cannot be built from a message, a RuntimeError."""
        try:
            error = self.kind(self.text)
        except Exception:
            raise RuntimeError(self.text) from None
        raise error


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four numbers of 32 bits that seed NumPy's generator in a worker: no two workers share them."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(n) for n in np.random.SeedSequence(entropy).generate_state(4)]


class StreamEnd:
    """A worker's share of an iterable dataset has run out."""


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process: which one this is. Elsewhere None."""
    return _worker_info


def run(
    worker: int,
    count: int,
    seed: int,
    dataset: Any,
    streams: bool,
    collate: Callable[..., Any],
    batched: bool,
    drop_last: bool,
    init: Callable[[int], None] | None,
    tasks: Any,
    results: Any,
) -> None:
    """The worker's loop: take (number, indices, recording), put (number, batch, what was recorded); None ends it.

    recording: what observer.for_workers() gave the parent.
    """
    global _worker_info  # noqa: PLW0603  of the worker process
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(_generate_state(seed - worker, worker))
    init_reductions()
    parent = os.getppid()
    _worker_info = WorkerInfo(worker, count, seed, dataset)
    failure = None
    try:
        if init is not None:
            init(worker)
        fetch = make_fetcher(dataset, streams, batched, collate, drop_last)
    except Exception as error:
        failure = Failure(error, f"in DataLoader worker process {worker}")
    while True:
        try:
            task = tasks.get(timeout=MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            if os.getppid() != parent:  # the loader is gone
                return
            continue
        if task is None:
            results.cancel_join_thread()  # what was not fetched is not wanted
            results.close()
            return
        number, indices, recording = task
        if failure is not None:
            results.put((number, failure, None))
            continue
        if indices == "resume":  # a new epoch of a persistent worker
            fetch = make_fetcher(dataset, streams, batched, collate, drop_last)
            continue
        if recording is not None:
            recording.begin(worker)
        result: Any
        try:
            result = fetch(indices)
        except StopIteration:
            result = StreamEnd()
        except Exception as error:
            result = Failure(error, f"in DataLoader worker process {worker}")
        results.put((number, result, recording.end() if recording is not None else None))
