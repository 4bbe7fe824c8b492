"""The tuples that ops with several results return: torch.return_types."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from .registry import OpSpec

_made: dict[tuple[str, str], Any] = {}


def result_type_of(op: OpSpec, form: str = "") -> Any:
    """What a call with several results returns: a tuple whose fields have the schema's names, where it has names.

    `form="_out"` is that of the call with `out=`, which has a type of its own.
    """
    names = op.schema.return_names
    if not all(names):
        return _plain_tuple
    name = op.schema.name + form
    made = _made.get((name, op.schema.overload))
    if made is None:
        made = _made[name, op.schema.overload] = type(
            name, (namedtuple(name, names),), {"__module__": "torch.return_types", "__repr__": _results_repr, "__slots__": ()}
        )
    return made


def _plain_tuple(*items: Any) -> tuple[Any, ...]:
    return items


def _results_repr(self: Any) -> str:
    body = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{body})"
