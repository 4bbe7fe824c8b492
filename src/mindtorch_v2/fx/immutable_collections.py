"""Lists and dicts that cannot be changed: the arguments of a node, so that only its graph can change what it uses."""

from __future__ import annotations

from typing import Any, NoReturn

from ..utils._pytree import GetAttrKey, MappingKey, SequenceKey, register_pytree_node

_HELP = (
    " If you are attempting to modify the kwargs or args of a torch.fx.Node object,\n"
    "instead create a new copy of it and assign the copy to the node:\n"
    "    new_args = ... # copy and mutate args\n"
    "    node.args = new_args\n"
)


def _refusal(base: type, name: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__!r} object does not support mutation.{_HELP}")

    refuse.__name__ = name
    return refuse


class immutable_list(list[Any]):
    """A list that cannot be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that cannot be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)


for _kind, _names in (
    (
        immutable_list,
        [
            "__delitem__",
            "__iadd__",
            "__imul__",
            "__setitem__",
            "append",
            "clear",
            "extend",
            "insert",
            "pop",
            "remove",
            "reverse",
            "sort",
        ],
    ),
    (immutable_dict, ["__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update"]),
):
    for _name in _names:
        setattr(_kind, _name, _refusal(_kind, _name))


register_pytree_node(
    immutable_list,
    lambda values: (list(values), None),
    lambda values, _: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda values: ([(SequenceKey(i), value) for i, value in enumerate(values)], None),
)
register_pytree_node(
    immutable_dict,
    lambda values: (list(values.values()), list(values)),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda values: ([(MappingKey(key), value) for key, value in values.items()], list(values)),
)
register_pytree_node(
    slice,
    lambda value: ([value.start, value.stop, value.step], None),
    lambda values, _: slice(*values),
    serialized_type_name="builtins.slice",
    flatten_with_keys_fn=lambda value: (
        [(GetAttrKey(name), getattr(value, name)) for name in ("start", "stop", "step")],
        None,
    ),
)
