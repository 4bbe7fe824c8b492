"""Calls whose arguments stand in an order that torch deprecates: `torch.add(x, 2, y)` for `torch.add(x, y, alpha=2)`."""

from __future__ import annotations

import warnings
from typing import Any

from .._core.cpython import stack_level
from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .._core.warn_always import Always
from .callers import is_method_call
from .errors import torch_error
from .overloads import type_word
from .promotion import is_number
from .registry import OpSpec, aten
from .schema import REQUIRED

_OURS = __name__.partition(".")[0]


class _Said:
    once = False  # torch warns of the first such call of a process, whatever its op


def call_deprecated(op: OpSpec, args: tuple[Any, ...], left_over: tuple[Any, ...], out: Any) -> Any:
    """Run an op that was called with more positional arguments than its schema has; TypeError where no order fits them.

    `args` are the arguments as the entry has bound them: in the order of the schema, with the values of keywords at the end.
    """
    arguments = {a.name: a for a in op.schema.arguments}
    positional = [a for a in op.schema.arguments if not a.keyword_only]
    values = (*args[: len(positional)], *left_over)
    untouched = all(v is a.default for a, v in zip(op.schema.arguments, args, strict=True) if a.keyword_only)
    for order in op.deprecated:
        names = order.split()
        if untouched and len(names) == len(values) and _fits(op, names, values):
            by_name = dict(zip(names, values, strict=True))
            _warn(op, names, len(values))
            given = {arguments[name].python_name: _number(by_name[name]) for name in names if arguments[name].keyword_only}
            if out is not None:
                given["out"] = out
            assert op.call is not None
            return op.call(*[by_name[a.name] for a in positional], **given)
    raise torch_error(
        TypeError(f"{op.schema.name}() takes {len(positional)} positional arguments but {len(values)} were given")
    )


def _number(value: Any) -> Any:
    return aten.item(value) if isinstance(value, Tensor) else value


def _fits(op: OpSpec, names: list[str], values: tuple[Any, ...]) -> bool:
    kinds = {a.name: a for a in op.schema.arguments}
    for name, value in zip(names, values, strict=True):
        takes_number = not kinds[name].is_tensor or (name == "other" and is_number(value))
        if not (is_number(value) or _stands_for_number(value) if takes_number else isinstance(value, Tensor)):
            return False
    return True


def _stands_for_number(value: Any) -> bool:
    return isinstance(value, Tensor) and not value._array.ndim and not value._keys & AUTOGRAD


def _warn(op: OpSpec, names: list[str], count: int) -> None:
    if _Said.once and not Always.on:
        return
    _Said.once = True
    name = op.schema.name
    arguments = {a.name: a for a in op.schema.arguments}
    out = ["*", "Tensor out = None"] if op.out_keyword and not is_method_call(name, count) else []
    skipped = ("self",) if op.schema.mutates or not out else ()

    def described(one: str, default: bool) -> str:
        a = arguments[one]
        return f"{type_word(a)} {a.python_name}" + (f" = {a.default}" if default and a.default is not REQUIRED else "")

    old = [described(one, False) for one in names if one not in skipped] + out
    plain = [described(a.name, True) for a in op.schema.arguments if not a.keyword_only and a.name not in skipped]
    keywords = [described(a.name, True) for a in op.schema.arguments if a.keyword_only]
    new = [*plain, "*", *keywords, *out[1:]]
    warnings.warn(
        f"This overload of {name} is deprecated:\n\t{name}({', '.join(old)})\n"
        f"Consider using one of the following signatures instead:\n\t{name}({', '.join(new)})",
        UserWarning,
        stacklevel=stack_level(_OURS),
    )
