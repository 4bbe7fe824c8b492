"""The named tuples that ops with several results return: torch.return_types."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from .registry import OpSpec

_types: dict[tuple[str, str], Any] = {}


def result_type_of(op: OpSpec, form: str = "") -> Any:
    """The type that a call with several results returns: a named tuple, where the schema names its results.

    `form="_out"` gives the type of the call with `out=`, which torch has apart.
    """
    names = op.schema.return_names
    if not all(names):
        return _plain_tuple
    name = op.schema.name + form
    result_type = _types.get((name, op.schema.overload))
    if result_type is None:
        result_type = _types[name, op.schema.overload] = type(
            name, (namedtuple(name, names),), {"__module__": "torch.return_types", "__repr__": _results_repr, "__slots__": ()}
        )
    return result_type


def _plain_tuple(*items: Any) -> tuple[Any, ...]:
    return items


def _results_repr(self: Any) -> str:
    body = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{body})"
