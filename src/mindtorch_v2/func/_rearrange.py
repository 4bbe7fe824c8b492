"""torch.func.rearrange: dims moved, split and merged as a pattern of names says."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .. import _surface as torch
from .._core.tensor import Tensor

_DOTS = "\N{HORIZONTAL ELLIPSIS}"
# Where a side says nothing but 1.
_ONE = "1"


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Tensor:
    """The elements of a tensor in the order and shape of a pattern: `rearrange(x, "b h w c -> b (h w) c")`.

    Names in brackets are dims that lie in one; of those that are split, all lengths but one are given by name. `...` stands
    for any number of dims, `1` and `()` for a dim of one element. Several tensors are stacked first.
    """
    whole: Tensor = tensor if isinstance(tensor, Tensor) else torch.stack(tensor)
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = map(_parsed, sides)
    _check_names(left, right, axes_lengths, pattern)
    sizes, inner = _sizes(left, whole.shape, axes_lengths)
    # Every name a dim of its own, then those dims in the order of the right side, then its groups.
    names = [name for group in left for name in _expanded(group, inner)]
    split = whole.reshape([sizes[name] for name in names])
    wanted = [_expanded(group, inner) for group in right]
    order = [names.index(name) for group in wanted for name in group]
    moved = split.permute(order)
    shape: list[int] = []
    for group, names_in in zip(right, wanted, strict=True):
        lengths = [sizes[name] for name in names_in]
        shape += [math.prod(lengths)] if isinstance(group, _Group) else lengths
    rearranged: Tensor = moved.reshape(shape)
    return rearranged


class _Group(list[str]):
    """The names that share a dim. Dots outside of brackets stand for dims of their own: a plain list."""


def _parsed(side: str) -> list[list[str]]:
    """The groups of one side of a pattern."""
    if side.count("(") != side.count(")"):
        raise ValueError(f"Imbalanced parentheses in expression: '{side}'")
    groups: list[list[str]] = []
    open_group: _Group | None = None
    for token in re.findall(r"\.\.\.|[()]|[^\s().]+|\.", side):
        if token == "(":
            if open_group is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            open_group = _Group()
        elif token == ")":
            if open_group is None:
                raise ValueError(f"Imbalanced parentheses in expression: '{side}'")
            groups.append(open_group)
            open_group = None
        elif token == _ONE:
            if open_group is None:
                groups.append(_Group())
        else:
            name = _checked(token)
            if open_group is not None:
                open_group.append(name)
            else:
                groups.append([name] if name == _DOTS else _Group([name]))
    return groups


def _checked(token: str) -> str:
    if token == "...":
        return _DOTS
    if token.isdecimal():
        raise ValueError("rearrange only supports unnamed axes of size 1")
    if not token.isidentifier() or token.startswith("_") or token.endswith("_"):
        raise ValueError(f"Invalid axis identifier: {token}")
    return token


def _check_names(left: list[list[str]], right: list[list[str]], lengths: dict[str, int], pattern: str) -> None:
    listed = []
    for side in (left, right):
        names = [name for group in side for name in group]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
        listed.append(set(names))
    if _DOTS in listed[1] - listed[0]:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if listed[0] ^ listed[1]:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {listed[0] ^ listed[1]}")
    if set(lengths) - listed[0]:
        raise ValueError(f"Identifiers not found in rearrange expression: {set(lengths) - listed[0]}")
    if any(_DOTS in group and isinstance(group, _Group) for group in left):
        raise ValueError(f"Ellipsis inside parenthesis in the left side is not allowed: {pattern}")


def _sizes(left: list[list[str]], shape: Sequence[int], lengths: dict[str, int]) -> tuple[dict[str, int], list[str]]:
    """The length of every name, and the names of the dims that the dots stand for."""
    dots = [_DOTS] in left
    extra = len(shape) - len(left) + dots
    if extra < 0 or (not dots and extra):
        raise ValueError(
            f"Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the "
            f"tensor ({len(shape)})"
        )
    inner = [f"{_DOTS}{i}" for i in range(extra)] if dots else []
    sizes = dict(lengths)
    dims = iter(shape)
    for group in left:
        if group == [_DOTS] and not isinstance(group, _Group):
            for name in inner:
                sizes[name] = next(dims)
        else:
            _fit(group, next(dims), sizes)
    return sizes, inner


def _fit(group: list[str], size: int, sizes: dict[str, int]) -> None:
    """Find the length of the one name of a dim that has none yet."""
    unknown = [name for name in group if name not in sizes]
    known = math.prod(sizes[name] for name in group if name in sizes)
    if len(unknown) > 1:
        raise ValueError(f"cannot infer the sizes of two dimensions at once {unknown[0]} and {unknown[1]}")
    if unknown and known and size % known == 0:
        sizes[unknown[0]] = size // known
    elif unknown or known != size:
        raise ValueError(
            f"Dimension sizes to do not match ({size} != {known}) when matching dimension pack ({', '.join(group)})"
        )


def _expanded(group: list[str], inner: list[str]) -> list[str]:
    return [each for name in group for each in (inner if name == _DOTS else [name])]
