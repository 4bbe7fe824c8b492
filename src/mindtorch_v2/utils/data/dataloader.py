"""DataLoader: batches of a dataset, fetched here or by worker processes."""

from __future__ import annotations

import multiprocessing
import os
import queue
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ... import _surface as torch
from ..._core.dtype import int64
from ..._dispatch import backends, observer
from ..._dispatch.observer import span
from ...multiprocessing.reductions import init_reductions
from ._utils import worker
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import make_fetcher
from ._utils.pin_memory import pin_memory as pinned
from ._utils.worker import get_worker_info as get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler


class _InfiniteConstantSampler(Sampler[Any]):
    """Stands in for indices of a stream, which has none."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


T_co = TypeVar("T_co", covariant=True)


class _DatasetKind:
    """Whether a dataset has items or a stream of them, as numbers."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> Any:
        """The function that turns indices into a batch."""
        return make_fetcher(dataset, kind == _DatasetKind.Iterable, auto_collation, collate_fn, drop_last)


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[T_co]):
    """Iterate over a dataset in batches.

    With `num_workers`, that many processes fetch ahead; batches still come in the sampler's order.
    """

    _ready = False

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset, self.num_workers = dataset, num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        # Memory is not pinned: there is no device that would copy from it. torch does the same without one.
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.worker_init_fn, self.in_order = timeout, worker_init_fn, in_order
        self.multiprocessing_context = multiprocessing_context
        self.generator, self.persistent_workers = generator, persistent_workers
        streams = isinstance(dataset, IterableDataset)
        if streams:
            if shuffle not in (False, None):
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
                )
            for name, given in (("sampler", sampler), ("batch_sampler", batch_sampler)):
                if given is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if streams:
                sampler = _InfiniteConstantSampler()
            else:
                items: Any = dataset
                sampler = RandomSampler(items, generator=generator) if shuffle else SequentialSampler(items)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.collate_fn = collate_fn or (default_collate if batch_sampler is not None else default_convert)
        self._persistent: _MultiProcessingDataLoaderIter | None = None
        self._dataset_kind = _DatasetKind.Iterable if streams else _DatasetKind.Map
        self._IterableDataset_len_called: int | None = None
        self._ready = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """The context that makes worker processes; None for the default. A start method's name sets it, too."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if not self.num_workers:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self._context = context

    def check_worker_number_rationality(self) -> None:
        """Warn where there are more workers than processors that this process may use."""
        if not self.num_workers:
            return
        try:
            most: int | None = len(os.sched_getaffinity(0))
        except (AttributeError, OSError):
            most = os.cpu_count()
        if most is not None and self.num_workers > most:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker "
                f"in current system is {most}, which is smaller than what this DataLoader is going to create. Please be aware "
                "that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to "
                "avoid potential slowness/freeze if necessary.",
                UserWarning,
                stacklevel=3,
            )

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Iterable[Any]:
        return self.batch_sampler if self.batch_sampler is not None else self.sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if not self.num_workers:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not self.persistent_workers or not self.num_workers:
            return self._get_iterator()
        if self._persistent is None:
            self._persistent = self._get_iterator()  # type: ignore[assignment]
            assert self._persistent is not None
        else:
            self._persistent.restart(self)
        return self._persistent

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is None:
                return length
            return length // self.batch_size if self.drop_last else -(-length // self.batch_size)
        return len(self._index_sampler)  # type: ignore[arg-type]


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


class _BaseDataLoaderIter:
    """One pass over a loader's batches; each `next` is a span in profiles."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._length_told = loader._IterableDataset_len_called
        self._num_workers = loader.num_workers
        self._indices = iter(loader._index_sampler)
        self._base_seed = int(torch.empty((), dtype=int64).random_(generator=loader.generator).item())
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
        self._yielded = 0
        self._pins = loader.pin_memory and backends.available("npu")
        if loader.pin_memory and not self._pins:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
                UserWarning,
                stacklevel=4,
            )

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __next__(self) -> Any:
        with span(self._profile_name):
            batch = self._next()
            self._yielded += 1
            if self._length_told is not None and self._yielded > self._length_told:
                self._warn_of_length()
            return pinned(batch) if self._pins else batch

    def _warn_of_length(self) -> None:
        message = (
            f"Length of IterableDataset {self._dataset} was reported to be {self._length_told}"
            f"(when accessing len(dataloader)), but {self._yielded} samples have been fetched. "
        )
        if self._num_workers:
            message += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset "
                "replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
        warnings.warn(message, stacklevel=3)

    def _next(self) -> Any:
        raise NotImplementedError


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._fetch = _DatasetKind.create_fetcher(
            loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )

    def _next(self) -> Any:
        return self._fetch(next(self._indices))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Tasks go to the workers in turn, numbered; results are handed out by number."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        context = loader.multiprocessing_context
        if context is None:
            # Datasets are often classes inside functions, which only fork can hand over.
            context = multiprocessing.get_context("fork" if hasattr(os, "fork") else None)
        init_reductions()
        self._in_order = loader.in_order
        self._timeout = loader.timeout or None
        self._ahead = max(1, loader.prefetch_factor or 1) * loader.num_workers
        self._persistent = loader.persistent_workers
        self._results = context.Queue()
        self._tasks = []
        self._workers = []
        for i in range(loader.num_workers):
            tasks = context.Queue()
            tasks.cancel_join_thread()  # a program that ends does not wait for tasks that no worker takes
            process = context.Process(
                target=worker.run,
                daemon=True,
                args=(
                    i,
                    loader.num_workers,
                    self._base_seed + i,
                    loader.dataset,
                    loader._dataset_kind == _DatasetKind.Iterable,
                    loader.collate_fn,
                    loader._auto_collation,
                    loader.drop_last,
                    loader.worker_init_fn,
                    tasks,
                    self._results,
                ),
            )
            process.start()
            self._tasks.append(tasks)
            self._workers.append(process)
        self._begin()

    def _begin(self) -> None:
        self._sent = self._turn = 0
        self._arrived: dict[int, Any] = {}
        self._sent_to: dict[int, int] = {}
        self._active = [True] * len(self._workers)
        self._open = [0] * len(self._workers)
        for _ in range(self._ahead):
            self._send()

    def restart(self, loader: DataLoader[Any]) -> None:
        """Another epoch with the same workers."""
        self._length_told = loader._IterableDataset_len_called
        self._yielded = 0
        self._base_seed = int(torch.empty((), dtype=int64).random_(generator=loader.generator).item())
        while self._sent_to:  # results of an epoch that was left early
            self._take(next(iter(self._sent_to)) if self._in_order else None)
        self._indices = iter(loader._index_sampler)
        for tasks in self._tasks:
            tasks.put((-1, "resume", None))
        self._begin()

    def _send(self) -> None:
        if not any(self._active):
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        # Out of order a worker that is slow gets no more than its share.
        share = self._ahead // sum(self._active)
        while not self._active[self._turn] or (not self._in_order and self._open[self._turn] >= share):
            self._turn = (self._turn + 1) % len(self._workers)
        self._tasks[self._turn].put((self._sent, indices, observer.for_workers()))
        self._sent_to[self._sent] = self._turn
        self._open[self._turn] += 1
        self._turn = (self._turn + 1) % len(self._workers)
        self._sent += 1

    def _take(self, number: int | None) -> tuple[int, Any]:
        """The number of the worker and the result of a task: of this one, or of the next that is done."""
        while number not in self._arrived and not (number is None and self._arrived):
            self._collect()
        number = next(iter(self._arrived)) if number is None else number
        turn = self._sent_to.pop(number)
        self._open[turn] -= 1
        return turn, self._arrived.pop(number)

    def _dead(self) -> RuntimeError | None:
        pids = [str(process.pid) for process in self._workers if not process.is_alive()]
        return RuntimeError(f"DataLoader worker (pid(s) {', '.join(pids)}) exited unexpectedly") if pids else None

    def _collect(self) -> None:
        """Take one result; notice a worker that died instead of waiting for ever."""
        waited = 0.0
        while True:
            try:
                number, result, recorded = self._results.get(timeout=1.0 if self._timeout is None else min(1.0, self._timeout))
            except queue.Empty:
                waited += 1.0
                dead = self._dead()
                if dead is not None:
                    self.close()
                    raise dead from None
                if self._timeout is not None and waited >= self._timeout:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None
                continue
            except (ConnectionError, EOFError, FileNotFoundError) as error:  # a worker died that still had the memory
                dead = self._dead()
                self.close()
                raise (dead or RuntimeError(f"DataLoader worker sent memory that cannot be opened: {error}")) from error
            self._arrived[number] = result
            if recorded is not None:
                recorded.deliver()
            return

    def _next(self) -> Any:
        while self._sent_to:
            turn, result = self._take(next(iter(self._sent_to)) if self._in_order else None)
            if isinstance(result, worker.StreamEnd):
                self._active[turn] = False
                self._send()
                continue
            self._send()
            if isinstance(result, worker.Failure):
                result.raise_again()
            return result
        if not self._persistent:
            self.close()
        raise StopIteration

    def close(self) -> None:
        """End the worker processes; the iterator gives nothing after it."""
        for tasks in self._tasks:
            tasks.put(None)
        for process in self._workers:
            process.join(timeout=5)
            if process.is_alive():
                process.terminate()
        self._tasks, self._workers = [], []
        self._sent_to.clear()

    def __del__(self) -> None:
        if getattr(self, "_workers", None):
            self.close()
