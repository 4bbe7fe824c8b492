"""Limits, element by element: the larger or smaller of two, and values kept within bounds."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.errors import no_order
from ..._dispatch.facts import Batching, ComplexError, Promotion
from ..._dispatch.promotion import rank
from ..._dispatch.registry import aten, composite, op
from .._support.common import like_with_numbers, no_kernel, with_numbers
from .._support.numbers import number_of
from .arithmetic import number

_FLOAT32 = np.dtype(np.float32)
_FLOAT64 = np.dtype(np.float64)
# From this size on, cutting to a range is faster than a maximum, which NumPy does not vectorize for a constant.
_MANY = 2048
_LEAST, _MOST = np.array(-np.inf, _FLOAT32), np.array(np.inf, _FLOAT32)

# ---------------------------------------------------------------- within two numbers


def _zero_scalar(g):
    """The gradient outside of the bounds: a 0-d zero, which torch makes as an op of its own."""
    return aten.scalar_tensor(0.0, dtype=g.dtype)


def _check_out(dtype, out):
    """RuntimeError where integers would be clamped by a float bound in place."""
    if out is not None and out.dtype.kind in "iub" and dtype.kind not in "iub":
        computed, wanted = dt.from_numpy(dtype), dt.from_numpy(out.dtype)
        raise RuntimeError(f"result type {computed.scalar_name} can't be cast to the desired output type {wanted.cpp_name}")


def _bound(value, dtype):
    if isinstance(value, complex):
        value = number_of(value, _FLOAT64).item()
    return number_of(value, dtype)


def _clamp_into(op, args, out):
    """Integers take part in promotion with their bounds, and what is clamped in place stays of its dtype."""
    if args[0]._array.dtype.kind in "iub":
        numbers = [(dt.number_dtype(bound), dt.NUMBER) for bound in args[1:] if bound is not None]
        computed = dt.result_type(rank(args[0]), *numbers)
        if out is args[0]:
            _check_out(computed.np, out._array)
        if computed.is_complex:
            raise no_order()
    return args


def _bound_into(op, args, out):
    if isinstance(args[1], complex):
        raise no_order()
    return args


@op(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    inplace=True,
    node="ClampBackward1",
    shape=like_with_numbers,
    samples=lambda make: [(make(3, 4), 0.3, 0.7), (make(3, 4), 0.3), (make(3, 4), None, 0.7)],
    batching=Batching.POINTWISE,
    complex_error=ComplexError(NotImplementedError, "clamp is not supported for complex types"),
    out_rule=_clamp_into,
)
def clamp(self, min, max, out=None):
    """Keeps each element between `min` and `max`, either of which may be left out.

    >>> torch.clamp(torch.tensor([-3.0, 0.5, 7.0]), min=-1, max=1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    dtype = self.dtype
    if dtype is not _FLOAT32 or max.__class__ is complex:
        if dtype.kind in "iub":
            if isinstance(min, complex) or isinstance(max, complex):
                _check_out(np.dtype(np.complex64), out)
                raise no_order()
            self = with_numbers(self, min, max)
            dtype = self.dtype
            if dtype.kind == "b":
                raise no_kernel("clamp" + "_max" * (min is None) + "_min" * (max is None) + "_scalar_cpu", self)
            _check_out(dtype, out)
        elif dtype.kind in "cW":
            raise no_order()
        if dtype is not _FLOAT32 or max.__class__ is complex:  # both are read before anything is written
            min, max = (None if bound is None else _bound(bound, dtype) for bound in (min, max))
    if dtype is _FLOAT32 and self.size > _MANY:
        return self.clip(_LEAST if min is None else number(min, dtype), _MOST if max is None else number(max, dtype), out=out)
    if min is not None:
        self = np.maximum(self, number(min, dtype), out=out)
        if max is None:
            return self
        out = self if self.__class__ is np.ndarray else None  # a fresh result may be written into
    return np.minimum(self, number(max, dtype), out=out)


def _both(first, second, g):
    """Where both are true, written into the first where that has the shape of the result, as torch does it."""
    return first.logical_and_(second) if first._array.shape == g._array.shape else aten.logical_and(first, second)


def _clamp_grad(g, self, min, max):
    zero = _zero_scalar(g)
    if min is not None and max is not None:
        inside = _both(self >= min, self <= max, g)
    else:
        inside = self >= min if min is not None else self <= max
    return aten.where(inside, g, zero)


clamp.vjp(self=_clamp_grad)


def _promoted(name, self, bound, out):
    """An array and its bound, promoted to a common dtype."""
    if self.dtype.kind in "cW" or isinstance(bound, complex):
        raise no_order()
    self = with_numbers(self, bound)
    if self.dtype.kind == "b":
        raise no_kernel(f"{name}_scalar_cpu", self)
    _check_out(self.dtype, out)
    return self, bound if self.dtype is _FLOAT32 else _bound(bound, self.dtype)


@op(
    "clamp_min(Tensor self, Scalar min) -> Tensor",
    inplace=True,
    shape=like_with_numbers,
    samples=lambda make: [(make(3, 4), 0.5)],
    batching=Batching.POINTWISE,
    complex_error=ComplexError(NotImplementedError, "clamp is not supported for complex types"),
    out_rule=_bound_into,
)
def clamp_min(self, min, out=None):
    """Keeps each element at or above `min`.

    >>> torch.clamp_min(torch.tensor([-3.0, 0.5]), -1)
    tensor([-1.0000,  0.5000])
    """
    if self.dtype is not _FLOAT32 or min.__class__ is complex:
        self, min = _promoted("clamp_min", self, min, out)
    elif self.size > _MANY:
        return self.clip(number(min, _FLOAT32), _MOST, out=out)
    return np.maximum(self, number(min, self.dtype), out=out)


clamp_min.vjp(self=lambda g, self, min: _clamp_grad(g, self, min, None))


@op(
    "clamp_max(Tensor self, Scalar max) -> Tensor",
    inplace=True,
    shape=like_with_numbers,
    samples=lambda make: [(make(3, 4), 0.5)],
    batching=Batching.POINTWISE,
    complex_error=ComplexError(NotImplementedError, "clamp is not supported for complex types"),
    out_rule=_bound_into,
)
def clamp_max(self, max, out=None):
    """Keeps each element at or below `max`.

    >>> torch.clamp_max(torch.tensor([0.5, 7.0]), 1)
    tensor([0.5000, 1.0000])
    """
    if self.dtype is not _FLOAT32 or max.__class__ is complex:
        self, max = _promoted("clamp_max", self, max, out)
    elif self.size > _MANY:
        return self.clip(_LEAST, number(max, _FLOAT32), out=out)
    return np.minimum(self, number(max, self.dtype), out=out)


clamp_max.vjp(self=lambda g, self, max: _clamp_grad(g, self, None, max))

# ---------------------------------------------------------------- within two tensors


def _bounds(make):
    return [(make(3, 4), make(3, 4) * 0.4, make(3, 4) * 0.4 + 0.5), (make(3, 4), make(4)), (make(3, 4), None, make(4))]


@op(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    promote=Promotion.REAL,
    tensors_only=True,
    inplace=True,
    node="ClampBackward0",
    samples=_bounds,
    complex_error=ComplexError(NotImplementedError, "clamp is not supported for complex types", first=True),
)
def clamp_tensor(self, min, max, out=None):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if min is not None:
        if max is not None and self.dtype.kind == "b":
            raise no_kernel("clamp_cpu", self)
        # The upper bound may lie in the memory that is written to.
        self = np.maximum(self, min, out=None if out is not None and max is not None else out)
    return self if max is None else np.minimum(self, max, out=out)


def _clamp_tensor_min_grad(g, self, min, max):
    if min is None:
        return None
    zero = _zero_scalar(g)
    # Bounds that cross: the upper one wins, so the lower one counts only where it is below.
    reached = self < min if max is None else _both(self < min, min < max, g)
    return aten.where(reached, g, zero)


def _clamp_tensor_max_grad(g, self, min, max):
    if max is None:
        return None
    zero = _zero_scalar(g)
    reached = self > max
    if min is not None:
        crossed = max < min
        reached = reached.logical_or_(crossed) if reached._array.shape == g._array.shape else aten.logical_or(reached, crossed)
    return aten.where(reached, g, zero)


clamp_tensor.vjp(self=_clamp_grad, min=_clamp_tensor_min_grad, max=_clamp_tensor_max_grad)

clamp_min_tensor = op(
    "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
    np.maximum,
    promote=Promotion.REAL,
    inplace=True,
    node="ClampMinBackward1",
    kernel_name="maximum_cpu",
)
clamp_min_tensor.vjp(
    self=lambda g, self, min: _clamp_grad(g, self, min, None),
    min=lambda g, self, min: _clamp_tensor_min_grad(g, self, min, None),
)

clamp_max_tensor = op(
    "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
    np.minimum,
    promote=Promotion.REAL,
    inplace=True,
    node="ClampMaxBackward1",
    kernel_name="minimum_cpu",
)
clamp_max_tensor.vjp(
    self=lambda g, self, max: _clamp_grad(g, self, None, max),
    max=lambda g, self, max: _clamp_tensor_max_grad(g, self, None, max),
)

composite(
    "clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    lambda self, min, max: aten.clamp(self, min, max),
    samples=lambda make: [(make(3, 4), 0.3, 0.7)],
    out_form=lambda self, min, max, out: aten.clamp(self, min, max, out=out),
    doc="""Keeps each element between `min` and `max`, as `clamp` does.

    >>> torch.clip(torch.tensor([-3.0, 0.5, 7.0]), -1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """,
)
composite(
    "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    lambda self, min, max: aten.clamp(self, min, max),
    samples=_bounds,
    out_form=lambda self, min, max, out: aten.clamp(self, min, max, out=out),
)
composite(
    "clip_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
    lambda self, min, max: aten.clamp_(self, min, max),
    samples=lambda make: [(make(3, 4), 0.3, 0.7)],
)
composite(
    "clip_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)",
    lambda self, min, max: aten.clamp_(self, min, max),
    samples=_bounds,
)

# ---------------------------------------------------------------- the larger, the smaller


def _shared(g, self, other):
    """Where both are equal, each takes half."""
    half = g / 2
    return aten.where(self == other, half, g)


maximum = op(
    "maximum(Tensor self, Tensor other) -> Tensor",
    np.maximum,
    promote=Promotion.REAL,
    tensors_only=True,
    complex_error=ComplexError(RuntimeError, "{} not implemented for complex tensors."),
    doc="""The larger of two elements; nan if either is.

    >>> torch.maximum(torch.tensor([1, 5]), torch.tensor([3, 2]))
    tensor([3, 5])
    """,
)
maximum.vjp(
    self=lambda g, self, other: _shared(g, self, other).masked_fill_(self < other, 0.0),
    other=lambda g, self, other: _shared(g, self, other).masked_fill_(self > other, 0.0),
)

minimum = op(
    "minimum(Tensor self, Tensor other) -> Tensor",
    np.minimum,
    promote=Promotion.REAL,
    tensors_only=True,
    complex_error=ComplexError(RuntimeError, "{} not implemented for complex tensors."),
    doc="""The smaller of two elements; nan if either is.

    >>> torch.minimum(torch.tensor([1, 5]), torch.tensor([3, 2]))
    tensor([1, 2])
    """,
)
minimum.vjp(
    self=lambda g, self, other: _shared(g, self, other).masked_fill_(self > other, 0.0),
    other=lambda g, self, other: _shared(g, self, other).masked_fill_(self < other, 0.0),
)


def _ignoring_nan(name, ufunc, first_wins, *, doc=None):
    spec = op(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        ufunc,
        promote=Promotion.REAL,
        tensors_only=True,
        complex_error=ComplexError(RuntimeError, "{} not implemented for complex tensors."),
        doc=doc,
    )

    def chosen(self, other):
        return first_wins(self, other).logical_or_(other.isnan())

    spec.vjp(
        self=lambda g, self, other: g.masked_fill(chosen(self, other).logical_not_(), 0),
        other=lambda g, self, other: g.masked_fill(chosen(self, other), 0),
    )


_ignoring_nan(
    "fmax",
    np.fmax,
    lambda self, other: self >= other,
    doc="""The larger of two elements; a nan loses against a number.

    >>> torch.fmax(torch.tensor([1.0, float("nan")]), torch.tensor([2.0, 3.0]))
    tensor([2., 3.])
    """,
)
_ignoring_nan(
    "fmin",
    np.fmin,
    lambda self, other: self <= other,
    doc="""The smaller of two elements; a nan loses against a number.

    >>> torch.fmin(torch.tensor([1.0, float("nan")]), torch.tensor([2.0, 3.0]))
    tensor([1., 3.])
    """,
)
