"""Masks and choices: masked_fill with a tensor, masked_select, masked_scatter, nonzero, and the forms of where."""

from __future__ import annotations

from operator import index

import numpy as np

from ..._core import dtype as dt
from ..._core.tensor import Tensor
from ..._dispatch import entry_globals
from ..._dispatch.errors import broadcast_mismatch
from ..._dispatch.facts import Batching, Layout, Overlap, Surface
from ..._dispatch.promotion import rank
from ..._dispatch.registry import aten, composite, op
from .._support.common import cpp_name, scalar_name
from .._support.elementwise import chosen
from .._support.numbers import number_of
from .._support.out_rules import exactly
from ._expanded_writes import is_expanded, writable

_BOOL = np.dtype(np.bool_)
_INT64 = np.dtype(np.int64)


def _broadcast(*arrays):
    """Arrays seen in their common shape."""
    try:
        return np.broadcast_arrays(*arrays)
    except ValueError:
        raise RuntimeError(broadcast_mismatch([a.shape for a in arrays])) from None


def _check_mask(mask, name):
    if mask.dtype != _BOOL:
        raise RuntimeError(f"{name}: expected BoolTensor for mask")


# ---------------------------------------------------------------- masks


def no_mask(mask):
    """What torch says where masked_fill is given something else than a mask."""
    return RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {cpp_name(mask)}")


def filled(self, mask, value, out):
    """`self`, or `out` in its place, with a 0-d array where the mask is true."""
    try:
        if out is None:
            return chosen(mask, value, self)
        fill_places(out, value, mask)
    except ValueError:
        wrong = broadcast_mismatch([self.shape, mask.shape] if out is not None else [mask.shape, self.shape])
        if wrong is None:
            wrong = (
                f"output with shape {list(self.shape)} doesn't match the broadcast shape "
                f"{list(np.broadcast_shapes(self.shape, mask.shape))}"
            )
        raise RuntimeError(wrong) from None
    return out


def fill_places(out, value, mask):
    """Write `value` where the mask is; where one element stands in several places of `out`, any of them counts."""
    if not out.size:
        np.broadcast_to(mask, out.shape)  # ValueError if it does not fit
        return
    if is_expanded(out):
        out = writable(out, "masked_fill_", "tensor[mask] = scalar")
        repeated = tuple(dim for dim, stride in enumerate(out.strides) if stride == 0)
        mask = np.broadcast_to(mask, out.shape).any(axis=repeated, keepdims=True)
        out = out[tuple(slice(0, 1) if dim in repeated else slice(None) for dim in range(out.ndim))]
    if value.dtype == out.dtype and mask.shape == out.shape:
        chosen(mask, value, out, out)
    else:
        np.copyto(out, value, where=mask, casting="unsafe")


@op(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    refuses_integer_results=True,
    layout=Layout.ROW_MAJOR,
    inplace=True,
    node="MaskedFillBackward1",
    shape=lambda self, mask, value: (np.broadcast_shapes(self._array.shape, mask._array.shape), self._array.dtype),
    samples=lambda make: [(make(3, 4), make.bools(3, 4), make())],
    batching=Batching.POINTWISE,
    checks_overlap=Overlap.PART,
    out=False,
)
def masked_fill_tensor(self, mask, value, out=None):
    """Puts a value where the mask is true.

    >>> torch.masked_fill(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]), 0)
    tensor([0, 2, 0])
    """
    if mask.dtype != _BOOL:
        raise no_mask(mask)
    if value.ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    return filled(self, mask, value if value.dtype == self.dtype else number_of(value.item(), self.dtype), out)


masked_fill_tensor.vjp(
    self=lambda g, mask: aten.masked_fill(g, mask, 0), value=lambda g, mask: aten.sum(aten.masked_select(g, mask))
)


@op("masked_select(Tensor self, Tensor mask) -> Tensor", samples=lambda make: [(make(3, 4), make.bools(3, 4))])
def masked_select(self, mask):
    """The elements where the mask is true, as a tensor of one dim.

    >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
    tensor([1, 3])
    """
    _check_mask(mask, "masked_select")
    if self.shape != mask.shape:
        self, mask = _broadcast(self, mask)
    return self[mask].reshape(-1)


masked_select.vjp(self=lambda g, self, mask: aten.masked_select_backward(g, self, mask))


@composite(
    "masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor",
    samples=lambda make: [(make(12), make(3, 4), make.bools(3, 4))],
)
def masked_select_backward(grad, input, mask):
    shape = np.broadcast_shapes(input._array.shape, mask._array.shape)
    zeros = aten.zeros_like(aten.expand(input, shape))
    return aten.masked_scatter_(zeros, mask, grad)


@op(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    inplace=True,
    shape=lambda self, mask, source: (np.broadcast_shapes(self._array.shape, mask._array.shape), self._array.dtype),
    samples=lambda make: [(make(3, 4), make.bools(3, 4), make(3, 4))],
    out=False,
)
def masked_scatter(self, mask, source, out=None):
    """Puts elements of `source`, in order, where the mask is true.

    >>> torch.masked_scatter(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]), torch.tensor([10, 20]))
    tensor([10,  2, 20])
    """
    if mask.dtype != _BOOL:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {scalar_name(mask)}")
    if self.dtype != source.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{scalar_name(self)} and {scalar_name(source)}"
        )
    if out is None:
        self, mask = _broadcast(self, mask)
        out = self.copy("C")
    else:
        mask = np.broadcast_to(mask, out.shape)
    count = int(np.count_nonzero(mask))
    if source.size < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    out[mask] = source.reshape(-1)[:count]
    return out


