"""SymInt, SymFloat, SymBool and the sym_ functions: sizes are plain numbers here, and no number is one of these."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NoReturn

from ._core.tensor import Tensor


class _Symbolic:
    """A number that is not known yet. There are none: nothing is compiled for sizes that change."""

    __module__ = "torch"

    def __init__(self, node: Any) -> None:
        raise NotImplementedError(f"torch.{type(self).__name__}: sizes are plain numbers here. See docs/compatibility.md")


class SymInt(_Symbolic):
    """The class of symbolic ints, of which no number is an instance."""

    __module__ = "torch"


class SymFloat(_Symbolic):
    """The class of symbolic floats, of which no number is an instance."""

    __module__ = "torch"


class SymBool(_Symbolic):
    """The class of symbolic bools, of which no value is an instance."""

    __module__ = "torch"


def _intercepted(function: Any, *values: Any) -> Any:
    """The result of an argument's `__torch_function__`, if one has it: a proxy of `torch.fx`. Else NotImplemented."""
    for value in values:
        handler = getattr(type(value), "__torch_function__", None)
        if handler is not None and not isinstance(value, Tensor):
            return handler(function, (type(value),), values, {})
    return NotImplemented


def sym_int(a: Any) -> Any:
    """A number as an int, cut toward zero."""
    result = _intercepted(sym_int, a)
    return int(a) if result is NotImplemented else result


def sym_float(a: Any) -> Any:
    """A number as a float."""
    result = _intercepted(sym_float, a)
    return float(a) if result is NotImplemented else result


def sym_not(a: Any) -> Any:
    """The opposite of a condition."""
    result = _intercepted(sym_not, a)
    return not a if result is NotImplemented else result


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers; a float if one of them is."""
    result = _intercepted(sym_max, a, b)
    if result is not NotImplemented:
        return result
    larger = max(a, b)
    return float(larger) if isinstance(a, float) or isinstance(b, float) else larger


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float if one of them is."""
    result = _intercepted(sym_min, a, b)
    if result is not NotImplemented:
        return result
    smaller = min(a, b)
    return float(smaller) if isinstance(a, float) or isinstance(b, float) else smaller


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of some numbers."""
    values = list(args)
    result = _intercepted(sym_sum, *values)
    return sum(values) if result is NotImplemented else result


def sym_sqrt(a: Any) -> Any:
    """The square root of a number."""
    result = _intercepted(sym_sqrt, a)
    return math.sqrt(a) if result is NotImplemented else result


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """One of two values, by a condition."""
    result = _intercepted(sym_ite, b, t, f)
    if result is not NotImplemented:
        return result
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def sym_fresh_size(expr: Any) -> NoReturn:
    """A new unknown size: there are none."""
    raise NotImplementedError("torch.sym_fresh_size: sizes are plain numbers here")
