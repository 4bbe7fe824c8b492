"""One pass over large arrays by several threads: NumPy's answers, and when the work is split at all."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core import parallel, single_pass


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """Four threads, whatever the machine has, and small arrays that count as large."""
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    monkeypatch.setattr(single_pass, "LARGE", 64)
    monkeypatch.setattr(single_pass, "TURNED", 16)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def split(monkeypatch):
    """How many blocks each call was split into."""
    counts = []
    plain = parallel.blocks

    def blocks(length, step, work):
        counts.append(-(-length // step))
        plain(length, step, work)

    monkeypatch.setattr(parallel, "blocks", blocks)
    return counts


_A, _B = np.arange(96.0).reshape(16, 6), np.linspace(1, 2, 96).reshape(16, 6)
_ALIKE = {
    "two arrays": (np.add, _A, _B),
    "an array and a number": (np.add, _A, 2.0),
    "an array without dims": (np.multiply, _A, np.array(3.0)),
    "one array": (np.sqrt, _A),
    "truth values": (np.less, _A, _B),
    "integers": (np.floor_divide, _A.astype(np.int64), 3),
    "two dtypes": (np.add, _A, _B.astype(np.float32)),
    "a row for all rows": (np.add, _A, _B[0]),
    "a number for each row": (np.subtract, _A, _B[:, :1].copy()),
    "a row and a column": (np.multiply, _A[:, :1].copy(), _B[0]),
}
_OTHERS = {
    "not row by row": (np.add, _A, _B.T.copy().T),
    "few rows, broadcast": (np.add, _A[:2], _B[0]),
}


@pytest.mark.parametrize("case", [*_ALIKE, *_OTHERS])
def test_elementwise_is_the_ufunc(case, split):
    kernel, *operands = {**_ALIKE, **_OTHERS}[case]
    result, expected = single_pass.elementwise(kernel, *operands), kernel(*operands)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == expected.dtype and result.strides == expected.strides
    assert split == ([8] if case in _ALIKE else [])  # two for each thread


def test_elementwise_writes_where_it_is_told(split):
    for operand in (_B, _B[0], 2.0):
        target = _A.copy()
        assert single_pass.elementwise(np.add, target, operand, out=target) is target
        np.testing.assert_array_equal(target, _A + operand)
    assert len(split) == 3


def test_what_is_read_is_not_written_by_another_block(split):
    array = np.arange(128.0)
    expected = array[1:] + array[:-1]
    single_pass.elementwise(np.add, array[1:], array[:-1], out=array[1:])
    np.testing.assert_array_equal(array[1:], expected)
    assert not split


@pytest.mark.parametrize("options", [{}, {"out": _A[:, :3].copy()}])
def test_shapes_that_do_not_fit_get_the_ufuncs_error(options):
    with pytest.raises(ValueError, match="could not be broadcast|non-broadcastable"):
        single_pass.elementwise(np.add, _A, _B[:, :3].copy() if not options else _B, **options)


_COPIES = {
    "row by row": (_B, 8),
    "turned": (_B.reshape(6, 16).T, 8),
    "a row for all rows": (_B[0], 8),
    "a number": (np.array(7.0), 8),
    "another dtype": (_B.astype(np.float32), 8),
}


@pytest.mark.parametrize("case", _COPIES)
@pytest.mark.parametrize("turned", [False, True])
def test_copies_are_those_of_numpy(case, turned, split):
    source, count = _COPIES[case]
    target = np.zeros((6, 16)).T if turned else np.zeros((16, 6))
    single_pass.copy_into(target, source)
    np.testing.assert_array_equal(target, np.broadcast_to(source, (16, 6)))
    # Along its 16 rows; those of a turned target lie next to each other, and its columns are too few.
    assert split == [count]


def test_copies_within_one_array_are_not_split(split):
    array, expected = np.arange(128.0), np.arange(128.0)
    expected[1:] = expected[:-1].copy()
    single_pass.copy_into(array[1:], array[:-1])
    np.testing.assert_array_equal(array, expected)
    assert not split


@pytest.mark.parametrize("casting", ["unsafe", "same_kind"])
def test_copies_cast_as_they_are_told(casting):
    target = np.zeros((16, 6), np.int32)
    if casting == "unsafe":
        single_pass.copy_into(target, _B * 10, casting)
        np.testing.assert_array_equal(target, (_B * 10).astype(np.int32))
    else:
        with pytest.raises(TypeError, match="Cannot cast"):
            single_pass.copy_into(target, _B, casting)


@pytest.mark.parametrize("reduce", [np.add.reduce, np.maximum.reduce, np.logical_or.reduce])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(("axes", "count"), [(2, 1), ((1, 2), 1), ((-1,), 1), (1, 1), (0, 0), ((0, 2), 0), (None, 0)])
def test_reductions_are_split_along_the_dims_before_them(reduce, keepdim, axes, count, split):
    array = np.sin(np.arange(16 * 9 * 5.0)).reshape(16, 9, 5)
    result, expected = single_pass.reduced(reduce, array, axes, None, keepdim), reduce(array, axes, None, None, keepdim)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == expected.dtype and len(split) == count


@pytest.mark.parametrize("axes", [3, (0, 0), (1, -4)])
def test_wrong_dims_of_a_reduction_get_numpys_error(axes):
    with pytest.raises(ValueError, match=r"out of bounds|duplicate"):
        single_pass.reduced(np.add.reduce, np.ones((16, 9, 5)), axes)


def test_one_thread_takes_all(split):
    torch.set_num_threads(1)
    single_pass.elementwise(np.add, _A, _B)
    single_pass.copy_into(np.empty_like(_A), _B)
    single_pass.reduced(np.add.reduce, _A, 1)
    assert not split
