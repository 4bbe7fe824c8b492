"""Splits the work of large kernels into blocks, which the threads of a pool and the calling one take in turn.

Each block is worked on by a single thread, and where results depend on the blocks at all, these depend on shapes alone, never
on the number of threads: results are the same to the last bit for every number. NumPy releases the GIL while it computes. A
block should take some 50 us or more: to wake a thread costs about as much.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np

from . import numpy_buffer
from .blas import get_num_threads, one_blas_thread

Task = Callable[[int], None]

# Elements of a block. Between two calls of NumPy a thread needs the GIL, for which it waits some 30 us where another one has
# it: with shorter calls that happens too often, longer ones leave the cache. A block that few passes go over takes too little
# time to share.
_SHORTEST, _LONGEST = 1 << 17, 1 << 18
_BLOCKS = 4
_FEW_PASSES = 3


class _Region:
    """The tasks of one call of `run`: numbers below `count`, which threads take until none is left.

    The calling thread takes them from the first on, the pool's from the last: so the same part of a batch is worked on by the
    same core from one op to the next, and mostly lies in its cache.
    """

    def __init__(self, count: int, task: Task) -> None:
        self._task, self._end = task, count
        self._next = self._active = 0
        self._error: BaseException | None = None
        self._lock, self._idle = threading.Lock(), threading.Lock()

    def _take(self, last: bool) -> int:
        """The first or last number that is left, or -1."""
        with self._lock:
            if self._next >= self._end:
                return -1
            if last:
                self._end -= 1
                return self._end
            self._next += 1
            return self._next - 1

    def take_part(self) -> None:
        """Work on tasks until none is left, on a thread of the pool; the first error is kept for `close`."""
        with self._lock:
            if self._next >= self._end:
                return
            self._active += 1
            if self._active == 1:
                self._idle.acquire(blocking=False)
        try:
            self.work(last=True)
        except BaseException as error:
            self._error = error
        finally:
            with self._lock:
                if self._error is not None:
                    self._end = 0
                self._active -= 1
                if not self._active:
                    self._idle.release()

    def work(self, *, last: bool = False) -> None:
        """Work on tasks until none is left."""
        number = self._take(last)
        while number >= 0:
            self._task(number)
            number = self._take(last)

    def close(self) -> None:
        """Hand out no more tasks, wait for those that run, and raise what they raised.

        An interrupt of the waiting is raised after it: until then tasks write to arrays that their owner may give back.
        """
        error, is_idle = None, False
        while not is_idle:
            try:
                with self._lock:
                    self._end = 0
                with self._idle:
                    is_idle = True
            except BaseException as interrupt:
                error = interrupt
        error = error or self._error
        if error is not None:
            raise error


class _Pool:
    """Threads that wait for regions. `threading` does not know them, so that neither programs nor recordings see them."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Forget all threads, in a forked process that does not have them."""
        self._regions: SimpleQueue[_Region | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._ended: list[_thread.LockType] = []

    def help(self, region: _Region, threads: int) -> None:
        """Have up to so many threads take part in a region."""
        with self._lock:
            while len(self._ended) < threads:
                ended = _thread.allocate_lock()
                ended.acquire()
                try:
                    _thread.start_new_thread(self._work, (ended,))
                except RuntimeError:  # no more threads, or the interpreter is about to end: the others do the work
                    break
                self._ended.append(ended)
        for _ in range(threads):
            self._regions.put(region)

    def _work(self, ended: _thread.LockType) -> None:
        _inside.value = True
        np.seterr(all="ignore")  # as the calling thread, where floating-point errors are silent
        numpy_buffer.shorten()
        regions = self._regions
        try:
            while (region := regions.get()) is not None:
                region.take_part()
                del region  # or the arrays of the last task would stay as long as the thread waits
        finally:
            ended.release()

    def stop(self) -> None:
        """End the threads, after the tasks that they work on."""
        with self._lock:
            ended, self._ended = self._ended, []
            for _ in ended:
                self._regions.put(None)
            for lock in ended:
                lock.acquire()


class _Inside(threading.local):
    """Whether the calling thread works on a task: what that splits again, it works on alone."""

    value = False


_inside = _Inside()
_pool = _Pool()

if hasattr(os, "register_at_fork"):
    # Stopped, not only forgotten: to fork with threads running is deprecated since Python 3.12.
    os.register_at_fork(before=_pool.stop, after_in_child=_pool.renew)


def is_shared() -> bool:
    """Whether several threads would take part in what the calling thread runs."""
    return get_num_threads() > 1 and not _inside.value


def elements_of_block(size: int, passes: int = 8) -> int:
    """Into blocks of how many elements to split so many that NumPy goes over several times, for threads to share."""
    return min(_LONGEST, max(_SHORTEST if passes > _FEW_PASSES else _LONGEST, -(-size // _BLOCKS)))


def run(count: int, task: Task) -> None:
    """Call `task` with every number below `count`, each once, on up to `get_num_threads()` threads.

    Tasks must not depend on each other; what one raises is raised, when none runs any more. BLAS uses a single thread
    meanwhile, so that a task may call it.
    """
    if not is_shared():
        for number in range(count):
            task(number)
        return
    with one_blas_thread():
        if count == 1:
            task(0)
            return
        region = _Region(count, task)
        _inside.value = True
        try:
            _pool.help(region, min(get_num_threads(), count) - 1)
            region.work()
        finally:
            _inside.value = False
            region.close()


def both(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
    """The results of two functions that take about the same time and split their work. Two threads gain by taking one each."""
    if not is_shared() or get_num_threads() > 2:
        return first(), second()
    functions, results = (first, second), [None, None]

    def task(number: int) -> None:
        results[number] = functions[number]()

    run(2, task)
    return results[0], results[1]


def blocks(length: int, step: int, work: Callable[[slice], None]) -> None:
    """Call `work` with slices of up to `step` that together are `slice(0, length)`, as `run` does."""
    run(-(-length // step), lambda number: work(slice(number * step, min(number * step + step, length))))


def each_block(length: int, step: int, work: Callable[[slice], None]) -> None:
    """`blocks` on the calling thread alone."""
    for start in range(0, length, step):
        work(slice(start, min(start + step, length)))


def splits(first: np.ndarray, *others: np.ndarray | None) -> bool:
    """Whether arrays are row-major and have one shape and dtype, so that blocks of them correspond. None is left out."""
    shape, kind = first.shape, first.dtype
    return first.flags.c_contiguous and all(
        a is None or (a.shape == shape and a.dtype == kind and a.flags.c_contiguous) for a in others
    )
