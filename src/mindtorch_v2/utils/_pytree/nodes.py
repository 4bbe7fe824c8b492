"""The kinds of containers that are nodes of a tree: how each is taken apart and put together; registering more."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..._core.size import Size
from .keys import GetAttrKey, KeyEntry, MappingKey, SequenceKey

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFn = Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Any]]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]


class NodeDef(NamedTuple):
    """How one kind of container is taken apart and put together."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: FlattenWithKeysFn | None = None


class _SerializeNodeDef(NamedTuple):
    """How a kind of container is written as text."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"

SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
# Classes whose instances are part of the tree's structure, and no leaves.
CONSTANT_NODES: set[type] = set()
BUILTIN_TYPES: frozenset[Any] = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})
STANDARD_DICT_TYPES: frozenset[type] = frozenset({dict, OrderedDict, defaultdict})


# ---------------------------------------------------------------- which kind


def is_namedtuple(obj: Any) -> bool:
    """Whether this is a class made by `collections.namedtuple`, or an instance of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: type) -> bool:
    fields = getattr(cls, "_fields", None) if isinstance(cls, type) and issubclass(cls, tuple) else None
    named = (
        isinstance(fields, tuple) and all(isinstance(field, str) for field in fields) and callable(getattr(cls, "_make", None))
    )
    return named and not is_structseq_class(cls)


def is_namedtuple_instance(obj: Any) -> bool:
    return is_namedtuple_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether this is a class of C's struct sequences (`time.struct_time`), or of results of an op, or an instance of one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    if not (isinstance(cls, type) and issubclass(cls, tuple)):
        return False
    # The results of an op are struct sequences in torch, and named tuples here.
    return cls.__module__ == "torch.return_types" or (
        cls.__bases__ == (tuple,) and isinstance(getattr(cls, "n_sequence_fields", None), int)
    )


def is_structseq_instance(obj: Any) -> bool:
    return is_structseq_class(type(obj))


def get_node_type(tree: Any) -> Any:
    """The key of SUPPORTED_NODES for an object: its type, or `namedtuple` for all of those that are not registered."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if is_namedtuple_class(kind):
        return namedtuple
    if kind.__module__ == "torch.return_types" and is_structseq_class(kind):
        register_pytree_node(
            kind, _tuple_flatten, lambda values, _: kind(*values), flatten_with_keys_fn=_tuple_flatten_with_keys
        )
    return kind


# ---------------------------------------------------------------- registering


def _register(
    cls: Any,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
) -> None:
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    if serialized_type_name is not None and not isinstance(serialized_type_name, str):
        raise TypeError(f"Expected serialized_type_name to be a string, got {type(serialized_type_name).__name__}")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = NO_SERIALIZED_TYPE_NAME_FOUND if serialized_type_name is None else serialized_type_name
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name, to_dumpable_context, from_dumpable_context)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    """Treat instances of `cls` as containers.

    `flatten_fn` gives (children, context), `unflatten_fn` takes them; `flatten_with_keys_fn` gives (pairs of key and child,
    context). The name and the functions for contexts are for `treespec_dumps`.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _register(
        cls, flatten_fn, unflatten_fn, flatten_with_keys_fn, serialized_type_name, to_dumpable_context, from_dumpable_context
    )


def deregister_pytree_node(cls: type) -> None:
    """Undo `register_pytree_node`; KeyError for a class that is not there."""
    del SUPPORTED_NODES[cls]
    name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(name, None)
    CONSTANT_NODES.discard(cls)


def _field_names(cls: type, wanted: list[str] | None, dropped: list[str]) -> list[str]:
    if not dataclasses.is_dataclass(cls):
        if wanted is None:
            raise ValueError(
                f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass."
            )
        return wanted
    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    if wanted is None:
        return [name for name in fields if name not in dropped]
    text = ""
    if missing := set(fields) - set(wanted) - set(dropped):
        text += (
            f"Missing fields in `field_names`: {missing}. If you want to include these fields in the pytree, please add "
            "them to `field_names`, otherwise please add them to `drop_field_names`.\n"
        )
    if unexpected := set(wanted) - set(fields) - set(dropped):
        text += (
            f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or add them to "
            "`drop_field_names`.\n"
        )
    if text:
        raise ValueError(f"field_names does not include all dataclass fields.\n{text}")
    return wanted


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Treat instances of a dataclass as containers of their fields. Fields that are None are part of the structure."""
    names = _field_names(cls, field_names, drop_field_names or [])

    def split(obj: Any) -> tuple[list[str], list[str]]:
        present = [name for name in names if getattr(obj, name) is not None]
        return present, [name for name in names if name not in present]

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        present, absent = split(obj)
        return [getattr(obj, name) for name in present], [present, absent]

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[KeyEntry, Any]], Any]:
        children, context = flatten(obj)
        return [(GetAttrKey(name), child) for name, child in zip(context[0], children, strict=True)], context

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=flatten_with_keys
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a constant: two trees with different ones have different structures."""

    value: Any


