"""What an op's schema says of shared memory, and results of wrapper subclasses that agree with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .._core.keys import META
from .._core.shape_only import MetaArray
from .._core.tensor import Tensor, make_tensor, storage_of
from .._dispatch.dispatcher import in_schema_order
from .._dispatch.overload_api import OpOverload

# Those that give the tensor another shape or other memory and write nothing into it.
_GIVES_SHAPE = re.compile(r"(t|transpose|(un)?squeeze|as_strided|swapaxes|swapdims|resize|resize_as|set|detach)_$")


@dataclass
class AliasInfo:
    """What an argument or a result shares: the letters of its annotation in the schema, "a" of `Tensor(a!)`."""

    alias_set: set[str]
    is_write: bool
    name: str | None


@dataclass
class SchemaInfo:
    """The annotations of a schema, and what follows from them.

    `outs_write_aliases`: for each result the letter of the argument that is written and returned; None if results are fresh.
    `read_only_alias_match_indexes`: the numbers of argument and result where the result is a view.
    """

    args: list[AliasInfo]
    outs: list[AliasInfo]
    is_inplace_view_op: bool
    outs_write_aliases: list[str] | None
    read_only_alias_match_indexes: list[tuple[int, int]]


@cache
def get_alias_info(func: OpOverload) -> SchemaInfo:
    """What the results of an overload, such as `torch.ops.aten.t.default`, share with its arguments."""
    schema = func._schema
    arguments = [_info(argument.alias, argument.name) for argument in schema.arguments]
    results = [_info(alias, name or None) for alias, name in zip(schema.return_aliases, schema.return_names, strict=True)]
    written = [next(iter(result.alias_set)) for result in results if result.is_write]
    views = [
        (place, number)
        for place, argument in enumerate(arguments)
        for number, result in enumerate(results)
        if argument.alias_set & result.alias_set and not argument.is_write
    ]
    return SchemaInfo(arguments, results, _GIVES_SHAPE.match(schema.name) is not None, written or None, views)


def _info(alias: str, name: str | None) -> AliasInfo:
    letters = alias.partition("->")[0].replace("!", "").strip()
    return AliasInfo({letters} if letters else set(), "!" in alias, name)


def return_and_correct_aliasing(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """What `__torch_dispatch__` of a wrapper subclass returns, so that results share memory as those of plain tensors do.

    A view shares its argument's storage; what an op wrote in place is the argument itself, with the shape that the op gave it.
    """
    info = get_alias_info(func)
    outs = out if isinstance(out, tuple) and not func._schema.returns_list else (out,)
    for place, number in info.read_only_alias_match_indexes:
        _share_storage(func, args[place], outs[number])
    if info.is_inplace_view_op:
        _give_shape(func, args, kwargs)
    if info.outs_write_aliases is None:
        return out
    given = in_schema_order(func._op, args, kwargs)
    letters = [next(iter(argument.alias_set)) if argument.is_write else "" for argument in info.args]
    written = [given[letters.index(letter)] for letter in info.outs_write_aliases]
    return written[0] if len(written) == 1 else type(out)(written)


def _share_storage(func: OpOverload, source: Any, views: Any) -> None:
    """Let views of a wrapper have its storage; their shapes are theirs."""
    for view in views if isinstance(views, list | tuple) else [views]:
        if type(view) is not type(source) and (_is_wrapper_class(type(view)) or _is_wrapper_class(type(source))):
            raise AssertionError(
                f"Called {func} with input of type {type(source)}\n"
                f"and output of type {type(views)}. But expected types to match."
            )
        if not isinstance(view, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(view)}")
        if isinstance(source._array, MetaArray) and isinstance(view._array, MetaArray):
            view._storage = storage_of(source)
        elif storage_of(view) is not storage_of(source):
            raise NotImplementedError(
                f"return_and_correct_aliasing: {func} returned a tensor with memory of its own for a view"
            )


def _is_wrapper_class(kind: type) -> bool:
    return kind is not Tensor and hasattr(kind, "__tensor_flatten__") and hasattr(kind, "__tensor_unflatten__")


def _give_shape(func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run an op on the shapes of wrappers alone: its target gets the new one."""

    def shape_of(value: Any) -> Any:
        if not (isinstance(value, Tensor) and isinstance(value._array, MetaArray)):
            return value
        plain = make_tensor(value._array)
        plain._keys = META
        return plain

    target = args[0]
    plain = shape_of(target)
    func(plain, *map(shape_of, args[1:]), **{name: shape_of(value) for name, value in kwargs.items()})
    if plain is not target:
        target._array = plain._array
