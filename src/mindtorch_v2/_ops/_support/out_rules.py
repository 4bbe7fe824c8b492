"""Rules for the dtype of `out=` that are stricter than torch's usual one, that the result can be cast to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core import dtype as dt
from ..._core.tensor import Tensor
from ..._dispatch.facts import OutRule
from ..._dispatch.registry import OpSpec

Arguments = tuple[Any, ...]


def exact_dtype(wanted: Callable[[Arguments], dt.dtype | None], message: Callable[[dt.dtype, dt.dtype], str]) -> OutRule:
    """A rule that takes one dtype only (None: any); `message` says what was wanted and what was given."""

    def rule(op: OpSpec, args: Arguments, out: Tensor) -> Arguments:
        kind = wanted(args)
        if kind is not None and out.dtype is not kind:
            raise RuntimeError(message(kind, out.dtype))
        return args

    return rule


def dtype_of_self(args: Arguments) -> dt.dtype:
    """The expected dtype of most rules: that of the first argument."""
    kind: dt.dtype = args[0].dtype
    return kind


def fills_out(op: OpSpec, args: Arguments, out: Tensor) -> Arguments:
    """The rule of factories: they compute in the dtype of what they fill."""
    at = next(i for i, argument in enumerate(op.schema.arguments) if argument.name == "dtype")
    if args[at] is None or args[at] is out.dtype:
        return (*args[:at], out.dtype, *args[at + 1 :])
    name = args[at].scalar_name if isinstance(args[at], dt.dtype) else args[at].__name__
    raise RuntimeError(f"dtype {name} does not match dtype of out parameter ({out.dtype.scalar_name})")


like_self = exact_dtype(
    dtype_of_self,
    lambda want, have: f"Expected out tensor to have dtype {want.cpp_name}, but got {have.cpp_name} instead",
)
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
