"""What ops ask of `out=` beyond `_dispatch.out_dtypes`: rules for its dtype, and arguments that follow from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core import dtype as dt
from ..._core.tensor import Tensor
from ..._dispatch.facts import OutDtype, OutRule
from ..._dispatch.out_dtypes import same
from ..._dispatch.registry import OpSpec

Arguments = tuple[Any, ...]


def exact_dtype(wanted: Callable[[Arguments], dt.dtype | None], message: Callable[[dt.dtype, dt.dtype], str]) -> OutRule:
    """A rule that takes one dtype only (None: any), whatever else is wrong with a call; `message` says what was wanted and
    what was given."""

    def rule(op: OpSpec, args: Arguments, out: Tensor) -> Arguments:
        kind = wanted(args)
        if kind is not None and out.dtype is not kind:
            raise RuntimeError(message(kind, out.dtype))
        return args

    return rule


def exactly(message: Callable[[dt.dtype, dt.dtype], str]) -> OutDtype:
    """The result's own dtype; `message` says what was wanted and what was given."""

    def check(computed: dt.dtype, held: dt.dtype) -> None:
        if held is not computed:
            raise RuntimeError(message(computed, held))

    return check


def dtype_of_self(args: Arguments) -> dt.dtype:
    """The expected dtype of most rules: that of the first argument."""
    kind: dt.dtype = args[0].dtype
    return kind


def _place_of_dtype(op: OpSpec) -> int:
    return next(i for i, argument in enumerate(op.schema.arguments) if argument.name == "dtype")


def fills_out(op: OpSpec, args: Arguments, out: Tensor) -> Arguments:
    """The rule of factories: they compute in the dtype of what they fill."""
    at = _place_of_dtype(op)
    # A text is a default of the schema, such as that of `randint`: no one asked for it.
    if args[at] is None or args[at].__class__ is str or args[at] is out.dtype:
        return (*args[:at], out.dtype, *args[at + 1 :])
    name = args[at].scalar_name if isinstance(args[at], dt.dtype) else args[at].__name__
    raise RuntimeError(f"dtype {name} does not match dtype of out parameter ({out.dtype.scalar_name})")


def computes_in_out(op: OpSpec, args: Arguments, out: Tensor) -> Arguments:
    """The rule of sums and products: without a `dtype` they compute in that of what they write, whatever they sum."""
    at = _place_of_dtype(op)
    return args if args[at] is not None else (*args[:at], out.dtype, *args[at + 1 :])


def real_like_self(op: OpSpec, args: Arguments, out: Tensor) -> Arguments:
    """The rule of ops with real results of complex numbers, which may be cast; those of others have their own dtype."""
    if not args[0].is_complex():
        same(args[0].dtype, out.dtype)
    return args


like_self_as_extremes = exact_dtype(
    dtype_of_self,
    lambda want, have: (
        f"Expected the dtype for input and out to match, but got {want.scalar_name} for input's dtype and {have.scalar_name} "
        "for out's dtype."
    ),
)
# What is no real number is refused by the ops themselves.
complex_of_self = exact_dtype(
    lambda args: dtype_of_self(args).to_complex() if dtype_of_self(args).is_floating_point else None,
    lambda want, have: (
        f"Expected object of scalar type {want.scalar_name} but got scalar type {have.scalar_name} for argument 'out'"
    ),
)
