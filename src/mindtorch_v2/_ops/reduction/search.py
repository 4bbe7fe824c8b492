"""Looking values up: unique, searchsorted, bucketize, isin."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._core.tensor import Tensor
from ..._dispatch.facts import Surface
from ..._dispatch.registry import aten, op
from .._support.common import normal_dim
from .._support.elementwise import need_real

_INT64 = np.dtype(np.int64)


# ---------------------------------------------------------------- unique


def _comparable(array):
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def _none():
    return np.empty(0, _INT64)


def _unique_flat(self, return_inverse, return_counts):
    need_real("unique", self)
    values, inverse, counts = np.unique(_comparable(self), return_inverse=True, return_counts=True, equal_nan=False)
    return (
        values.astype(self.dtype, copy=False),
        inverse.reshape(self.shape) if return_inverse else _none(),
        counts if return_counts else _none(),
    )


@op(
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    samples=lambda make: [(make.ints(3, 3, 4),)],
)
def unique2(self, sorted, return_inverse, return_counts):
    return _unique_flat(self, return_inverse, return_counts)


@op(
    "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
    samples=lambda make: [(make.ints(3, 3, 4),)],
)
def unique_plain(self, sorted, return_inverse):
    return _unique_flat(self, return_inverse, False)[:2]


def _no_derivative(name):
    def formula(g):
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return formula


unique2.vjp(self=_no_derivative("_unique2"))
unique_plain.vjp(self=_no_derivative("_unique"))


def _check_slices(self, dim, name):
    dim = normal_dim(dim, self.ndim)
    if self.size == 0 and self.ndim and self.shape[dim]:
        raise RuntimeError(f"{name}: There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return dim


@op(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
    "-> (Tensor, Tensor, Tensor)",
    samples=lambda make: [(make.ints(2, 4, 2), 0)],
    surface=Surface.NONE,
)
def unique_dim(self, dim, sorted, return_inverse, return_counts):
    """The different slices along a dim, sorted, with their inverse and counts if asked for.

    >>> torch.ops.aten.unique_dim(torch.tensor([[1, 1], [1, 1], [0, 2]]), 0)[0]
    tensor([[0, 2],
            [1, 1]])
    """
    dim = _check_slices(self, dim, "unique_dim")
    rows = _comparable(np.ascontiguousarray(np.moveaxis(self, dim, 0)).reshape(self.shape[dim], -1))
    # Rows in lexicographic order, the first column counting most; equal neighbors are one.
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    ordered = rows[order]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(1)
    inverse = np.empty(len(rows), _INT64)
    inverse[order] = new.cumsum() - 1
    starts = new.nonzero()[0]
    values = np.ascontiguousarray(self.take(order[starts], dim))
    return values, inverse if return_inverse else _none(), np.diff(np.append(starts, len(rows))) if return_counts else _none()


unique_dim.vjp(self=_no_derivative("unique_dim"))


@op(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) "
    "-> (Tensor, Tensor, Tensor)",
    samples=lambda make: [(make.ints(2, 8),), (make.ints(2, 4, 2), True, True, 0)],
    handwritten=Surface.BOTH,
    out=False,
)
def unique_consecutive(self, return_inverse, return_counts, dim):
    """Leaves out elements that equal the one before.

    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 2, 1]))
    tensor([1, 2, 1])
    """
    if dim is None:
        lines, shape = self.reshape(-1, 1), self.shape
    else:
        dim = _check_slices(self, dim, "unique_consecutive")
        lines, shape = np.moveaxis(self, dim, 0).reshape(self.shape[dim], -1), (self.shape[dim],)
    new = np.ones(len(lines), np.bool_)
    new[1:] = (lines[1:] != lines[:-1]).any(1)
    starts = new.nonzero()[0]
    values = self.reshape(-1)[starts] if dim is None else np.ascontiguousarray(self.take(starts, dim))
    return (
        values,
        (new.cumsum() - 1).reshape(shape) if return_inverse else _none(),
        np.diff(np.append(starts, len(lines))) if return_counts else _none(),
    )


unique_consecutive.vjp(self=_no_derivative("unique_consecutive"))


def _asked_for(results, return_inverse, return_counts):
    wanted = [results[0], *([results[1]] if return_inverse else []), *([results[2]] if return_counts else [])]
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
):
    """The distinct elements (or slices along `dim`) in order; on request, where each went and how often it occurs."""
    results = (
        aten._unique2(input, sorted, return_inverse, return_counts)
        if dim is None
        else aten.unique_dim(input, dim, sorted, return_inverse, return_counts)
    )
    return _asked_for(results, return_inverse, return_counts)


def unique_without_repeats(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None):
    """The elements (or slices along `dim`) without those that equal the one before."""
    return _asked_for(aten.unique_consecutive(input, return_inverse, return_counts, dim), return_inverse, return_counts)


# ---------------------------------------------------------------- searchsorted


def _promoted(first, second):
    """Both arrays in a common dtype; extension floats are compared as float32."""
    first, second = _comparable(first), _comparable(second)
    if first.dtype == second.dtype:
        return first, second
    wanted = dt.promote_types(dt.from_numpy(first.dtype), dt.from_numpy(second.dtype)).np
    return first.astype(wanted), second.astype(wanted)


def _side(right, side, name):
    if side not in (None, "left", "right"):
        raise RuntimeError(f"{name}(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError(f"{name}(): side and right can't be set to opposites, got side of left while right was True")
    return "right" if right or side == "right" else "left"


def _look_up(edges, values, side, out_int32, sorter, name):
    if np.size(values):
        need_real("searchsorted_out_cpu", edges)
        need_real("searchsorted_out_cpu", np.asarray(values))
    if sorter is not None:
        if sorter.shape != edges.shape:
            raise RuntimeError(
                f"{name}(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(edges.shape)} and got sorter tensor {list(sorter.shape)}"
            )
        edges = np.take_along_axis(edges, sorter, -1)
    edges, values = _comparable(edges), _comparable(values)
    if edges.dtype != values.dtype:  # a value without dims takes the edges' dtype, as in arithmetic
        ranked = [(dt.from_numpy(one.dtype), dt.DIM_TENSOR if one.ndim else dt.ZERO_DIM_TENSOR) for one in (edges, values)]
        wanted = dt.result_type(*ranked).np
        edges, values = edges.astype(wanted), values.astype(wanted)
    if edges.ndim == 1:
        indices = edges.searchsorted(values, side)
    else:
        if edges.shape[:-1] != values.shape[:-1]:
            raise RuntimeError(
                f"{name}(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                "boundaries tensor and input value tensor must match, but we got boundaries tensor "
                f"{list(edges.shape)} and input value tensor {list(values.shape)}"
            )
        rows, wanted = edges.reshape(-1, edges.shape[-1]), values.reshape(-1, values.shape[-1])
        indices = np.empty(wanted.shape, _INT64)
        for row, line, places in zip(rows, wanted, indices, strict=True):
            places[...] = row.searchsorted(line, side)
        indices = indices.reshape(values.shape)
    return np.asarray(indices).astype(_index_dtype(out_int32), copy=False)


def _index_dtype(out_int32):
    return np.dtype(np.int32) if out_int32 else _INT64


@op(
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
    "str? side=None, Tensor? sorter=None) -> Tensor",
    nondiff=True,
    shape=lambda sorted_sequence, self, out_int32, *_: (self._array.shape, _index_dtype(out_int32)),
)
def searchsorted(sorted_sequence, self, out_int32, right, side, sorter):
    """Where values would be inserted into a sorted sequence to keep it sorted.

    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([0, 3, 9]))
    tensor([0, 1, 3])
    """
    return _look_up(sorted_sequence, self, _side(right, side, "torch.searchsorted"), out_int32, sorter, "torch.searchsorted")


@op(
    "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
    "str? side=None, Tensor? sorter=None) -> Tensor",
    nondiff=True,
    samples=lambda make: [(make(4), 0.5)],
    shape=lambda sorted_sequence, self, out_int32, *_: ((), _index_dtype(out_int32)),
)
def searchsorted_number(sorted_sequence, self, out_int32, right, side, sorter):
    if sorted_sequence.ndim != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundary tensor dimension is "
            f"1, but we got boundary tensor dim({sorted_sequence.ndim})"
        )
    return _look_up(
        sorted_sequence,
        np.asarray(self),
        _side(right, side, "torch.searchsorted"),
        out_int32,
        sorter,
        "torch.searchsorted",
    )


def _check_boundaries(boundaries):
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")


@op(
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    nondiff=True,
    shape=lambda self, boundaries, out_int32, right: (self._array.shape, _index_dtype(out_int32)),
    samples=lambda make: [(make(3, 4), make(5))],
)
def bucketize(self, boundaries, out_int32, right):
    """The bucket of each element, between boundaries that are sorted.

    >>> torch.bucketize(torch.tensor([1, 4, 9]), torch.tensor([2, 5, 8]))
    tensor([0, 1, 3])
    """
    _check_boundaries(boundaries)
    return _look_up(boundaries, self, "right" if right else "left", out_int32, None, "torch.bucketize")


@op(
    "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    nondiff=True,
    samples=lambda make: [(0.5, make(5))],
    shape=lambda self, boundaries, out_int32, right: ((), _index_dtype(out_int32)),
    out=False,
)
def bucketize_number(self, boundaries, out_int32, right):
    _check_boundaries(boundaries)
    return _look_up(boundaries, np.asarray(self), "right" if right else "left", out_int32, None, "torch.bucketize")


# ---------------------------------------------------------------- isin


def _check_isin(*operands):
    for operand in operands:
        kind = dt.from_numpy(operand.dtype) if isinstance(operand, np.ndarray) else dt.number_dtype(operand)
        if kind is dt.bool_ or kind.is_complex:
            raise RuntimeError(f"Unsupported input type encountered for isin(): {kind.scalar_name}")


def _is_in(elements, tests, invert):
    _check_isin(elements, tests)
    elements, tests = _promoted(elements, tests)
    return np.isin(elements, tests, invert=invert)


@op(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
    nondiff=True,
    shape=lambda elements, *_: (elements._array.shape, np.dtype(np.bool_)),
)
def isin(elements, test_elements, assume_unique, invert):
    """Which elements are among the test elements.

    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
    tensor([False,  True, False])
    """
    return _is_in(elements, test_elements, invert)


@op(
    "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
    nondiff=True,
    shape=lambda elements, *_: (elements._array.shape, np.dtype(np.bool_)),
    samples=lambda make: [(make.ints(3, 4), 1)],
)
def isin_number(elements, test_element, assume_unique, invert):
    _check_isin(elements, test_element)
    return np.not_equal(elements, test_element) if invert else np.equal(elements, test_element)


@op(
    "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
    nondiff=True,
    shape=lambda *_: ((), np.dtype(np.bool_)),
    samples=lambda make: [(1, make.ints(3, 4))],
)
def isin_of_number(element, test_elements, assume_unique, invert):
    _check_isin(element, test_elements)
    return np.asarray(bool((test_elements == element).any()) != invert)


METHODS = {"unique": unique, "unique_consecutive": unique_without_repeats}
FUNCTIONS = {"unique": unique, "unique_consecutive": unique_without_repeats}
