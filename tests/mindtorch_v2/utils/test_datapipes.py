"""Data pipes: their samples, and the ranges that profiles show of them. The answers are those of torch 2.13."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.utils.data import IterDataPipe, MapDataPipe, functional_datapipe
from mindtorch_v2.utils.data.datapipes.iter import IterableWrapper
from mindtorch_v2.utils.data.datapipes.map import SequenceWrapper


def numbers(*ends):
    return IterableWrapper(range(*ends))


def is_odd(x):
    return x % 2 == 1


STEPS = {
    "map": (lambda: numbers(3).map(str), ["0", "1", "2"]),
    "map_column": (lambda: IterableWrapper([(1, 2), (3, 4)]).map(str, input_col=1), [(1, "2"), (3, "4")]),
    "filter": (lambda: numbers(5).filter(is_odd), [1, 3]),
    "batch": (lambda: numbers(5).batch(2), [[0, 1], [2, 3], [4]]),
    "batch_drop": (lambda: numbers(5).batch(2, drop_last=True), [[0, 1], [2, 3]]),
    "unbatch": (lambda: numbers(5).batch(2).batch(2).unbatch(-1), [0, 1, 2, 3, 4]),
    "concat": (lambda: numbers(2).concat(numbers(5, 7)), [0, 1, 5, 6]),
    "zip": (lambda: numbers(2).zip(numbers(5, 9)), [(0, 5), (1, 6)]),
    "mux": (lambda: numbers(2).mux(numbers(5, 9)), [0, 5, 1, 6]),
    "fork": (lambda: numbers(3).fork(2)[1], [0, 1, 2]),
    "demux": (lambda: numbers(5).demux(2, is_odd)[1], [1, 3]),
    "map of keys": (lambda: SequenceWrapper([1, 2]).map(str), ["1", "2"]),
    "zip of keys": (lambda: SequenceWrapper([1, 2]).zip(SequenceWrapper([3, 4, 5])), [(1, 3), (2, 4)]),
    "concat of keys": (lambda: SequenceWrapper([1]).concat(SequenceWrapper([2, 3])), [1, 2, 3]),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps(name):
    make, samples = STEPS[name]
    pipe = make()
    again = list(pipe)
    assert again == samples and list(pipe) == samples  # each iteration begins anew


def test_shuffling_goes_by_the_seed_of_torch():
    torch.manual_seed(0)
    assert list(numbers(10).shuffle()) == [3, 5, 0, 1, 9, 6, 2, 7, 4, 8]


def test_shuffling_can_be_switched_off():
    from mindtorch_v2.utils.data.datapipes.iter.combinatorics import ShufflerIterDataPipe

    pipe = numbers(4).batch(2).shuffle(unbatch_level=1)
    assert isinstance(pipe, ShufflerIterDataPipe)
    assert list(pipe.set_shuffle(False)) == [0, 1, 2, 3]
    assert [list(pipe.set_shuffle().set_seed(1)) for _ in range(2)] == [list(pipe.set_seed(1))] * 2
    assert sorted(pipe) == [0, 1, 2, 3]


def test_collating_and_lengths():
    (batch,) = numbers(2).batch(2).collate()
    assert torch.equal(batch, torch.tensor([0, 1]))
    assert [len(numbers(5)), len(numbers(5).map(str)), len(numbers(5).batch(2)), len(SequenceWrapper([1]))] == [5, 5, 3, 1]
    with pytest.raises(TypeError, match="no len"):
        len(numbers(5).filter(is_odd))


def test_forks_wait_for_each_other_up_to_a_limit():
    first, second = numbers(3).fork(2, buffer_size=2)
    with pytest.raises(BufferError, match="buffer size 2"):
        list(first)
    ahead, behind = numbers(3).fork(2)
    assert (list(ahead), list(behind)) == ([0, 1, 2], [0, 1, 2])
    assert second is not first


def test_profiles_show_each_sample():
    with profile() as prof:
        list(numbers(1).map(is_odd))
    wrapper = "IterableWrapper(deepcopy=True, iterable=range(0, 1))"
    mapper = "Mapper(datapipe=IterableWrapper, fn=is_odd, input_col=None, output_col=None)"
    assert [event.name for event in prof.events()] == [mapper, wrapper, mapper, wrapper]  # the second pair finds the end


def test_pipes_that_are_their_own_iterators_and_those_that_pass_one_on():
    class Own(IterDataPipe):
        def __init__(self):
            self.left = 3

        def __iter__(self):
            return self

        def __next__(self):
            if not self.left:
                self.left = 3
                raise StopIteration
            self.left -= 1
            return self.left

        def answer(self):
            return 42

    class Passing(IterDataPipe):
        def __init__(self, datapipe):
            self.datapipe = datapipe

        def __iter__(self):
            return iter(self.datapipe)

    for pipe in (Own(), Passing(Own())):
        samples = iter(pipe)
        assert samples.answer() == 42 and list(samples) == [2, 1, 0]


def test_methods_by_name():
    @functional_datapipe("twice_in_a_test")
    class Twice(IterDataPipe):
        def __init__(self, datapipe):
            self.datapipe = datapipe

        def __iter__(self):
            for sample in self.datapipe:
                yield sample
                yield sample

    try:
        assert list(numbers(2).twice_in_a_test()) == [0, 0, 1, 1]
        with pytest.raises(Exception, match="already taken"):
            functional_datapipe("twice_in_a_test")(Twice)
    finally:
        del IterDataPipe.functions["twice_in_a_test"]
    with pytest.raises(AttributeError, match="'IterableWrapperIterDataPipe' object has no attribute 'nope'"):
        numbers(1).nope()
    with pytest.raises(TypeError, match="can only decorate"):
        functional_datapipe("x")(dict)
    assert repr(numbers(1)) == "IterableWrapperIterDataPipe" and not issubclass(MapDataPipe, IterDataPipe)
