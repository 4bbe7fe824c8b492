"""SchemaMatcher: which overloads an op of the tree may have been, and which of its inputs they may have written to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from ....._dispatch import observer
from ....._whole import load_runtime
from ....views.event_tree import _ExtraFields_TorchOp, _TensorMetadata


class MatchedSchema(NamedTuple):
    """An overload: its name, and of each argument the type and whether the op writes to it."""

    name: str
    overload_name: str
    types: tuple[str, ...]
    written: tuple[bool, ...]


class SchemaMatcher:
    """Finds schemas for the ops of an event tree, which show their inputs but not their overload."""

    @classmethod
    def inputs_are_mutable(cls, t: _ExtraFields_TorchOp) -> tuple[bool | None, ...]:
        """For each input whether some overload that fits writes to it; None for all if no overload does."""
        schemas = cls.match_schemas(t)
        if not schemas:
            return (None,) * len(t.inputs)
        return tuple(any(at < len(s.written) and s.written[at] for s in schemas) for at in range(len(t.inputs)))

    @classmethod
    def match_schemas(cls, t: _ExtraFields_TorchOp) -> tuple[MatchedSchema, ...]:
        """The overloads of the op's name that take its inputs."""
        return tuple(schema for schema in cls.lookup_schemas(t.name) or () if _takes(schema, t.inputs))

    @staticmethod
    def lookup_schemas(name: str) -> tuple[MatchedSchema, ...] | None:
        """All overloads of a name; None for a name without a namespace, which cannot be an op."""
        return _schemas(name) if "::" in name else None


@cache
def _known() -> dict[str, list[int]]:
    load_runtime()
    ops: dict[str, list[int]] = {}
    for op, name in enumerate(observer.op_names):
        ops.setdefault(name, []).append(op)
    return ops


def _schemas(name: str) -> tuple[MatchedSchema, ...]:
    if sum(map(len, _known().values())) != len(observer.op_names):  # ops were declared meanwhile
        _known.cache_clear()
        _of_op.cache_clear()
    # Calls with `out=` that were recorded have numbers of their own, with the schema of the plain overload.
    return tuple(dict.fromkeys(schema for op in _known().get(name, ()) for schema in _of_op(op)))


@cache
def _of_op(op: int) -> tuple[MatchedSchema, ...]:
    schema = observer.op_schemas[op]
    if schema is None:
        return ()
    types = tuple(argument.type_text for argument in schema.arguments)
    written = tuple(argument.written for argument in schema.arguments)
    return (MatchedSchema(schema.name, schema.overload, types, written),)


def _takes(schema: MatchedSchema, inputs: Sequence[Any]) -> bool:
    # An `out` is an input that the schema of the plain overload does not have.
    return len(inputs) == len(schema.types) and all(map(_fits, inputs, schema.types))


def _fits(value: Any, type_text: str) -> bool:
    """Whether a recorded input may be an argument of a type. None is also what is not shown, such as texts and dtypes."""
    if value is None:
        return True
    bare = type_text.replace("?", "")
    if bare == "Tensor":
        return isinstance(value, _TensorMetadata)
    if bare.startswith("Tensor["):
        return isinstance(value, list) and all(item is None or isinstance(item, _TensorMetadata) for item in value)
    if isinstance(value, _TensorMetadata):
        return False
    if "[" in bare:
        of = bare.partition("[")[0]
        return all(_fits(item, of) for item in value) if isinstance(value, list | tuple) else _fits(value, of)
    if isinstance(value, list | tuple):
        return False
    if bare in ("int", "SymInt", "ScalarType", "Layout", "MemoryFormat"):
        return isinstance(value, int)
    if bare == "bool":
        return isinstance(value, bool | int)
    if bare == "float":
        return isinstance(value, int | float)
    return bare in ("Scalar", "number") and isinstance(value, int | float | complex)
