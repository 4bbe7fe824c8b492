"""Elements at positions of the flattened tensor: take, put."""

from __future__ import annotations

import numpy as np

from ..._core.determinism import alert_not_deterministic
from ..._core.layout import dense_copy
from ..._dispatch.facts import Overlap
from ..._dispatch.registry import aten, op
from .._support.common import like_first, scalar_name
from .._support.out_rules import dtype_of_self, exact_dtype
from ._checks import check_long


def _take_error(error, array):
    return IndexError(f"out of range: tried to access index {str(error).split()[1]} on a tensor of {array.size} elements.")


@op(
    "take(Tensor self, Tensor index) -> Tensor",
    checks_overlap=Overlap.EVERY,
    shape=lambda self, index: (index._array.shape, self._array.dtype),
    samples=lambda make: [(make(3, 4), make.ints(12, 2, 3))],
    out_rule=exact_dtype(
        dtype_of_self,
        lambda want, have: (
            "take(): self and out expected to have the same dtype, but got self.dtype = "
            f"{want.scalar_name} and out.dtype = {have.scalar_name}"
        ),
    ),
)
def take(self, index):
    """The elements at positions of the flattened tensor.

    >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
    tensor([1, 4])
    """
    check_long(index, "take")
    if not self.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    try:
        return self.take(index)
    except IndexError as error:
        raise _take_error(error, self) from None


take.vjp(self=lambda g, self, index: aten.put_(aten.zeros_like(self), index, g, True))


@op(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    inplace=True,
    checks_overlap=Overlap.ANY,
    shape=like_first,
    samples=lambda make: [(make(3, 4), make.ints(12, 5), make(5), True), (make(3, 4), make.ints(1, 1), make(1))],
    out=False,
)
def put(self, index, source, accumulate, out=None):
    """Puts values at positions of the flattened tensor.

    >>> torch.put(torch.tensor([1, 2, 3]), torch.tensor([0, 2]), torch.tensor([10, 30]))
    tensor([10,  2, 30])
    """
    if not accumulate:
        alert_not_deterministic("put_")
    check_long(index, "put_")
    if self.dtype != source.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{scalar_name(self)} and source.dtype = {scalar_name(source)}"
        )
    if index.size != source.size:
        raise IndexError(
            f"put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.size}, index.numel() = {index.size}"
        )
    if out is None:
        out = dense_copy(self)
    flat = out.reshape(-1)  # a copy where the memory does not lie in order, written back below
    values, places = source.reshape(-1), index.reshape(-1)
    try:
        if accumulate:
            np.add.at(flat, places, values)
        else:
            flat[places] = values
    except IndexError as error:
        raise _take_error(error, out) from None
    if not out.flags.c_contiguous:
        out[...] = flat.reshape(out.shape)
    return out


put.vjp(
    self=lambda g, index, source_shape, accumulate: (
        g if accumulate else aten.put(g, index, aten.new_zeros(g, source_shape), False)
    ),
    source=lambda g, index, source_shape: aten.reshape(aten.take(g, index), source_shape),
)
