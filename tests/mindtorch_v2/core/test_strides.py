"""Density and overlap, against the places that the elements of small arrays take."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mindtorch_v2._core.strides import is_dense, overlaps

SHAPES = [shape for dims in range(4) for shape in itertools.product((1, 2, 3), repeat=dims)]


def _places(shape, strides):
    return [sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(*shape)]


@pytest.mark.parametrize("shape", SHAPES)
def test_dense_means_every_place_once(shape):
    for strides in itertools.product((0, 1, 2, 3, 4, 6, 9), repeat=len(shape)):
        array = np.lib.stride_tricks.as_strided(np.zeros(100), shape, [8 * s for s in strides])
        assert is_dense(array) == (sorted(_places(shape, strides)) == list(range(array.size)))


@pytest.mark.parametrize("shape", SHAPES)
def test_no_overlap_means_no_place_twice(shape):
    """Strides that interleave without a clash count as overlapping: the answer is "may", and never misses one."""
    for strides in itertools.product((0, 1, 2, 3, 4, 6, 9), repeat=len(shape)):
        places = _places(shape, strides)
        clash = len(set(places)) < len(places)
        assert overlaps(shape, strides) >= clash
        if is_dense(np.lib.stride_tricks.as_strided(np.zeros(100), shape, [8 * s for s in strides])):
            assert not overlaps(shape, strides)


def test_arrays_without_elements_are_dense():
    assert is_dense(np.zeros((3, 0, 2))[::2])
