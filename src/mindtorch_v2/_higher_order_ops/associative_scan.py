"""associative_scan: running results of a function that may be applied in any grouping, as cumsum's are of addition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as _torch
from .._core.tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan"]

torch: Any = _torch


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Element i along `dim` becomes the combination of elements 0 to i, or of i to the last if reverse.

    combine_fn takes and returns what `xs` is: a tensor, or a tree of tensors of the same size along `dim`. It is called on
    slices with many elements along `dim`, about two times log2 of their number. Both modes do the same here.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, spec = tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("All xs leaves must be a Tensor")
    dim = dim % leaves[0].ndim
    length = leaves[0].shape[dim]
    if any(leaf.shape[dim] != length for leaf in leaves):
        raise ValueError("All xs tensors must have the same scan dimension")

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        return tree_flatten(combine_fn(tree_unflatten(left, spec), tree_unflatten(right, spec)))[0]

    def part(values: list[Any], start: int, stop: int | None, step: int = 1) -> list[Any]:
        subscript = (slice(None),) * dim + (slice(start, stop, step),)
        return [value[subscript] for value in values]

    def scan(values: list[Any]) -> list[Any]:
        count = values[0].shape[dim]
        if count < 2:
            return values
        # Pairs are combined and scanned: the results at odd places. Those at even places take one more element each.
        odd = scan(combine(part(values, 0, count - 1, 2), part(values, 1, None, 2)))
        even = part(values, 0, 1)
        if count > 2:
            before = part(odd, 0, (count - 1) // 2)
            even = [torch.cat([a, b], dim) for a, b in zip(even, combine(before, part(values, 2, None, 2)), strict=True)]
        return [_interleave(a, b, dim) for a, b in zip(even, odd, strict=True)]

    if reverse:
        leaves = [leaf.flip([dim]) for leaf in leaves]
    results = scan(leaves)
    if reverse:
        results = [result.flip([dim]) for result in results]
    return tree_unflatten(results, spec)


def _interleave(even: Any, odd: Any, dim: int) -> Any:
    """Elements of both along `dim`, in turn; `even` has as many as `odd`, or one more."""
    pairs = odd.shape[dim]
    mixed = torch.stack([even.narrow(dim, 0, pairs), odd], dim + 1).flatten(dim, dim + 1)
    return torch.cat([mixed, even.narrow(dim, pairs, 1)], dim) if even.shape[dim] > pairs else mixed
