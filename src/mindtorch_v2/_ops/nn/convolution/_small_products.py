"""Products of a few channels with many columns, as many small products in one call.

OpenBLAS lays both operands of a product out anew before it computes, except where the product is small and the processor has
AVX-512. Of the few rows that a convolution's weight has, that takes a good part of the time: 16 rows of 144 with 144 x 4352
take 0.70 of it in parts of 384 columns, 6 rows of 25 take 0.35, 32 rows of 288 take 0.8. Without AVX-512 parts
take as long as the whole, and those of a gradient up to 1.1 times as long.
"""

from __future__ import annotations

import numpy as np

from ..._support.split_products import matmul

# Multiply-adds of a small product, and the most elements of its result where the first operand is a transposed one.
_SMALL = 1_000_000
_SMALL_RESULT = 1200
# With more rows than these, or fewer of the inner ones in a part, a gradient in parts gains nothing: it has 1.4 times the speed
# with 16 rows, 1.15 with 32, 1.0 with 64.
_MOST_ROWS = 32
_FEWEST = 9
# Parts are at least so long, and of a multiple of so many columns: the lanes of a register.
_SHORTEST = 64
_LANES = 16


def _part_length(length: int, most: int) -> int:
    """The length of equal parts, up to `most` each: 0 where they would be short, `length` where one is enough."""
    if length <= most:
        return length
    if most < _SHORTEST:
        return 0
    return length // -(-length // most) // _LANES * _LANES


def _parts(array: np.ndarray, step: int) -> np.ndarray:
    """The last axis of (groups, rows, length) in parts of `step`, without what remains: (groups, parts, rows, step)."""
    groups, rows, length = array.shape
    return array[..., : length // step * step].reshape(groups, rows, length // step, step).swapaxes(1, 2)


def multiply(weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The product of (groups, rows, inner) with (groups, inner, length)."""
    groups, rows, inner = weights.shape
    length = columns.shape[2]
    product = np.empty((groups, rows, length), columns.dtype)
    step = _part_length(length, _SMALL // (rows * inner))
    if not step:
        return matmul(weights, columns, product)
    np.matmul(weights[:, None], _parts(columns, step), _parts(product, step))
    rest = length % step
    if rest:
        np.matmul(weights, columns[..., -rest:], product[..., -rest:])
    return product


def multiply_transposed(columns: np.ndarray, grads: np.ndarray) -> np.ndarray:
    """The product of (groups, inner, length) with the transpose of (groups, rows, length)."""
    groups, inner, length = columns.shape
    rows = grads.shape[1]
    if rows > _MOST_ROWS:
        return np.matmul(columns, grads.swapaxes(1, 2))
    # Some of the inner rows at a time, so that the result is small.
    many = next(n for n in range(min(inner, _SMALL_RESULT // rows), 0, -1) if inner % n == 0)
    step = _part_length(length, _SMALL // (rows * many))
    if not step or many < min(inner, _FEWEST):
        return np.matmul(columns, grads.swapaxes(1, 2))
    left, right = _parts(columns, step), _parts(grads, step).swapaxes(2, 3)
    left = left.reshape(groups, left.shape[1], inner // many, many, step)
    products = np.matmul(left, right[:, :, None]).reshape(groups, left.shape[1], inner, rows)
    total = np.add.reduce(products, 1)
    rest = length % step
    if rest:
        total += np.matmul(columns[..., -rest:], grads[..., -rest:].swapaxes(1, 2))
    return total
