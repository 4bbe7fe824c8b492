"""Trees of containers: their leaves, in order; maps over them; paths to them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Any

from .keys import KeyEntry, KeyPath
from .nodes import SUPPORTED_NODES, PyTree, get_node_type
from .spec import _LEAF_SPEC, TreeSpec, check_spec

IsLeaf = Callable[[PyTree], bool] | None


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether an object is a leaf: no container, or `is_leaf` says so."""
    return (is_leaf is not None and is_leaf(tree)) or get_node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the structure to put them back."""
    leaves: list[Any] = []
    spec = _flatten_into(tree, leaves, is_leaf)
    return leaves, spec


def _flatten_into(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    kind = get_node_type(tree)
    node = SUPPORTED_NODES.get(kind)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = node.flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """A tree of the given structure with the given leaves."""
    return check_spec(treespec).unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    node = SUPPORTED_NODES.get(get_node_type(tree))
    if node is None or (is_leaf is not None and is_leaf(tree)):
        yield tree
        return
    for child in node.flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves in the order of `tree_flatten`."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments of a call."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value)]


# ---------------------------------------------------------------- maps


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree with `func` applied to each leaf, and to what other trees have at its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *[spec.flatten_up_to(rest) for rest in rests]]
    return spec.unflatten([func(*values) for values in zip(*columns, strict=True)])


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call `func` on each leaf for its effect; returns the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for values in zip(leaves, *[spec.flatten_up_to(rest) for rest in rests], strict=True):
        func(*values)
    return tree


TypeOrPredicate = type | tuple[type, ...] | UnionType | Callable[[Any], bool]


def _is_instance(kinds: Any, value: Any) -> bool:
    return isinstance(value, kinds)


def map_only(type_or_types_or_pred: TypeOrPredicate, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is applied to values of some types, or for which a predicate holds; others stay."""
    wanted = type_or_types_or_pred
    holds: Callable[[Any], bool]
    if isinstance(wanted, type | tuple | UnionType):
        holds = functools.partial(_is_instance, wanted)
    elif callable(wanted):
        holds = wanted
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(func)
        def apply(value: Any) -> Any:
            return func(value) if holds(value) else value

        return apply

    return decorate


def tree_map_only(
    type_or_types_or_pred: TypeOrPredicate, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """As `tree_map`, for leaves of some type (or types, or for which a predicate holds)."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: TypeOrPredicate, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """As `tree_map_`, for leaves of some type (or types, or for which a predicate holds)."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a predicate holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a predicate holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a predicate holds for every leaf of some type."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a predicate holds for some leaf of some type."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """For each leaf of a structure what `tree`, a prefix of it, has there; None where it is no prefix."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = get_node_type(tree)
    if treespec.is_leaf() or kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    values: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        below = _broadcast_to_and_flatten(child, spec, is_leaf)
        if below is None:
            return None
        values += below
    return values


# ---------------------------------------------------------------- paths


def _paths(path: KeyPath, tree: PyTree, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    kind = get_node_type(tree)
    node = SUPPORTED_NODES.get(kind)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        yield path, tree
        return
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Each leaf with the path to it."""
    return list(_paths((), tree, is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Each leaf with the path to it, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """As `tree_map`; `func` gets the path of each leaf first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [[path for path, _ in pairs], [leaf for _, leaf in pairs], *[spec.flatten_up_to(rest) for rest in rests]]
    return spec.unflatten([func(*values) for values in zip(*columns, strict=True)])


def _generate_key_paths(key_path: tuple[KeyEntry, ...], tree: PyTree, is_leaf: IsLeaf = None) -> Iterable[tuple[KeyPath, Any]]:
    return _paths(key_path, tree, is_leaf)
