"""Bags of embeddings: the rows of a table summed, averaged or maximized bag by bag."""

from __future__ import annotations

import numpy as np

from ..._core.keys import AUTOGRAD
from ..._dispatch.registry import aten, composite, op
from .._support.bags import bag_maxima, bag_sums, pays_as_product, sums_by_product
from .._support.common import add_rows, scalar_name, sums_by_place
from .._support.half import in_float32

SUM, MEAN, MAX = range(3)
_INT64 = np.dtype(np.int64)


def _check(weight, indices, offsets, mode, per_sample_weights, include_last_offset):
    for name, array, allowed, ranks in (
        ("input", indices, "a 1D or 2D", (1, 2)),
        ("offsets", offsets, "a 1D", (1,)),
        ("weight", weight, "a 2D", (2,)),
    ):
        if array.ndim not in ranks:
            raise RuntimeError(f"{name} has to be {allowed} Tensor, but got Tensor of dimension {array.ndim}")
    for name, array in (("indices", indices), ("offsets", offsets)):
        if array.dtype.name not in ("int32", "int64"):
            raise RuntimeError(
                f"Expected tensor for argument '{name}' to have one of the following scalar types: "
                f"Long, Int; but got {array.dtype.name} (while checking arguments for embedding_bag)"
            )
    if mode not in (SUM, MEAN, MAX):
        raise RuntimeError(f"embedding_bag: mode must be 0, 1 or 2, but got {mode}")
    if include_last_offset and not offsets.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if offsets.size and offsets[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {offsets[0]}"
        )
    if offsets.size and offsets[-1] > indices.size:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {indices.size} but got offsets[-1] of {offsets[-1]}"
        )
    if per_sample_weights is not None:
        if mode != SUM:
            raise RuntimeError(
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (default)"
            )
        if per_sample_weights.dtype != weight.dtype:
            raise RuntimeError(
                "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
                f"'per_sample_weights'; but type torch.{scalar_name(weight)}Tensor does not equal "
                f"torch.{scalar_name(per_sample_weights)}Tensor (while checking arguments for embedding_bag)"
            )
        if per_sample_weights.shape != indices.shape:
            raise RuntimeError(
                f"expected per_sample_weights to be 1D and have {len(indices)} elements, but got "
                f"{list(per_sample_weights.shape)}"
            )
    if indices.size and (indices.min() < 0 or indices.max() >= len(weight)):
        wrong = indices[(indices < 0) | (indices >= len(weight))][0]
        raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {wrong}")


def _bag_of(indices, offsets, include_last_offset):
    """The bag of each index, and how many bags there are. The last bag ends with the indices, whatever the last offset."""
    starts = offsets[:-1] if include_last_offset else offsets
    ends = np.append(starts[1:], len(indices) if len(starts) else [])
    return np.repeat(np.arange(len(starts)), ends - starts), len(starts)


@in_float32
def _bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx):
    indices = indices.reshape(-1)
    bag, count = _bag_of(indices, offsets, include_last_offset)
    indices, offset2bag = indices[: len(bag)], bag.astype(_INT64)
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights[: len(bag)]
    if padding_idx >= 0:
        kept = indices != padding_idx
        indices, bag = indices[kept], bag[kept]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[kept]
    sizes = np.bincount(bag, minlength=count)
    full = sizes > 0
    starts = (np.cumsum(sizes) - sizes)[full]
    output = np.zeros((count, weight.shape[1]), weight.dtype)
    best = np.zeros((count, weight.shape[1]) if mode == MAX else (count,), _INT64)
    if indices.size:
        if mode == MAX:
            output[full], best[full] = bag_maxima(weight, indices, starts, sizes[full])
        else:
            output[full] = bag_sums(weight, indices, starts, sizes[full], per_sample_weights)
            if mode == MEAN:
                output[full] /= sizes[full][:, None].astype(weight.dtype)
    return output, offset2bag, sizes.astype(_INT64), best


_ARGUMENTS = (
    "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
    "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1"
)


def _shape(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, *_):
    count = offsets._array.shape[0] - include_last_offset
    width = weight._array.shape[1]
    return [
        ((count, width), weight._array.dtype),
        (indices._array.shape, _INT64),
        ((count,), _INT64),
        ((count, width) if mode == MAX else (count,), _INT64),
    ]


def _kernel(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx):
    _check(weight, indices, offsets, mode, per_sample_weights, include_last_offset)
    return _bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx)


def _samples(make):
    return [(make(5, 3), make.ints(5, 6), make.ints(1, 1), False, mode) for mode in (SUM, MEAN, MAX)]


embedding_bag_kernel = op(
    f"_embedding_bag({_ARGUMENTS}) -> (Tensor, Tensor, Tensor, Tensor)", _kernel, shape=_shape, samples=_samples
)
op(
    f"_embedding_bag_forward_only({_ARGUMENTS}) -> (Tensor, Tensor, Tensor, Tensor)",
    _kernel,
    shape=_shape,
    nondiff=True,
    samples=_samples,
)


@embedding_bag_kernel.vjp
def _(
    g,
    weight,
    indices,
    offsets,
    scale_grad_by_freq,
    mode,
    sparse,
    per_sample_weights,
    padding_idx,
    result1,
    result2,
    result3,
    needs,
):
    to_samples = None
    if per_sample_weights is not None and needs[3]:
        to_samples = aten._embedding_bag_per_sample_weights_backward(g, weight, indices, offsets, result1, mode, padding_idx)
    to_weight = None
    if needs[0]:
        to_weight = aten._embedding_bag_backward(
            g,
            indices,
            offsets,
            result1,
            result2,
            result3,
            weight._array.shape[0],
            scale_grad_by_freq,
            mode,
            sparse,
            per_sample_weights,
            padding_idx,
        )
    return to_weight, None, None, to_samples


