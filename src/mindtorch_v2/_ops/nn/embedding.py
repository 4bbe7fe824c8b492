"""Embedding: rows of a table, and the gradient that goes back to them."""

from __future__ import annotations

import numpy as np

from ..._core.sparse import make_sparse
from ..._dispatch.registry import aten, composite, op
from .._support.common import add_rows, scalar_name, sums_by_place


def _check_indices(indices):
    if indices.dtype not in (np.dtype(np.int64), np.dtype(np.int32)):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{scalar_name(indices)}Tensor instead "
            "(while checking arguments for embedding)"
        )


@op(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    shape=lambda weight, indices, *_: ((*indices._array.shape, *weight._array.shape[1:]), weight._array.dtype),
    samples=lambda make: [(make(5, 4), make.ints(5, 2, 3))],
    out=False,
)
def embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    """The rows of a table that the indices name.

    >>> F.embedding(torch.tensor([1, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(indices)
    if indices.size and (indices.min() < 0 or indices.max() >= weight.shape[0]):
        raise IndexError("index out of range in self")
    return weight.take(indices, 0)


embedding.vjp(
    weight=lambda g, indices, weight_shape, padding_idx, scale_grad_by_freq, sparse: aten.embedding_backward(
        g, indices, weight_shape[0], padding_idx, scale_grad_by_freq, sparse
    )
)


@composite(
    "embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq, "
    "bool sparse) -> Tensor",
    samples=lambda make: [],
)
def embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq, sparse):
    if sparse:
        return aten.embedding_sparse_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)
    return aten.embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


@composite(
    "embedding_sparse_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, "
    "bool scale_grad_by_freq) -> Tensor",
    samples=lambda make: [],
)
def embedding_sparse_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    """A sparse table with a row for every index; rows of equal indices are not added up yet."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    width = grad._array.shape[-1]
    if padding_idx != -1:
        kept = aten.ne(indices, padding_idx)
        indices, grad = aten.index(indices, [kept]), aten.index(grad, [kept])
    rows = aten.reshape(indices, (1, -1))
    count = rows._array.shape[1]
    return make_sparse(rows, aten.reshape(grad, (count, width)), (num_weights, width), count < 2)


@op(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, "
    "bool scale_grad_by_freq) -> Tensor",
    samples=lambda make: [(make(2, 3, 4), make.ints(5, 2, 3), 5, -1, False)],
    shape=lambda grad_output, indices, num_weights, *_: ((num_weights, grad_output._array.shape[-1]), grad_output._array.dtype),
)
def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    grad_weight = np.zeros((num_weights, grad_output.shape[-1]), grad_output.dtype)
    flat = indices.reshape(-1)
    values = grad_output.reshape(-1, grad_output.shape[-1])
    if padding_idx >= 0:
        kept = flat != padding_idx
        flat, values = flat[kept], values[kept]
    if scale_grad_by_freq:
        values = values / sums_by_place(flat, None, num_weights)[flat][:, None].astype(values.dtype)
    add_rows(grad_weight, flat, values)
    return grad_weight


embedding_dense_backward.vjp(grad_output=lambda g, indices, padding_idx: _dense_backward_grad(g, indices, padding_idx))


def _dense_backward_grad(g, indices, padding_idx):
    rows = aten.embedding(g, indices)
    if padding_idx >= 0:
        rows = rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    return rows


@op(
    "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
    nondiff=True,
    samples=lambda make: [(make(5, 4), make.ints(5, 3), 0.5, 2.0)],
)
def embedding_renorm_(self, indices, max_norm, norm_type):
    max_norm, rows = float(max_norm), np.unique(indices)
    norms = np.linalg.norm(self[rows], norm_type, axis=1)
    long = norms > max_norm
    self[rows[long]] *= (max_norm / (norms[long] + 1e-7))[:, None].astype(self.dtype)
