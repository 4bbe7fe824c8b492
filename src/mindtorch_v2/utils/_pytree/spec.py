"""TreeSpec: the structure of a tree without its leaves."""

from __future__ import annotations

import warnings
from collections import defaultdict, namedtuple
from collections.abc import Iterable
from typing import Any

from .nodes import (
    BUILTIN_TYPES,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    ConstantNode,
    Context,
    PyTree,
    get_node_type,
    is_constant_class,
)


class TreeSpec:
    """The structure of a tree: its kind of container (None for a leaf), the context of that, its children's structures."""

    __slots__ = ("_children", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Context, children_specs: Iterable[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self._children = list(children_specs)
        self.num_children = len(self._children)
        self.num_nodes: int = 1 + sum(child.num_nodes for child in self._children)
        self.num_leaves: int = 1 if type is None else sum(child.num_leaves for child in self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def children(self) -> list[TreeSpec]:
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        return self._children[index]

    def is_leaf(self) -> bool:
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """A tree of this structure with the given leaves."""
        items = leaves if isinstance(leaves, list | tuple) else list(leaves)
        if len(items) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(items)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return self._build(iter(items))

    def _build(self, leaves: Any) -> PyTree:
        if self.type is None:
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([child._build(leaves) for child in self._children], self.context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """What stands in `tree` at the places of this structure's leaves; ValueError where it has another structure."""
        subtrees: list[PyTree] = []
        self._collect(tree, subtrees)
        return subtrees

    def _collect(self, tree: PyTree, subtrees: list[PyTree]) -> None:
        if self.type is None:
            subtrees.append(tree)
            return
        kind = get_node_type(tree)
        # Python's own dicts can stand for one another.
        dicts = self.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
        if not dicts and kind is not self.type:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        if dicts:
            children = self._in_order_of_keys(tree)
        else:
            children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
            if len(children) != self.num_children:
                raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
            if context != self.context and kind is namedtuple:
                raise ValueError(f"Node type mismatch; expected {self.context!r}, but got {context!r}.")
            if context != self.context and kind not in BUILTIN_TYPES:
                raise ValueError(f"Node context mismatch for custom node type {kind!r}.")
        for child, subtree in zip(self._children, children, strict=True):
            child._collect(subtree, subtrees)

    def _in_order_of_keys(self, tree: Any) -> list[PyTree]:
        keys = self.context[1] if self.type is defaultdict else self.context
        if len(tree) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(tree)}.")
        if set(keys) != set(tree):
            missing, extra = set(keys) - set(tree), set(tree) - set(keys)
            text = "".join(f"; {word} key(s): {names}" for word, names in (("missing", missing), ("extra", extra)) if names)
            raise ValueError(f"Node keys mismatch{text}.")
        return [tree[key] for key in keys]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_nodes))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        first = f"TreeSpec({self.type.__name__}, {self.context}, ["
        deeper = indent + 2
        texts = [child.__repr__(deeper) for child in self._children]
        return first + (",\n" + " " * deeper).join(texts) + "])"


_LEAF_SPEC = TreeSpec(None, None, [])
PyTreeSpec = TreeSpec


def treespec_leaf() -> TreeSpec:
    """The structure of a single leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple of trees with the given structures."""
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The structure of a dict of trees with the given structures."""
    children = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in children.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {children!r}.")
    return TreeSpec(dict, list(children.keys()), list(children.values()))


class _LeafSpecMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        warnings.warn(
            "`isinstance(treespec, LeafSpec)` is deprecated, use `isinstance(treespec, TreeSpec) and treespec.is_leaf()` "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        return isinstance(instance, TreeSpec) and instance.is_leaf()

    def __call__(cls, *args: Any, **kwargs: Any) -> TreeSpec:
        return _LEAF_SPEC


class LeafSpec(TreeSpec, metaclass=_LeafSpecMeta):
    """The name under which the structure of a leaf was known: `LeafSpec()` is `treespec_leaf()`."""

    __slots__ = ()


def check_spec(treespec: Any) -> TreeSpec:
    """The argument itself; TypeError unless it is a TreeSpec."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec


def _is_constant_holder(spec: TreeSpec) -> bool:
    """Whether this is the structure of an instance of a class that was given to `register_constant`."""
    return isinstance(spec.context, ConstantNode) and is_constant_class(spec.type)


def _retrieve_constant(spec: TreeSpec) -> Any:
    if not _is_constant_holder(spec):
        raise AssertionError("spec does not correspond to a registered constant pytree node")
    return spec.unflatten([])
