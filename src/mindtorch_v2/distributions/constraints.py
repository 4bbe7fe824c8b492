"""Constraints: sets of values, each with `check(value)` that says elementwise (or event by event) what lies in it."""

from __future__ import annotations

from typing import Any

from .. import _surface as _torch
from .._core import dtype as dt

torch: Any = _torch

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]


class Constraint:
    """A set of values. `event_dim` is how many dims one value has."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.lstrip("_") + "()"


class _Dependent(Constraint):
    """Depends on a distribution's parameters, so it is known only for an instance."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> _Dependent:
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on parameters."""
    return isinstance(constraint, _Dependent)


class dependent_property(property, _Dependent):
    """A property that gives the constraint of an instance."""

    def __init__(self, fn: Any = None, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Any) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _IntegerInterval(Constraint):
    is_discrete = True

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerAtLeast(Constraint):
    is_discrete = True

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value: Any) -> Any:
        return value == value  # false for NaN alone


class _Bounded(Constraint):
    def __init__(self, lower: Any = None, upper: Any = None, closed: bool = True) -> None:
        self.lower_bound, self.upper_bound, self.closed = lower, upper, closed

    def __repr__(self) -> str:
        if self.upper_bound is None:
            return f"GreaterThan{'Eq' if self.closed else ''}(lower_bound={self.lower_bound})"
        if self.lower_bound is None:
            return f"LessThan(upper_bound={self.upper_bound})"
        return f"Interval(lower_bound={self.lower_bound}, upper_bound={self.upper_bound})"

    def check(self, value: Any) -> Any:
        is_inside = value == value
        if self.lower_bound is not None:
            is_inside = is_inside & (value >= self.lower_bound if self.closed else value > self.lower_bound)
        if self.upper_bound is not None:
            is_inside = is_inside & (value <= self.upper_bound if self.closed else value < self.upper_bound)
        return is_inside


class _HalfOpenInterval(Constraint):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value < self.upper_bound)

    def __repr__(self) -> str:
        return f"HalfOpenInterval(lower_bound={self.lower_bound}, upper_bound={self.upper_bound})"


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        lower = (value.tril() == value).flatten(-2).all(-1)
        return lower & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        # The rows of a correlation matrix's factor have length one; rounding grows with their number of elements.
        tolerance = dt.finfo(value.dtype).eps * value.size(-1) * 10
        unit = (torch.linalg_vector_norm(value.detach(), dim=-1) - 1).abs().le(tolerance).all(-1)
        return lower_cholesky.check(value) & unit


class _PositiveDefinite(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        symmetric = torch.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)
        return symmetric & (torch.linalg_eigh(value)[0] > 0).all(-1)


class independent(Constraint):
    """A constraint that holds for an event if it holds for all its elements."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        is_inside = self.base_constraint.check(value)
        return is_inside if not self.reinterpreted_batch_ndims else is_inside.flatten(-self.reinterpreted_batch_ndims).all(-1)


class cat(Constraint):
    """Several constraints for the parts of a value along a dim."""

    def __init__(self, cseq: list[Constraint], dim: int = 0, lengths: list[int] | None = None) -> None:
        self.cseq, self.dim, self.lengths = cseq, dim, lengths or [1] * len(cseq)

    def check(self, value: Any) -> Any:
        parts = torch.split(value, self.lengths, self.dim)
        return torch.cat([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


dependent = _Dependent()
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerAtLeast(0)
positive_integer = _IntegerAtLeast(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _Bounded(lower=0.0, closed=False)
nonnegative = _Bounded(lower=0.0)
unit_interval = _Bounded(0.0, 1.0)
interval = _Bounded
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
positive_definite = _PositiveDefinite()


def greater_than(lower_bound: Any) -> Constraint:
    """Values above a bound, which is excluded."""
    return _Bounded(lower=lower_bound, closed=False)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Values from a bound on."""
    return _Bounded(lower=lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Values below a bound, which is excluded."""
    return _Bounded(upper=upper_bound, closed=False)
