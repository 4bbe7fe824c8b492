"""Comparison and logic, and choosing by a condition."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._core.single_pass import LARGE
from ..._core.tensor import Tensor
from ..._dispatch.facts import Batching, Promotion, Surface
from ..._dispatch.registry import aten, composite, op, packets
from .._support.common import scalar_name
from .._support.elementwise import chosen
from .._support.out_rules import exactly
from .arithmetic import fitting_number, number, zero_grad

_ndarray = np.ndarray
_BOOL = np.dtype(np.bool_)


_DOCS = {
    "logical_and": """Whether both elements are not zero.

    >>> torch.logical_and(torch.tensor([1, 0]), torch.tensor([5, 5]))
    tensor([ True, False])
    """,
    "logical_or": """Whether either element is not zero.

    >>> torch.logical_or(torch.tensor([1, 0]), torch.tensor([0, 0]))
    tensor([ True, False])
    """,
    "logical_xor": """Whether exactly one of two elements is not zero.

    >>> torch.logical_xor(torch.tensor([1, 1]), torch.tensor([0, 5]))
    tensor([ True, False])
    """,
}


def truth_like(self, *_rest):
    """Shape rule: one truth value per element."""
    return self._array.shape, _BOOL


op(
    "eq.Tensor(Tensor self, Tensor other) -> Tensor",
    np.equal,
    promote=Promotion.COMPARE,
    nondiff=True,
    inplace=True,
    number_form=True,
    doc="""Whether elements are equal.

    >>> torch.eq(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([ True, False])
    """,
)
op(
    "ne.Tensor(Tensor self, Tensor other) -> Tensor",
    np.not_equal,
    promote=Promotion.COMPARE,
    nondiff=True,
    inplace=True,
    aliases=("not_equal",),
    number_form=True,
    doc="""Whether elements differ.

    >>> torch.ne(torch.tensor([1, 2]), torch.tensor([1, 3]))
    tensor([False,  True])
    """,
)


def _ordered(name, ufunc, alias, *, doc=None):
    """An ordering comparison; it refuses complex numbers, which NumPy orders and torch does not."""

    def kernel(self, other, out=None):
        if self.dtype.kind == "c":
            raise TypeError("complex numbers have no order")  # put into torch's words after what it looks at first
        return ufunc(self, other, out)

    op(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        kernel,
        promote=Promotion.COMPARE,
        nondiff=True,
        inplace=True,
        shared_from=LARGE,
        aliases=(alias,),
        number_form=True,
        doc=doc,
    )


_ordered(
    "lt",
    np.less,
    "less",
    doc="""Whether each element is smaller than the other.

    >>> torch.lt(torch.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])
    """,
)
_ordered(
    "le",
    np.less_equal,
    "less_equal",
    doc="""Whether each element is at most the other.

    >>> torch.le(torch.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """,
)
_ordered(
    "gt",
    np.greater,
    "greater",
    doc="""Whether each element is larger than the other.

    >>> torch.gt(torch.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """,
)
_ordered(
    "ge",
    np.greater_equal,
    "greater_equal",
    doc="""Whether each element is at least the other.

    >>> torch.ge(torch.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """,
)

for _name, _logic in (("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)):
    op(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        _logic,
        doc=_DOCS[_name],
        promote=Promotion.COMPARE,
        nondiff=True,
        inplace=True,
        tensors_only=True,
    )

op(
    "logical_not(Tensor self) -> Tensor",
    np.logical_not,
    promote=Promotion.COMPARE,
    nondiff=True,
    inplace=True,
    doc="""Whether an element is zero.

    >>> torch.logical_not(torch.tensor([0, 3]))
    tensor([ True, False])
    """,
)

# In place, what was there before is gone: its gradient is zero, and so is that of what it is compared with.
for _name in ("logical_and_", "logical_or_", "logical_xor_", "logical_not_"):
    for _spec in packets[_name]:
        _spec.vjp(self=zero_grad)
for _name in ("eq_", "ne_", "lt_", "le_", "gt_", "ge_"):
    for _spec in packets[_name]:
        _spec.vjp(self=zero_grad, other=zero_grad)
        _spec.stops_at_integers = True

# ---------------------------------------------------------------- what kind of number


def _real(name, array):
    if array.dtype.kind in "cW":
        raise RuntimeError(f"{name} does not support complex inputs.")
    return array


def _of_floats(name, test, *, doc=None, out=True):
    """A test that no integer passes."""
    op(
        f"{name}(Tensor self) -> Tensor",
        lambda self: test(self) if self.dtype.kind in "fcVW" else np.zeros(self.shape, np.bool_),
        nondiff=True,
        shape=truth_like,
        batching=Batching.POINTWISE,
        doc=doc,
        out=out,
        out_dtype=exactly(lambda want, have: f"{name} does not support non-boolean outputs."),
    )


_of_floats(
    "isnan",
    np.isnan,
    doc="""Which elements are not a number.

    >>> torch.isnan(torch.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """,
    out=False,
)
_of_floats(
    "isinf",
    np.isinf,
    doc="""Which elements are infinite, with either sign.

    >>> torch.isinf(torch.tensor([1.0, float("-inf"), float("nan")]))
    tensor([False,  True, False])
    """,
    out=False,
)
_of_floats(
    "isposinf",
    lambda self: _real("isposinf", self) == np.inf,
    doc="""Which elements are plus infinity.

    >>> torch.isposinf(torch.tensor([float("inf"), float("-inf")]))
    tensor([ True, False])
    """,
)
_of_floats(
    "isneginf",
    lambda self: _real("isneginf", self) == -np.inf,
    doc="""Which elements are minus infinity.

    >>> torch.isneginf(torch.tensor([float("inf"), float("-inf")]))
    tensor([False,  True])
    """,
)


@composite("isfinite(Tensor self) -> Tensor")
def isfinite(self):
    """Which elements are neither infinite nor nan.

    >>> torch.isfinite(torch.tensor([1.0, float("inf"), float("nan")]))
    tensor([ True, False, False])
    """
    kind = self._array.dtype.kind
    if kind in "cW":  # part by part: the absolute value of a finite number may be infinite
        return aten.isfinite(aten.real(self)).__iand__(aten.isfinite(aten.imag(self)))
    if kind not in "fV":
        return aten.ones_like(self, dtype=dt.bool_)
    return (self == self) * (self.abs() != np.inf)


composite(
    "isreal(Tensor self) -> Tensor",
    lambda self: aten.imag(self) == 0 if self._array.dtype.kind in "cW" else aten.ones_like(self, dtype=dt.bool_),
    doc="""Which elements have no imaginary part.

    >>> torch.isreal(torch.tensor([1 + 0j, 1 + 1j]))
    tensor([ True, False])
    """,
)

# ---------------------------------------------------------------- nearly equal


@composite("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor")
def isclose(self, other, rtol, atol, equal_nan):
    """Which elements are close: `|input - other| <= atol + rtol * |other|`.

    >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0 + 1e-9, 2.1]))
    tensor([ True, False])
    """
    if self._array.dtype != other._array.dtype:
        raise RuntimeError(f"{self.dtype.scalar_name} did not match {other.dtype.scalar_name}")
    for place, (name, value) in enumerate((("rtol", rtol), ("atol", atol)), 3):
        if isinstance(value, Tensor) and value.requires_grad:
            raise TypeError(f"isclose(): argument '{name}' (position {place}) must be float, not Tensor")
    if rtol < 0 or atol < 0:
        raise RuntimeError(
            f"{'rtol' if rtol < 0 else 'atol'} must be greater than or equal to zero, but got {rtol if rtol < 0 else atol}"
        )
    close = self == other
    if equal_nan and self._array.dtype.kind in "fcV":
        close.__ior__(aten.bitwise_and(self != self, other != other))
    if rtol == 0 and atol == 0:
        return close
    kind = self._array.dtype.kind
    if kind in "iub":  # the difference of unsigned numbers would wrap around
        other = other.to(dt.get_default_dtype())
    allowed = (other * rtol).abs() + atol
    error = ((self.to(dt.get_default_dtype()) if kind == "b" else self) - other).abs()
    close.__ior__(aten.isfinite(error).__iand__(error <= allowed))
    return close


composite(
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
    lambda self, other, rtol, atol, equal_nan: bool(aten.item(aten.all(aten.isclose(self, other, rtol, atol, equal_nan)))),
    doc="""Whether all elements of two tensors are close: `|input - other| <= atol + rtol * |other|`.

    >>> torch.allclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-9]))
    True
    """,
    dispatched=True,
)


@op("equal(Tensor self, Tensor other) -> bool", nondiff=True)
def equal(self, other):
    """Whether two tensors have the same shape and the same elements.

    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    return self.shape == other.shape and bool((self == other).all())


