"""What ops ask of the dtype of `out=`, where they ask for more than that the result can be cast to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core import dtype as dt
from .._core.tensor import Tensor
from .._dispatch.registry import OpSpec, out_rules

Arguments = tuple[Any, ...]
Rule = Callable[[OpSpec, Arguments, Tensor], Arguments]


def _in_the_dtype_of_out(op: OpSpec, args: Arguments, out: Tensor) -> Arguments:
    """Factories compute in the dtype of what they fill."""
    at = next(i for i, argument in enumerate(op.schema.arguments) if argument.name == "dtype")
    if args[at] is None or args[at] is out.dtype:
        return (*args[:at], out.dtype, *args[at + 1 :])
    name = args[at].scalar_name if isinstance(args[at], dt.dtype) else args[at].__name__
    raise RuntimeError(f"dtype {name} does not match dtype of out parameter ({out.dtype.scalar_name})")


def _exactly(wanted: Callable[[Arguments], dt.dtype | None], message: Callable[[dt.dtype, dt.dtype], str]) -> Rule:
    """A rule that takes one dtype only (None: any); `message` says what was wanted and what was given."""

    def rule(op: OpSpec, args: Arguments, out: Tensor) -> Arguments:
        kind = wanted(args)
        if kind is not None and out.dtype is not kind:
            raise RuntimeError(message(kind, out.dtype))
        return args

    return rule


def _first(args: Arguments) -> dt.dtype:
    kind: dt.dtype = args[0].dtype
    return kind


_like_self = _exactly(
    _first, lambda want, have: f"Expected out tensor to have dtype {want.cpp_name}, but got {have.cpp_name} instead"
)
# What is no real number is refused by the ops themselves.
_whole = _exactly(
    lambda args: _first(args).to_complex() if _first(args).is_floating_point else None,
    lambda want, have: (
        f"Expected object of scalar type {want.scalar_name} but got scalar type {have.scalar_name} for argument 'out'"
    ),
)

out_rules.update(
    dict.fromkeys(
        ("arange", "range", "linspace", "logspace", "zeros", "ones", "full", "eye", "rand", "randn", "randint", "randperm"),
        _in_the_dtype_of_out,
    )
)
out_rules.update(
    dict.fromkeys(
        (
            "gather",
            "scatter",
            "scatter_add",
            "scatter_reduce",
            "index_add",
            "index_copy",
            "index_reduce",
            "aminmax",
            "avg_pool2d",
            "avg_pool3d",
        ),
        _like_self,
    )
)
out_rules.update(
    dict.fromkeys(
        ("amax", "amin"),
        _exactly(
            _first,
            lambda want, have: (
                f"Expected the dtype for input and out to match, but got {want.scalar_name} for input's dtype "
                f"and {have.scalar_name} "
                "for out's dtype."
            ),
        ),
    )
)
out_rules.update(dict.fromkeys(("complex", "polar"), _whole))
out_rules["multinomial"] = _exactly(
    lambda args: dt.int64, lambda want, have: f"multinomial expects Long tensor out, got: {have.scalar_name}"
)
out_rules["index_select"] = _exactly(
    _first, lambda want, have: "index_select(): self and result must have the same scalar type"
)
out_rules["take"] = _exactly(
    _first,
    lambda want, have: (
        "take(): self and out expected to have the same dtype, but got self.dtype = "
        f"{want.scalar_name} and out.dtype = {have.scalar_name}"
    ),
)