def register_constant(cls: type) -> None:
    """Treat instances of `cls` as a part of the structure: they are no leaves, and equal structures have equal ones."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
    register_pytree_node(
        cls,
        lambda value: ([], ConstantNode(value)),
        lambda _, context: context.value,
        flatten_with_keys_fn=lambda value: ([], ConstantNode(value)),
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: Any) -> bool:
    return isinstance(cls, type) and cls in CONSTANT_NODES


# ---------------------------------------------------------------- Python's own containers


def _tuple_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), None


def _tuple_flatten_with_keys(d: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
    return [(SequenceKey(i), child) for i, child in enumerate(d)], None


def _tuple_unflatten(values: Iterable[Any], context: Context) -> Any:
    return tuple(values)


_list_flatten, _list_flatten_with_keys = _tuple_flatten, _tuple_flatten_with_keys


def _list_unflatten(values: Iterable[Any], context: Context) -> list[Any]:
    return list(values)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), list(d.keys())


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[KeyEntry, Any]], Context]:
    return [(MappingKey(key), child) for key, child in d.items()], list(d.keys())


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


_ordereddict_flatten, _ordereddict_flatten_with_keys = _dict_flatten, _dict_flatten_with_keys


def _ordereddict_unflatten(values: Iterable[Any], context: Context) -> Any:
    return OrderedDict(zip(context, values, strict=True))


_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten


def _defaultdict_flatten(d: Any) -> tuple[list[Any], Context]:
    values, keys = _dict_flatten(d)
    return values, [d.default_factory, keys]


def _defaultdict_flatten_with_keys(d: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
    pairs, keys = _dict_flatten_with_keys(d)
    return pairs, [d.default_factory, keys]


def _defaultdict_unflatten(values: Iterable[Any], context: Context) -> Any:
    factory, keys = context
    return defaultdict(factory, _dict_unflatten(values, keys))


def _defaultdict_serialize(context: Context) -> DumpableContext:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_deserialize(dumpable_context: DumpableContext) -> Context:
    if not isinstance(dumpable_context, dict):
        raise AssertionError("dumpable_context must be a dict")
    # A spec is text from elsewhere: only what Python has built in is looked up.
    module, name = dumpable_context["default_factory_module"], dumpable_context["default_factory_name"]
    factories = {kind.__name__: kind for kind in (list, dict, set, tuple, int, float, complex, str, bytes, bool)}
    if module != "builtins" or name not in factories:
        raise NotImplementedError(f"treespec_loads: a defaultdict of {module}.{name}")
    return [factories[name], dumpable_context["dict_context"]]


def _deque_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), d.maxlen


def _deque_flatten_with_keys(d: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
    return _tuple_flatten_with_keys(d)[0], d.maxlen


def _deque_unflatten(values: Iterable[Any], context: Context) -> Any:
    return deque(values, maxlen=context)


def _namedtuple_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[KeyEntry, Any]], Context]:
    return [(GetAttrKey(name), child) for name, child in zip(d._fields, d, strict=True)], type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Context) -> Any:
    return context(*values)


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a named tuple a name for `treespec_dumps`."""
    _register(
        cls,
        _namedtuple_flatten,
        _namedtuple_unflatten,
        _namedtuple_flatten_with_keys,
        serialized_type_name,
        lambda context: serialized_type_name,
        lambda name: SERIALIZED_TYPE_TO_PYTHON_TYPE[name],
    )
    # It stays one of the named tuples to `tree_flatten`; only its name is kept.
    del SUPPORTED_NODES[cls]


def _namedtuple_serialize(context: Context) -> DumpableContext:
    named = SUPPORTED_SERIALIZED_TYPES.get(context)
    if named is None or named.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a serializated_type_name. "
            "Please register using `_register_namedtuple`."
        )
    return named.serialized_type_name


def _namedtuple_deserialize(dumpable_context: DumpableContext) -> Context:
    if dumpable_context not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {dumpable_context} because we couldn't find a serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[dumpable_context]


_register(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys, "builtins.tuple")
_register(list, _list_flatten, _list_unflatten, _list_flatten_with_keys, "builtins.list")
_register(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys, "builtins.dict")
_register(
    namedtuple,
    _namedtuple_flatten,
    _namedtuple_unflatten,
    _namedtuple_flatten_with_keys,
    "collections.namedtuple",
    _namedtuple_serialize,
    _namedtuple_deserialize,
)
_register(OrderedDict, _ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys, "collections.OrderedDict")
_register(
    defaultdict,
    _defaultdict_flatten,
    _defaultdict_unflatten,
    _defaultdict_flatten_with_keys,
    "collections.defaultdict",
    _defaultdict_serialize,
    _defaultdict_deserialize,
)
_register(deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys, "collections.deque")
_register(Size, _tuple_flatten, lambda values, _: Size(values), _tuple_flatten_with_keys, "torch.Size")