is_same_size = op(
    "is_same_size(Tensor self, Tensor other) -> bool",
    lambda self, other: self.shape == other.shape,
    nondiff=True,
    doc="""Whether two tensors have the same shape.

    >>> torch.is_same_size(torch.zeros(2, 3), torch.ones(2, 3))
    True
    """,
)
is_same_size.kernel_for("meta")(lambda self, other: self.shape == other.shape)


def _of_truths(name, reduce):
    def kernel(self):
        if self.dtype is not _BOOL:
            raise RuntimeError(f"{name} expected a boolean tensor, but got {scalar_name(self)}")
        return reduce(self, None)

    op(
        f"{name}(Tensor self) -> Tensor",
        kernel,
        nondiff=True,
        shape=lambda self: ((), _BOOL),
        samples=lambda make: [(make.bools(3, 4),)],
    )


_of_truths("_is_all_true", np.logical_and.reduce)
_of_truths("_is_any_true", np.logical_or.reduce)

# ---------------------------------------------------------------- choosing


def choice(value, dtype):
    """A number to choose, as a 0-d array; RuntimeError where it does not fit. Half precision has an infinity for it."""
    return number(value, dtype) if dtype.itemsize == 2 and dtype.kind in "fV" else fitting_number(value, dtype)


@op(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    promote=Promotion.FITTING,
    promoted=("self", "other"),
    wraps_number=True,
    samples=lambda make: [(make.bools(3, 4), make(3, 4), make(3, 4)), (make.bools(4), make(3, 1), make(1))],
    number_form=True,
    handwritten=Surface.METHOD,
)
def where(condition, self, other):
    """Takes elements of `input` where the condition holds, of `other` elsewhere; the condition alone gives positions.

    >>> torch.where(torch.tensor([True, False]), torch.tensor([1, 2]), torch.tensor([10, 20]))
    tensor([ 1, 20])
    """
    if condition.dtype is not _BOOL:
        if condition.dtype != np.uint8:
            raise RuntimeError(
                f"where expected condition to be a boolean tensor, but got a tensor with dtype {scalar_name(condition)}"
            )
        condition = condition.astype(np.bool_)
    if other.__class__ is not _ndarray:
        other = choice(other, self.dtype)
    elif self.__class__ is not _ndarray:
        self = choice(self, other.dtype)
    return chosen(condition, self, other)


where.vjp(self=lambda g, condition: aten.where(condition, g, 0.0), other=lambda g, condition: aten.where(condition, 0.0, g))
