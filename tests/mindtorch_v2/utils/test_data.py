"""utils.data: datasets, samplers, collation, and the loader with and without worker processes."""

from __future__ import annotations

import dataclasses
from collections import namedtuple

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import data
from mindtorch_v2.utils.data._utils import worker


class Squares(data.Dataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        if index == 99:
            raise KeyError("no such square")
        return index * index


class Stream(data.IterableDataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self):
        info = data.get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, self.count, step))


def batches(loader) -> list:
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (dict(batch_size=2), [[0, 1], [4, 9], [16]]),
        (dict(batch_size=2, drop_last=True), [[0, 1], [4, 9]]),
        (dict(batch_size=3, sampler=[4, 0, 2, 1]), [[16, 0, 4], [1]]),
        (dict(batch_sampler=[[1, 3], [0]]), [[1, 9], [0]]),
    ],
)
def test_loader_batches(options, expected):
    loader = data.DataLoader(Squares(5), **options)
    assert batches(loader) == expected
    assert len(loader) == len(expected)


def test_without_batching_items_come_as_they_are():
    assert list(data.DataLoader(Squares(3), batch_size=None)) == [0, 1, 4]


def test_shuffle_is_a_permutation_that_the_generator_decides():
    def order(seed: int) -> list:
        generator = torch.Generator().manual_seed(seed)
        return [b.item() for b in data.DataLoader(Squares(20), shuffle=True, generator=generator)]

    assert sorted(order(1)) == [i * i for i in range(20)]
    assert order(1) == order(1) != order(2)


@pytest.mark.parametrize(
    "options",
    [
        dict(shuffle=True, sampler=[0]),
        dict(batch_sampler=[[0]], batch_size=4),
        dict(batch_size=None, drop_last=True),
        dict(num_workers=-1),
        dict(timeout=-1),
        dict(prefetch_factor=2),
        dict(persistent_workers=True),
        dict(batch_size=0),
    ],
)
def test_options_that_contradict_are_errors(options):
    with pytest.raises(ValueError, match="batch_size|mutually exclusive|num_workers|timeout|prefetch|persistent"):
        data.DataLoader(Squares(3), **options)


def test_what_a_loader_is_made_of_cannot_be_replaced():
    loader = data.DataLoader(Squares(3))
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 2


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ([1, 2], torch.tensor([1, 2])),
        ([1.5, 2.5], torch.tensor([1.5, 2.5], dtype=torch.float64)),
        ([torch.ones(2), torch.zeros(2)], torch.tensor([[1.0, 1.0], [0.0, 0.0]])),
        ([np.arange(2), np.arange(2)], torch.tensor([[0, 1], [0, 1]])),
    ],
)
def test_collate_stacks_leaves(batch, expected):
    made = data.default_collate(batch)
    assert made.dtype == expected.dtype
    assert made.tolist() == expected.tolist()


def test_collate_keeps_containers():
    made = data.default_collate([{"p": Point(1, "a"), "q": [1, 2]}, {"p": Point(3, "b"), "q": [3, 4]}])
    assert made["p"].x.tolist() == [1, 3]
    assert made["p"].y in (("a", "b"), ["a", "b"])
    assert isinstance(made["p"], Point)
    assert [t.tolist() for t in made["q"]] == [[1, 3], [2, 4]]


def test_collate_refuses_what_it_does_not_know():
    with pytest.raises(TypeError, match="must contain tensors"):
        data.default_collate([object()])
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([[1], [1, 2]])


def test_samplers():
    items = list(range(6))
    assert list(data.SequentialSampler(items)) == items
    assert sorted(data.RandomSampler(items)) == items
    assert len(list(data.RandomSampler(items, replacement=True, num_samples=9))) == 9
    assert set(data.SubsetRandomSampler([2, 4])) == {2, 4}
    assert set(data.WeightedRandomSampler([0.0, 1.0, 0.0], 5)) == {1}
    assert list(data.BatchSampler(data.SequentialSampler(items), 4, False)) == [[0, 1, 2, 3], [4, 5]]


def test_datasets_of_datasets():
    tensors = data.TensorDataset(torch.arange(4), torch.arange(4) * 10)
    assert [t.item() for t in tensors[2]] == [2, 20]
    joined = Squares(2) + Squares(3)
    assert [joined[i] for i in range(len(joined))] == [0, 1, 0, 1, 4]
    assert joined[-1] == 4
    assert list(data.ChainDataset([Stream(2), Stream(2)])) == [0, 1, 0, 1]
    assert data.StackDataset(a=Squares(3), b=Squares(3))[2] == {"a": 4, "b": 4}
    assert data.Subset(Squares(9), [8, 2])[0] == 64
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(torch.ones(2), torch.ones(3))


def test_random_split_takes_lengths_and_fractions():
    parts = data.random_split(Squares(10), [0.7, 0.3], generator=torch.Generator().manual_seed(0))
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(i for p in parts for i in p.indices) == list(range(10))
    with pytest.raises(ValueError, match="does not equal the length"):
        data.random_split(Squares(10), [1, 2])


def test_distributed_sampler_splits_evenly():
    shares = [list(data.DistributedSampler(Squares(5), num_replicas=2, rank=rank, shuffle=False)) for rank in (0, 1)]
    assert shares == [[0, 2, 4], [1, 3, 0]]


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_keep_the_order(persistent):
    loader = data.DataLoader(Squares(7), batch_size=2, num_workers=2, persistent_workers=persistent)
    assert batches(loader) == batches(loader) == [[0, 1], [4, 9], [16, 25], [36]]


def test_workers_share_a_stream():
    assert sorted(b.item() for b in data.DataLoader(Stream(5), num_workers=2)) == [0, 1, 2, 3, 4]


def test_a_workers_error_arrives_as_it_was():
    with pytest.raises(KeyError, match="DataLoader worker process 0"):
        list(data.DataLoader(Squares(100), sampler=[99], num_workers=1))


def test_workers_draw_different_random_numbers():
    loader = data.DataLoader(Squares(2), num_workers=2, collate_fn=lambda batch: torch.rand(2))
    first, second = loader
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize("workers", [0, 1])
def test_iterators_go_by_the_kind_that_a_loader_says(workers):
    """Libraries hand the iterators a loader of their own, whose dataset is no IterableDataset."""
    from mindtorch_v2.utils.data.dataloader import _DatasetKind, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

    class Batches:
        def __iter__(self):
            return iter([torch.ones(2), torch.zeros(2)])

    loader = data.DataLoader(Batches(), sampler=range(9), batch_size=None, num_workers=workers)
    loader._dataset_kind = _DatasetKind.Iterable
    kind = _MultiProcessingDataLoaderIter if workers else _SingleProcessDataLoaderIter
    assert [batch.tolist() for batch in kind(loader)] == [[1, 1], [0, 0]]


@pytest.mark.parametrize("name", ["sampler", "batch_sampler"])
def test_samplers_of_streams_are_refused_by_name(name):
    with pytest.raises(ValueError, match=f"expected unspecified {name} option, but got {name}=3"):
        data.DataLoader(Stream(3), **{name: 3})


def test_worker_info_cannot_be_changed(monkeypatch):
    info = worker.WorkerInfo(0, 2, 5, "data")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'id'"):
        info.id = 1
    assert repr(info) == "WorkerInfo(id=0, num_workers=2, seed=5, dataset='data', rng=None, worker_method='multiprocessing')"
    monkeypatch.setattr(worker, "_worker_info", info)
    assert data.get_worker_info() is info
    assert data.default_collate([torch.zeros(1), torch.zeros(1)]).is_shared()
