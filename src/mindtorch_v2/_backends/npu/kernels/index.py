"""NPU kernels that look up, join and mask: embedding, gather, scatter_add, index_select, cat, stack, masked_fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._core.keys import NPU
from ...._core.tensor import Tensor
from .. import tensors
from ._call import FLOATS, Call, kernel


@kernel("embedding", needs="Embedding")
def embedding(call: Call, weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Any:
    if sparse:
        return NotImplemented
    out = call.output()
    call.run("Embedding", weight._array, indices._array, out)
    return out


@kernel("embedding_dense_backward", needs="EmbeddingDenseBackward")
def embedding_backward(
    call: Call, grad_output: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    if padding_idx < 0 and padding_idx != -1:
        return NotImplemented
    out = call.output()
    # No padding row is -1, which CANN takes as the largest unsigned number.
    call.run(
        "EmbeddingDenseBackward",
        grad_output._array,
        indices._array,
        num_weights,
        padding_idx % (1 << 64),
        scale_grad_by_freq,
        out,
    )
    return out


@kernel("cat", needs="Cat", mixed=True)
def cat(call: Call, inputs: Any, dim: int) -> Any:
    out = call.output()
    parts = [call.cast(tensor._array, out.dtype) for tensor in inputs if tensor._array.shape != (0,)]
    call.run("Cat", parts, dim % max(out.ndim, 1), out)
    return out


@kernel("stack", needs="Stack", mixed=True)
def stack(call: Call, inputs: Any, dim: int) -> Any:
    out = call.output()
    call.run("Stack", [call.cast(tensor._array, out.dtype) for tensor in inputs], dim % out.ndim, out)
    return out


def _reaches(array: np.ndarray, dim: int, index: np.ndarray) -> bool:
    """Whether every place of an index has a row along `dim` to look in."""
    if array.ndim != index.ndim or not -array.ndim <= dim < array.ndim:
        return False
    return all(n <= m for d, (n, m) in enumerate(zip(index.shape, array.shape, strict=True)) if d != dim % array.ndim)


@kernel("gather", needs="Gather")
def gather(call: Call, self: Any, dim: int, index: Any, sparse_grad: bool) -> Any:
    if sparse_grad or not _reaches(self._array, dim, index._array):
        return NotImplemented
    out = call.output()
    call.run("Gather", self._array, dim, index._array, out)
    return out


@kernel("index_select", needs="IndexSelect")
def index_select(call: Call, self: Any, dim: int, index: Any) -> np.ndarray:
    out = call.output()
    call.run("IndexSelect", self._array, dim, index._array, out)
    return out


@kernel("scatter_add", needs="ScatterAdd")
def scatter_add(call: Call, self: Any, dim: int, index: Any, src: Any) -> Any:
    fits = src._array.ndim == index._array.ndim and all(np.less_equal(index._array.shape, src._array.shape))
    if not fits or not _reaches(self._array, dim, index._array):
        return NotImplemented
    out = call.output()
    call.run("ScatterAdd", self._array, dim, index._array, src._array, out)
    return out


def _triangle(name: str, operator: str) -> None:
    @kernel(name, needs=operator)
    def run(call: Call, self: Any, diagonal: int) -> np.ndarray:
        out = call.output()
        call.run(operator, self._array, diagonal, out)
        return out


_triangle("tril", "Tril")
_triangle("triu", "Triu")


def _fill_number(array: np.ndarray, mask: Any, value: Any) -> Any:
    """The number to fill with, None for what the CPU is to do or to refuse.

    That of a tensor on the device would have to be waited for.
    """
    if mask._array.dtype != np.bool_ or not mask._keys & NPU or (isinstance(value, Tensor) and value._keys & NPU):
        return None
    number = value._array.item() if isinstance(value, Tensor) else value
    if array.dtype in FLOATS or isinstance(number, bool):
        return number
    limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" and isinstance(number, int) else None
    return number if limits is not None and limits.min <= number <= limits.max else None


@kernel("masked_fill_.Scalar", "masked_fill_.Tensor", needs="InplaceMaskedFillScalar", mixed=True)
def masked_fill_(call: Call, self: Any, mask: Any, value: Any) -> Any:
    number = _fill_number(self._array, mask, value)
    if number is None:
        return NotImplemented
    call.run("InplaceMaskedFillScalar", self._array, mask._array, number)
    return self


@kernel("masked_fill.Scalar", "masked_fill.Tensor", needs="InplaceMaskedFillScalar", mixed=True)
def masked_fill(call: Call, self: Any, mask: Any, value: Any) -> Any:
    number = _fill_number(self._array, mask, value)
    if number is None:
        return NotImplemented
    out = call.output()
    tensors.assign(out, self._array)
    call.run("InplaceMaskedFillScalar", out, mask._array, number)
    return out
