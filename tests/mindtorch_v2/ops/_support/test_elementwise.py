"""Choosing between arrays without branches: the elements of np.where, bit by bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mindtorch_v2._ops._support.elementwise import chosen

_RANDOM = np.random.default_rng(0)
_MASK = _RANDOM.random((40, 700)) > 0.5
_DTYPES = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int64, np.int32, np.uint8, np.bool_, np.complex64)


def _values(kind, shape=(40, 700)):
    values = (_RANDOM.standard_normal(shape) * 100).astype(kind)
    if np.dtype(kind).kind in "fV" and values.ndim:
        values.reshape(-1)[:6] = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0]
    return values


def _bytes(array):
    return np.ascontiguousarray(array).tobytes()


@pytest.mark.parametrize("kind", _DTYPES)
@pytest.mark.parametrize("shapes", [((40, 700),) * 2, ((40, 700), ()), ((), (40, 700)), ((700,), (40, 1)), ((), ())])
def test_chosen_is_where(kind, shapes):
    first, second = (_values(kind, shape) for shape in shapes)
    result, expected = chosen(_MASK, first, second), np.where(_MASK, first, second)
    assert result.dtype == expected.dtype and result.shape == expected.shape and _bytes(result) == _bytes(expected)


@pytest.mark.parametrize(
    "mask", [_MASK, _MASK[0], _MASK[:, :1], np.array(True), _MASK[::2, ::2].repeat(2, 0).repeat(2, 1).T.copy().T]
)
def test_chosen_broadcasts_the_mask(mask):
    first, second = _values(np.float32), _values(np.float32)
    assert _bytes(chosen(mask, first, second)) == _bytes(np.where(mask, first, second))


@pytest.mark.parametrize("kind", _DTYPES)
def test_chosen_in_place_changes_the_places_of_the_mask(kind):
    first, second = _values(kind), _values(kind)
    expected = np.where(_MASK, first, second)
    assert chosen(_MASK, first, second, second) is second
    assert _bytes(second) == _bytes(expected)


def test_a_target_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="broadcast"):
        chosen(_MASK, _values(np.float32), _values(np.float32), np.empty((3, 40, 699), np.float32))
