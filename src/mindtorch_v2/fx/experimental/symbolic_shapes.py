"""torch.fx.experimental.symbolic_shapes: what libraries ask about sizes, which are plain numbers here."""

from __future__ import annotations

from typing import Any

__all__ = [
    "GuardOnDataDependentSymNode",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "has_free_symbols",
    "has_free_unbacked_symbols",
    "is_concrete_bool",
    "is_concrete_int",
    "is_symbolic",
    "statically_known_false",
    "statically_known_true",
    "sym_eq",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """Raised where torch cannot decide about a size that depends on values; every size is known here."""


def guard_or_false(a: Any) -> bool:
    """Whether something is true; in torch False where that is not known."""
    return bool(a)


# They differ for sizes that are not known.
guard_or_true = guard_size_oblivious = statically_known_true = guard_or_false


def statically_known_false(x: Any) -> bool:
    """Whether something is known to be false."""
    return not x


def is_symbolic(val: Any) -> bool:
    """Whether a size is not a number yet: never."""
    return False


def is_concrete_int(a: Any) -> bool:
    """Whether a size is a number."""
    return isinstance(a, int)


def is_concrete_bool(a: Any) -> bool:
    """Whether a condition is known."""
    return isinstance(a, bool)


def free_symbols(val: Any) -> set[Any]:
    """The unknowns in a size, tensor or list of such: none."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """Whether there are unknowns in something: never."""
    return False


has_free_unbacked_symbols = has_free_symbols


def sym_eq(x: Any, y: Any) -> bool:
    """Whether two sizes, or lists of sizes, are equal."""
    return bool(x == y)