masked_scatter.vjp(
    self=lambda g, mask: aten.masked_fill(g, mask, 0),
    source=lambda g, mask, source_shape: aten.masked_scatter_backward(g, mask, source_shape),
)


@op(
    "masked_scatter_backward(Tensor grad_output, Tensor mask, int[] sizes) -> Tensor",
    shape=lambda grad_output, mask, sizes: (tuple(sizes), grad_output._array.dtype),
    samples=lambda make: [(make(3, 4), make.bools(3, 4), (3, 4))],
)
def masked_scatter_backward(grad_output, mask, sizes):
    made = np.zeros(sizes, grad_output.dtype)
    picked = grad_output[np.broadcast_to(mask, grad_output.shape)]
    made.reshape(-1)[: picked.size] = picked
    return made


masked_scatter_backward.vjp(
    grad_output=lambda g, mask, grad_output_shape: aten.masked_scatter(aten.new_zeros(g, grad_output_shape), mask, g)
)


# ---------------------------------------------------------------- where something is true


@op(
    "nonzero(Tensor self) -> Tensor",
    nondiff=True,
    samples=lambda make: [(make.bools(3, 4),)],
    handwritten=Surface.BOTH,
    out_dtype=exactly(
        lambda want, have: (
            f"nonzero: Expected out tensor to have scalar type {want.scalar_name} but got scalar type{have.scalar_name}"
        )
    ),
)
def nonzero_rows(self):
    """The positions of the elements that are not zero, one row each.

    >>> torch.nonzero(torch.tensor([0, 3, 0, 5]))
    tensor([[1],
            [3]])
    """
    if not self.ndim:
        return np.zeros((int(bool(self)), 0), _INT64)
    # One row of positions per dim, seen the other way round: columns are contiguous, as torch has them.
    return np.array(self.nonzero()).T


composite(
    "nonzero_numpy(Tensor self) -> Tensor[]",
    lambda self: aten.unbind(aten.nonzero(self if self._array.ndim else aten.unsqueeze(self, 0)), 1),
    doc="""The positions of the elements that are not zero, one tensor for each dim.

    >>> list(torch.ops.aten.nonzero_numpy(torch.tensor([0, 3, 0, 5])))
    [tensor([1, 3])]
    """,
)
composite(
    "argwhere(Tensor self) -> Tensor",
    lambda self: aten.nonzero(self),
    doc="""The positions of the elements that are not zero, one row each.

    >>> torch.argwhere(torch.tensor([[0, 1], [1, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """,
)


@op(
    "nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
    nondiff=True,
    shape=lambda self, size, fill_value: ((size, self._array.ndim), _INT64),
    samples=lambda make: [(make.bools(3, 4), {"size": 3})],
)
def nonzero_static(self, size, fill_value):
    """The first `size` positions of elements that are not zero, filled up with `fill_value`.

    >>> torch.nonzero_static(torch.tensor([0, 3, 0]), size=2)
    tensor([[ 1],
            [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = nonzero_rows.kernel(self)[:size]
    made = np.full((size, self.ndim), index(fill_value), _INT64)
    made[: len(found)] = found
    return made


# ---------------------------------------------------------------- where


def _same_dtype(number, tensor):
    """A number as a tensor, and the tensor, both of the dtype that `where` gives: in the ops that torch runs for that."""
    kind = dt.result_type(rank(tensor), rank(number))
    return aten.scalar_tensor(number, dtype=kind), aten.to(tensor, kind)


def _where_spelled(_op, args):
    condition, self, other = args
    number, converted = _same_dtype(other, self)
    return aten.where(condition, converted, number)


entry_globals.install(spelled=_where_spelled)


@composite(
    "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
    samples=lambda make: [(make.bools(3, 4), 2.0, make(3, 4))],
    number_form=True,
    out=True,
    handwritten=Surface.METHOD,
)
def where_number_first(condition, self, other):
    number, converted = _same_dtype(self, other)
    return aten.where(condition, number, converted)


@composite(
    "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
    samples=lambda make: [(make.bools(3, 4), 1.0, 2.0)],
    number_form=True,
    out=True,
    handwritten=Surface.METHOD,
)
def where_numbers(condition, self, other):
    kind = dt.result_type(rank(self), rank(other))
    second = aten.scalar_tensor(other, dtype=kind)  # first, as recordings of torch show
    return aten.where(condition, aten.scalar_tensor(self, dtype=kind), second)


composite(
    "where(Tensor condition) -> Tensor[]",
    lambda condition: aten.nonzero_numpy(condition),
    samples=lambda make: [(make.bools(3, 4),)],
    number_form=True,
    out=True,
    handwritten=Surface.METHOD,
)


def where_method(self, condition, other):
    return aten.where(condition, self, other)


def nonzero(input, *, as_tuple=False, out=None):
    """The positions of all elements that are not zero, one row each; as_tuple=True gives one tensor per dim."""
    if as_tuple and out is None:
        return aten.nonzero_numpy(input)
    if as_tuple and isinstance(out, Tensor):
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    return aten.nonzero(input) if out is None else aten.nonzero(input, out=out)


METHODS = {"where": where_method, "nonzero": nonzero}
FUNCTIONS = {"nonzero": nonzero}
