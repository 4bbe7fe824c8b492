"""torch.utils.data.datapipes.iter: steps of streams."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ....._lazy_imports import lazy_exports as _lazy_exports
from ..._utils.collate import default_collate
from ..datapipe import DataChunk, IterDataPipe, functional_datapipe, stream_length
from .combinatorics import ShufflerIterDataPipe

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "Demultiplexer",
    "Filter",
    "Forker",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Shuffler",
    "UnBatcher",
    "Zipper",
]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The items of an iterable, of a copy of it with `deepcopy`, so that each iteration begins anew."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[Any]:
        yield from copy.deepcopy(self.iterable) if self.deepcopy else self.iterable

    def __len__(self) -> int:
        return stream_length(self, self.iterable)


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """A function of each sample, or of one of its columns."""

    def __init__(self, datapipe: IterDataPipe, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        self.output_col = output_col

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            if self.input_col is None:
                yield self.fn(sample)
            else:
                yield self._with_column(sample)

    def _with_column(self, sample: Any) -> Any:
        columns = self.input_col if isinstance(self.input_col, list | tuple) else [self.input_col]
        result = self.fn(*(sample[column] for column in columns))
        changed = list(sample) if isinstance(sample, tuple) else copy.copy(sample)
        if self.output_col == -1:
            changed.append(result)
        else:
            changed[columns[0] if self.output_col is None else self.output_col] = result
        return tuple(changed) if isinstance(sample, tuple) else changed

    def __len__(self) -> int:
        return stream_length(self, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches as tensors."""

    def __init__(self, datapipe: IterDataPipe, conversion: Any = None, collate_fn: Callable[..., Any] | None = None) -> None:
        if conversion is not None and not callable(conversion):
            raise NotImplementedError("collate(): conversions by column")
        super().__init__(datapipe, fn=collate_fn or conversion or default_collate)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples, or those with a column, for which a function holds."""

    def __init__(self, datapipe: IterDataPipe, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        self.datapipe = datapipe
        self.filter_fn = filter_fn
        self.input_col = input_col

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            kept = self.filter_fn(sample if self.input_col is None else sample[self.input_col])
            if not isinstance(kept, bool):
                raise ValueError(f"Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(kept)}")
            if kept:
                yield sample


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Lists of `batch_size` samples; the last may be shorter, unless `drop_last`."""

    def __init__(
        self, datapipe: IterDataPipe, batch_size: int, drop_last: bool = False, wrapper_class: type = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        count = stream_length(self, self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The items of lists, `unbatch_level` lists deep; -1 is all the way down."""

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            yield from _flat(sample, self.unbatch_level)


def _flat(value: Any, levels: int) -> Iterator[Any]:
    if levels == 0 or (levels < 0 and not isinstance(value, list)):
        yield value
    elif not isinstance(value, list):
        raise IndexError(f"unbatch_level {levels} exceeds the depth of the DataPipe")
    else:
        for item in value:
            yield from _flat(item, levels - 1)


class _Joining(IterDataPipe):
    """Several streams as one."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not datapipes or not all(isinstance(each, IterDataPipe) for each in datapipes):
            raise TypeError(f"Expected at least one IterDataPipe, and only such, got {datapipes}")
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterIterDataPipe(_Joining):
    """One stream after another."""

    def __iter__(self) -> Iterator[Any]:
        for datapipe in self.datapipes:
            yield from datapipe

    def __len__(self) -> int:
        return sum(stream_length(self, each) for each in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(_Joining):
    """Tuples of one sample of each stream, until one ends."""

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(stream_length(self, each) for each in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(_Joining):
    """A sample of each stream in turn, until one ends."""

    def __iter__(self) -> Iterator[Any]:
        for samples in zip(*self.datapipes, strict=False):
            yield from samples

    def __len__(self) -> int:
        return min(stream_length(self, each) for each in self.datapipes) * len(self.datapipes)


class _Shared:
    """One stream that several pipes read, each at its own pace; what some have not read yet waits for them."""

    def __init__(self, datapipe: IterDataPipe, count: int, buffer_size: int) -> None:
        if count < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {count} is found")
        if buffer_size == 0:
            raise ValueError("`buffer_size` must be larger than 0, or -1 for no limit")
        self.main_datapipe = datapipe
        self._waiting: list[deque[Any]] = [deque() for _ in range(count)]
        self._limit = buffer_size
        self._source: Iterator[Any] | None = None
        self._round = [0] * count  # how often each reader has begun

    def begin(self, reader: int) -> None:
        """A reader begins; if it has begun in this round already, the stream begins anew for all."""
        self._round[reader] += 1
        if self._source is None or self._round[reader] > 1:
            self._source = iter(self.main_datapipe)
            self._round = [int(at == reader) for at in range(len(self._round))]
            for queue in self._waiting:
                queue.clear()

    def readers_of(self, sample: Any) -> Iterable[int]:
        """The readers that get a sample."""
        raise NotImplementedError(f"{type(self).__name__}.readers_of")

    def next_for(self, reader: int) -> Any:
        """The next sample of a reader; StopIteration at the end."""
        assert self._source is not None
        own = self._waiting[reader]
        while not own:
            sample = next(self._source)
            for at in self.readers_of(sample):
                self._waiting[at].append(sample)
            if 0 <= self._limit < max(map(len, self._waiting)):
                raise BufferError(f"{type(self).__name__} buffer overflow, buffer size {self._limit} is insufficient.")
        return own.popleft()


class _ChildDataPipe(IterDataPipe):
    """One of the pipes that `fork` or `demux` made."""

    def __init__(self, main_datapipe: _Shared, instance_id: int) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __iter__(self) -> Iterator[Any]:
        self.main_datapipe.begin(self.instance_id)
        return self._samples()

    def _samples(self) -> Iterator[Any]:
        while True:
            try:
                sample = self.main_datapipe.next_for(self.instance_id)
            except StopIteration:
                return
            yield sample


class _Forker(_Shared):
    """Every reader gets every sample."""

    def __repr__(self) -> str:
        return "_Forker"

    def readers_of(self, sample: Any) -> Iterable[int]:
        """All of them."""
        return range(len(self._waiting))


class _Demultiplexer(_Shared):
    """A function says which reader gets a sample."""

    def __init__(
        self, datapipe: IterDataPipe, count: int, classifier_fn: Callable[[Any], int | None], drop_none: bool, buffer_size: int
    ) -> None:
        super().__init__(datapipe, count, buffer_size)
        self._classify = classifier_fn
        self._drop_none = drop_none

    def __repr__(self) -> str:
        return "_Demultiplexer"

    def readers_of(self, sample: Any) -> Iterable[int]:
        """The one that the function names."""
        which = self._classify(sample)
        if which is None and self._drop_none:
            return ()
        if which is None or not 0 <= which < len(self._waiting):
            last = len(self._waiting) - 1
            raise ValueError(f"Output of the classification fn should be between 0 and {last}. {which} is returned.")
        return (which,)


def ForkerIterDataPipe(  # noqa: N802  torch has a class here
    datapipe: IterDataPipe, num_instances: int, buffer_size: int = 1000, copy: str | None = None
) -> list[IterDataPipe]:
    """Pipes that each have all samples; what one is ahead of another waits in a buffer."""
    if copy is not None:
        raise NotImplementedError("fork(copy=...): samples are not copied")
    if num_instances == 1:
        return [datapipe]
    shared = _Forker(datapipe, num_instances, buffer_size)
    return [_ChildDataPipe(shared, at) for at in range(num_instances)]


def DemultiplexerIterDataPipe(  # noqa: N802  torch has a class here
    datapipe: IterDataPipe,
    num_instances: int,
    classifier_fn: Callable[[Any], int | None],
    drop_none: bool = False,
    buffer_size: int = 1000,
) -> list[IterDataPipe]:
    """Pipes among which a function divides the samples."""
    shared = _Demultiplexer(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
    return [_ChildDataPipe(shared, at) for at in range(num_instances)]


IterDataPipe.register_function("fork", ForkerIterDataPipe)
IterDataPipe.register_function("demux", DemultiplexerIterDataPipe)

Batcher = BatcherIterDataPipe
Collator = CollatorIterDataPipe
Concater = ConcaterIterDataPipe
Demultiplexer = DemultiplexerIterDataPipe
Filter = FilterIterDataPipe
Forker = ForkerIterDataPipe
IterableWrapper = IterableWrapperIterDataPipe
Mapper = MapperIterDataPipe
Multiplexer = MultiplexerIterDataPipe
Shuffler = ShufflerIterDataPipe
UnBatcher = UnBatcherIterDataPipe
Zipper = ZipperIterDataPipe

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
