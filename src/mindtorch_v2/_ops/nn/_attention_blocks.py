"""Attention on arrays, block by block: some heads and some rows of the query at a time, so that their scores stay in the cache.

Arrays are (N, heads, length, width); key and value may have fewer heads, each shared by a run of the query's.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..._core import parallel
from .._support.blas_sums import row_sums
from .._support.elementwise import exp_is_safe

# Scores of a block: 256 KB of float32.
_BLOCK = 1 << 16

# With a causal mask a block has so few rows: the keys after its last row are left out of the products.
_CAUSAL_ROWS = 64

# Up to so many keys whole scores are multiplied by a triangle of ones and zeros, one run of memory for all rows of a head.
# Of more keys, only those that some row does not attend to: a run for each row.
_FEW_KEYS = 512

Heads = tuple[slice, slice]  # samples, heads of the key


def _split(query: np.ndarray, key: np.ndarray) -> tuple[list[Heads], int]:
    """The blocks of samples and heads, and how many rows of the query a block has at most."""
    (samples, heads, length, _), kv_heads, width = query.shape, max(key.shape[1], 1), key.shape[2]
    per_head = max(heads // kv_heads * length * width, 1)
    head_step = min(max(_BLOCK // per_head, 1), kv_heads)
    sample_step = max(_BLOCK // (per_head * kv_heads), 1)
    blocks = [
        (slice(n, min(n + sample_step, samples)), slice(h, min(h + head_step, kv_heads)))
        for n in range(0, samples, sample_step)
        for h in range(0, kv_heads, head_step)
    ]
    return blocks, max(_BLOCK // max(heads // kv_heads * width, 1), 1)


def _by_kv_head(array: np.ndarray, kv_heads: int) -> np.ndarray:
    """(N, heads, ...) as (N, kv_heads, heads per, ...)."""
    return array.reshape(array.shape[0], kv_heads, -1, *array.shape[2:]) if array.shape[1] != kv_heads else array[:, :, None]


@lru_cache(maxsize=16)
def _lower_triangle(length: int, width: int, first: int, dtype: np.dtype) -> np.ndarray:
    """1 where row `first + i` may attend to column j, at and below the diagonal, and 0 elsewhere."""
    triangle = np.tri(length, width, first, dtype)
    triangle.flags.writeable = False
    return triangle


def _mask_of(attn_mask: np.ndarray | None, shape: tuple[int, ...], kv_heads: int) -> np.ndarray | None:
    """A mask as a view (N, kv_heads, heads per, L, S)."""
    return None if attn_mask is None else _by_kv_head(np.broadcast_to(attn_mask, shape), kv_heads)


def _rows(length: int, step: int, width: int, is_causal: bool) -> list[tuple[slice, slice]]:
    """Slices of the query's rows, and of the keys that they attend to."""
    if is_causal:
        step = min(step, max(_CAUSAL_ROWS, length // 4))
    parts = [slice(start, min(start + step, length)) for start in range(0, length, step)]
    return [(rows, slice(0, min(rows.stop, width) if is_causal else width)) for rows in parts]


def _drop_future(weights: np.ndarray, first: int) -> None:
    """Set the weights of keys that come after their query to 0; the rows begin with row `first`."""
    length, width = weights.shape[-2:]
    allowed = min(first + 1, width)  # the columns before are allowed to all rows
    begin = 0 if width <= _FEW_KEYS else allowed
    if allowed < width:
        part = weights[..., begin:]
        np.multiply(part, _lower_triangle(length, width - begin, first - begin, weights.dtype), part)


def attend(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    is_causal: bool,
    attn_mask: np.ndarray | None,
    factor: float,
    output: np.ndarray,
    logsumexp: np.ndarray,
) -> None:
    """Fill `output` with softmax(query keyᵀ * factor + mask) value, and `logsumexp` with the logarithm of each row's sum."""
    kv_heads, length, width = key.shape[1], query.shape[2], key.shape[2]
    blocks, step = _split(query, key)
    mask = _mask_of(attn_mask, (*query.shape[:3], width), kv_heads)
    queries, outputs, sums = (_by_kv_head(a, kv_heads) for a in (query, output, logsumexp))
    keys, values = key.swapaxes(-1, -2)[:, :, None], value[:, :, None]

    def work(number: int) -> None:
        block = blocks[number]
        scaled = queries[block] * query.dtype.type(factor)
        for rows, seen in _rows(length, step, width, is_causal):
            place = (*block, slice(None), rows)
            scores = np.matmul(scaled[..., rows, :], keys[block][..., seen])
            if mask is not None:
                scores += mask[(*place, seen)]
            most = _exponentials(scores, mask is not None, rows.start if is_causal else None)
            total = row_sums(scores.reshape(-1, scores.shape[-1])).reshape(*scores.shape[:-1], 1)
            if mask is not None:
                total[total == 0] = 1
            # Dividing the result in place of the probabilities touches fewer elements.
            result = outputs[place]
            np.matmul(scores, values[block][..., seen, :], result)
            np.divide(result, total, result)
            np.log(total, total)
            if most is not None:
                np.add(total, most, total)
            sums[place] = total[..., 0]

    parallel.run(len(blocks), work)


def _exponentials(scores: np.ndarray, masked: bool, first: int | None) -> np.ndarray | None:
    """Replace scores by their exponentials; of each row relative to its maximum, which is returned, unless all are small.

    `first` is the number of the first row where a row attends to no key that comes after it.
    """
    if not masked and exp_is_safe(scores):
        np.exp(scores, scores)
        if first is not None:
            _drop_future(scores, first)
        return None
    if first is not None:
        with_future = scores[..., first:]
        with_future[
            np.broadcast_to(_lower_triangle(*with_future.shape[-2:], 0, scores.dtype) == 0, with_future.shape)
        ] = -np.inf
    most: np.ndarray = np.maximum.reduce(scores, -1, None, None, True)
    if masked:
        # A row that is masked out altogether has no maximum; its probabilities are 0, not nan.
        np.maximum(most, np.finfo(most.dtype).min, out=most)
    np.subtract(scores, most, scores)
    np.exp(scores, scores)
    return most


def _with_column(array: np.ndarray, column: np.ndarray | float) -> np.ndarray:
    """A copy of (..., L, D) with one column more, so that a product with another adds something to each row."""
    wider = np.empty((*array.shape[:-1], array.shape[-1] + 1), array.dtype)
    wider[..., :-1] = array
    wider[..., -1] = column
    return wider


def attend_backward(
    grad_out: np.ndarray,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    out: np.ndarray,
    logsumexp: np.ndarray,
    is_causal: bool,
    attn_mask: np.ndarray | None,
    factor: float,
    grad_query: np.ndarray,
    grad_key: np.ndarray,
    grad_value: np.ndarray,
) -> None:
    """Fill the last three arrays with the gradients of `attend`."""
    kv_heads, length, width = key.shape[1], query.shape[2], key.shape[2]
    blocks, step = _split(query, key)
    mask = _mask_of(attn_mask, (*query.shape[:3], width), kv_heads)
    arrays = (grad_out, query, out, logsumexp, grad_query)
    grads, queries, outs, sums, query_grads = (_by_kv_head(a, kv_heads) for a in arrays)
    kind = query.dtype.type

    def work(number: int) -> None:
        block = blocks[number]
        # With one column more the products give query keyᵀ - logsumexp, and grad_out valueᵀ - the part that goes to the sums.
        scaled = _with_column(queries[block], -sums[block])
        scaled[..., :-1] *= kind(factor)
        grad = _with_column(grads[block], -np.vecdot(grads[block], outs[block]))
        keys, values = (_with_column(array[block], 1).swapaxes(-1, -2)[:, :, None] for array in (key, value))
        key_grad = np.zeros((*scaled.shape[:2], width, key.shape[-1]), kind)
        value_grad = np.zeros((*scaled.shape[:2], width, value.shape[-1]), kind)
        for rows, seen in _rows(length, step, width, is_causal):
            weights = np.matmul(scaled[..., rows, :], keys[..., seen])
            if mask is not None:
                weights += mask[(*block, slice(None), rows, seen)]
            np.exp(weights, weights)
            if is_causal:
                _drop_future(weights, rows.start)
            slopes = np.matmul(grad[..., rows, :], values[..., seen])
            _add_products(value_grad[..., seen, :], weights, grad[..., rows, :-1])
            np.multiply(slopes, weights, slopes)
            _add_products(key_grad[..., seen, :], slopes, scaled[..., rows, :-1])
            target = query_grads[(*block, slice(None), rows)]
            np.matmul(slopes, key[block][:, :, None, seen, :], target)
            np.multiply(target, kind(factor), target)
        grad_key[block], grad_value[block] = key_grad, value_grad

    parallel.run(len(blocks), work)


def _add_products(total: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Add leftᵀ right, of all heads that share a key, to (N, kv_heads, width, D)."""
    products = np.matmul(left.swapaxes(-1, -2), right)
    for number in range(products.shape[2]):
        np.add(total, products[:, :, number], total)
