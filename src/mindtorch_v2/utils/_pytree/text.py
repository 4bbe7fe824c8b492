"""Structures as text: JSON that can be read again, and the tree with a `*` for each leaf."""

from __future__ import annotations

import enum
import json
import sys
import warnings
from typing import Any

from .nodes import (
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_SERIALIZED_TYPES,
)
from .spec import _LEAF_SPEC, TreeSpec, check_spec

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class EnumEncoder(json.JSONEncoder):
    """JSON with members of enums."""

    def default(self, obj: Any) -> Any:
        if not isinstance(obj, enum.Enum):
            return super().default(obj)
        kind = type(obj)
        return {"__enum__": True, "fqn": f"{kind.__module__}:{kind.__qualname__}", "name": obj.name}


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """Reads what `EnumEncoder` wrote. Only enums of modules that are imported already are looked up."""
    if "__enum__" not in obj:
        return obj
    module, _, name = obj["fqn"].partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, enum.Enum)):
        raise NotImplementedError(f"treespec_loads: no enum {obj['fqn']} is imported")
    return found[obj["name"]]


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    named = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if named is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if named.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call with a "
            "`serialized_type_name` kwarg."
        )
    if named.to_dumpable_context is not None:
        context = named.to_dumpable_context(spec.context)
    else:
        try:
            context = json.dumps(spec.context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom serializer using "
                "_register_pytree_node."
            ) from error
    return {
        "type": named.serialized_type_name,
        "context": context,
        "children_spec": [_to_json(child) for child in spec.children_specs],
    }


def _from_json(schema: dict[str, Any]) -> TreeSpec:
    if schema["type"] is None:
        return _LEAF_SPEC
    if schema["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {schema['type']} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[schema["type"]]
    named = SUPPORTED_SERIALIZED_TYPES[kind]
    if named.from_dumpable_context is not None:
        context = named.from_dumpable_context(schema["context"])
    else:
        try:
            context = json.loads(schema["context"], object_hook=enum_object_hook)
        except TypeError as error:
            raise TypeError(
                "Unable to deserialize context. Please make the context json load-able, or register a custom serializer using "
                "_register_pytree_node."
            ) from error
    return TreeSpec(kind, context, [_from_json(child) for child in schema["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON."""
    check_spec(treespec)
    if protocol is None:
        protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL}]")
    return json.dumps((protocol, _to_json(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote."""
    protocol, schema = json.loads(serialized)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL}]")
    return _from_json(schema)


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A tree of this structure with a `*` for each leaf, as Python shows it."""
    return repr(treespec.unflatten([_Asterisk()] * treespec.num_leaves))


def pytree_to_str(treespec: TreeSpec) -> str:
    """`treespec_dumps` by its former name."""
    warnings.warn("`pytree_to_str` is deprecated. Please use `treespec_dumps` instead.", FutureWarning, stacklevel=2)
    return treespec_dumps(treespec)


def str_to_pytree(json: str) -> TreeSpec:
    """`treespec_loads` by its former name."""
    warnings.warn("`str_to_pytree` is deprecated. Please use `treespec_loads` instead.", FutureWarning, stacklevel=2)
    return treespec_loads(json)