@composite(
    "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
    "Tensor maximum_indices, int num_weights, bool scale_grad_by_freq, int mode, bool sparse, "
    "Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
    samples=lambda make: [],
)
def embedding_bag_backward(
    grad,
    indices,
    offsets,
    offset2bag,
    bag_size,
    maximum_indices,
    num_weights,
    scale_grad_by_freq,
    mode,
    sparse,
    per_sample_weights,
    padding_idx,
):
    if sparse:
        return aten._embedding_bag_sparse_backward(
            grad, indices, offsets, offset2bag, bag_size, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx
        )
    return aten._embedding_bag_dense_backward(
        grad,
        indices,
        offset2bag,
        bag_size,
        maximum_indices,
        num_weights,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        padding_idx,
    )


@composite(
    "_embedding_bag_sparse_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, "
    "Tensor bag_size, int num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, "
    "int padding_idx=-1) -> Tensor",
    samples=lambda make: [],
)
def embedding_bag_sparse_backward(
    grad, indices, offsets, offset2bag, bag_size, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx
):
    if mode == MAX:
        raise RuntimeError("embedding_bag: mode 'max' does not support sparse weights")
    rows = aten.index_select(grad, 0, offset2bag)
    if mode == MEAN:
        rows = rows / aten.index_select(bag_size, 0, offset2bag).unsqueeze(1)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    return aten.embedding_sparse_backward(rows, indices, num_weights, padding_idx, scale_grad_by_freq)


@op(
    "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, "
    "Tensor maximum_indices, int num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, "
    "int padding_idx=-1) -> Tensor",
    samples=lambda make: [],
    shape=lambda grad, indices, offset2bag, bag_size, maximum_indices, num_weights, *_: (
        (num_weights, grad._array.shape[1]),
        grad._array.dtype,
    ),
)
@in_float32
def embedding_bag_dense_backward(
    grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx
):
    grad_weight = np.zeros((num_weights, grad.shape[1]), grad.dtype)
    if mode == MAX:
        full = bag_size > 0
        where = maximum_indices[full] * grad.shape[1] + np.arange(grad.shape[1])
        return (
            sums_by_place(where.reshape(-1), grad[full].reshape(-1), grad_weight.size)
            .reshape(grad_weight.shape)
            .astype(grad.dtype)
        )
    indices, bag = indices.reshape(-1)[: len(offset2bag)], offset2bag
    scales = None if per_sample_weights is None else per_sample_weights[: len(bag)]
    if mode == MEAN:
        grad = grad / np.maximum(bag_size, 1)[:, None].astype(grad.dtype)
    if scale_grad_by_freq:
        often = sums_by_place(indices, None, num_weights)[indices].astype(grad.dtype)
        scales = (1 if scales is None else scales) / often
    if padding_idx >= 0:
        kept = indices != padding_idx
        indices, bag = indices[kept], bag[kept]
        scales = None if scales is None else scales[kept]
    if pays_as_product(len(grad) * num_weights, len(indices)):
        sums = sums_by_product(grad, bag, indices, num_weights, scales)
        if sums is not None:
            return sums
    rows = grad.take(bag, 0)
    if scales is not None:
        rows *= scales[:, None]
    add_rows(grad_weight, indices, rows)
    return grad_weight


@op(
    "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, "
    "Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor",
    samples=lambda make: [],
    shape=lambda grad, weight, indices, *_: (indices._array.shape, grad._array.dtype),
)
@in_float32
def embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, offset2bag, mode, padding_idx):
    grad_weights = np.zeros(indices.shape, grad.dtype)
    used = indices[: len(offset2bag)]
    grad_weights[: len(offset2bag)] = np.einsum("ij,ij->i", grad.take(offset2bag, 0), weight.take(used, 0))
    if padding_idx >= 0:
        grad_weights[indices == padding_idx] = 0
    return grad_weights


def _embedding_bag(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    learns = weight._keys & AUTOGRAD or (per_sample_weights is not None and per_sample_weights._keys & AUTOGRAD)
    call = aten._embedding_bag if learns else aten._embedding_bag_forward_only
    return call(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
    )


_FORM = (
    "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq{}, int mode{}, bool sparse{}, "
    "Tensor? per_sample_weights{}, bool include_last_offset{}"
)


@composite(
    f"embedding_bag({_FORM.format('=False', '=0', '=False', '=None', '=False')}) -> (Tensor, Tensor, Tensor, Tensor)",
    samples=_samples,
)
def embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset):
    """The rows of a table that the indices name, summed, averaged or maximized bag by bag.

    >>> F.embedding_bag(torch.tensor([[0, 1]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), mode="sum")
    tensor([[4., 6.]])
    """
    return _embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, -1
    )


@composite(
    f"embedding_bag.padding_idx({_FORM.format(*[''] * 5)}, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
    samples=lambda make: [],
)
def embedding_bag_padded(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    if padding_idx is None:
        padding_idx = -1
    elif not -len(weight) <= padding_idx < len(weight):
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-len(weight)} through {len(weight) - 1}, but got "
            f"{padding_idx}"
        )
    elif padding_idx < 0:
        padding_idx += len(weight)
    return _embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
    )
