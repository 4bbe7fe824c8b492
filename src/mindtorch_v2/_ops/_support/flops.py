"""FLOP formulas that ops share. A formula takes an op's arguments with shapes in place of tensors.

An operation or function of one number counts one. Comparing, choosing, moving and drawing at random count nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod


@cache
def per_element(count: int) -> Callable[..., int]:
    """A formula: that many FLOPs for each element of the first argument."""
    return lambda first, *rest: int(count * prod(first))
