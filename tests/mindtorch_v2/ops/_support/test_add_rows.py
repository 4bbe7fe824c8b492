"""Rows that are added where an index names them: the sums of np.add.at, however often an index comes."""

from __future__ import annotations

import numpy as np
import pytest

from mindtorch_v2._ops._support.common import add_rows

_RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.complex64])
@pytest.mark.parametrize(("count", "named"), [(50, 40), (3, 40), (5, 3000), (1, 2000), (700, 1500), (4, 0)])
def test_repeated_rows_add_up(kind, count, named):
    rows = (_RANDOM.standard_normal((count, 7)) * 10).astype(kind)
    values = (_RANDOM.standard_normal((named, 7)) * 10).astype(kind)
    indices = _RANDOM.integers(0, count, named)
    expected = rows.astype(np.complex128)
    np.add.at(expected, indices, values)
    add_rows(rows, indices, values)
    np.testing.assert_allclose(rows, expected if kind is np.complex64 else expected.real, rtol=2e-5, atol=1e-3)


def test_a_row_of_many_values_does_not_drift():
    rows, values = np.zeros((1, 2), np.float32), np.full((1 << 17, 2), 0.1, np.float32)
    add_rows(rows, np.zeros(len(values), np.int64), values)
    np.testing.assert_allclose(rows[0], len(values) * np.float64(np.float32(0.1)), rtol=1e-5)
