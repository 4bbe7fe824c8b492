"""Products of few rows in small parts: equal to whole ones, whatever remains behind the last part."""

from __future__ import annotations

import numpy as np
import pytest

from mindtorch_v2._ops.nn.convolution import _small_products
from mindtorch_v2._ops.nn.convolution._small_products import multiply, multiply_transposed

# Groups, rows, inner, length; how many products of matrices each function makes of it.
SHAPES = [
    ((1, 16, 144, 100), 1, 2),  # small as it is; the gradient's result is not, and has two halves
    ((1, 16, 144, 1088), 3 + 1, 4),  # 3 parts of 352 and a rest of 32; 2 halves of 2 parts each
    ((2, 6, 25, 6701), 2 * (2 + 1), 2 * (2 + 1)),
    ((1, 64, 576, 90), 1, 1),
    ((1, 32, 577, 90), 1, 1),  # a prime number of rows has no equal parts
    ((3, 1, 9, 40), 3, 3),
]


@pytest.mark.parametrize("shape, forward, backward", SHAPES)
@pytest.mark.parametrize("kind", ["f4", "f8", "c8"])
def test_parts_together_are_the_product(monkeypatch, shape, forward, backward, kind):
    made = []
    plain = np.matmul

    def counted(*arrays):
        result = plain(*arrays)
        made.append(result.size // (result.shape[-1] * result.shape[-2]))
        return result

    groups, rows, inner, length = shape
    random = np.random.RandomState(0)
    weights, columns, grads = (
        random.randn(groups, *size).astype(kind) for size in ((rows, inner), (inner, length), (rows, length))
    )
    product, gradient = plain(weights, columns), plain(columns, grads.swapaxes(1, 2))
    monkeypatch.setattr(_small_products.np, "matmul", counted)
    close = 1e-4 if kind != "f8" else 1e-11
    assert np.allclose(multiply(weights, columns), product, close, close * inner)
    assert sum(made) == forward
    made.clear()
    assert np.allclose(multiply_transposed(columns, grads), gradient, close, close * length)
    assert sum(made) == backward
