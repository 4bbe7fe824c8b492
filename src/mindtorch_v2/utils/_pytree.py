"""Trees of Python containers: flatten to leaves, rebuild, map. Dicts, lists, tuples, namedtuples and what is registered."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Flatten = Callable[[Any], tuple[list[Any], Any]]
Unflatten = Callable[[Iterable[Any], Any], Any]


class NodeDef(NamedTuple):
    """How one kind of container is taken apart and put together."""

    flatten: Flatten
    unflatten: Unflatten


class TreeSpec:
    """The shape of a tree without its leaves."""

    __slots__ = ("children_specs", "context", "num_leaves", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_leaves: int = sum(child.num_leaves for child in children_specs) if type is not None else 1

    def is_leaf(self) -> bool:
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        return tree_unflatten(leaves, self)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


def LeafSpec() -> TreeSpec:  # noqa: N802  torch's name
    """The shape of a single leaf."""
    return TreeSpec(None, None, [])


def _flatten_dict(tree: Any) -> tuple[list[Any], Any]:
    return list(tree.values()), list(tree.keys())


SUPPORTED_NODES: dict[type, NodeDef] = {
    dict: NodeDef(_flatten_dict, lambda values, keys: dict(zip(keys, values, strict=True))),
    OrderedDict: NodeDef(_flatten_dict, lambda values, keys: OrderedDict(zip(keys, values, strict=True))),
    defaultdict: NodeDef(
        lambda tree: (list(tree.values()), [tree.default_factory, list(tree.keys())]),
        lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
    ),
    list: NodeDef(lambda tree: (list(tree), None), lambda values, _: list(values)),
    tuple: NodeDef(lambda tree: (list(tree), None), lambda values, _: tuple(values)),
    deque: NodeDef(lambda tree: (list(tree), tree.maxlen), deque),
}
_NAMED = NodeDef(lambda tree: (list(tree), type(tree)), lambda values, kind: kind(*values))


def register_pytree_node(
    cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, *, serialized_type_name: str | None = None, **unused: Any
) -> None:
    """Treat instances of `cls` as containers."""
    if unused:
        raise NotImplementedError(f"register_pytree_node: {', '.join(sorted(unused))}")
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn)


def _node(tree: Any) -> NodeDef | None:
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return _NAMED
    return SUPPORTED_NODES.get(type(tree))


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the shape to put them back."""
    node = None if is_leaf is not None and is_leaf(tree) else _node(tree)
    if node is None:
        return [tree], LeafSpec()
    children, context = node.flatten(tree)
    leaves: list[Any] = []
    specs = []
    for child in children:
        below, spec = tree_flatten(child, is_leaf)
        leaves += below
        specs.append(spec)
    kind = tuple if node is _NAMED else type(tree)
    return leaves, TreeSpec(kind, context, specs)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """A tree of the given shape with the given leaves."""
    items = list(leaves)
    if len(items) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(items)} but the spec refers to a pytree "
            f"that holds {treespec.num_leaves} items ({treespec})."
        )
    return _build(iter(items), treespec)


def _build(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    children = [_build(leaves, child) for child in spec.children_specs]
    node = _NAMED if spec.type is tuple and spec.context is not None else SUPPORTED_NODES[spec.type]
    return node.unflatten(children, spec.context)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree in the order of `tree_flatten`."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The shape of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree with `func` applied to each leaf (and the leaves at the same place of other trees)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_flatten(rest, is_leaf)[0] for rest in rests]
    return tree_unflatten([func(*items) for items in zip(leaves, *others, strict=True)], spec)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Call `func` on each leaf for its effect; returns the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(kind: Any, func: Callable[..., Any], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """As tree_map, for leaves of some type (or types, or for which a predicate holds)."""

    def apply(value: Any) -> Any:
        wanted = kind(value) if callable(kind) and not isinstance(kind, type) else isinstance(value, kind)
        return func(value) if wanted else value

    return tree_map(apply, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether a predicate holds for every leaf."""
    return all(map(pred, tree_leaves(tree)))


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether a predicate holds for some leaf."""
    return any(map(pred, tree_leaves(tree)))
