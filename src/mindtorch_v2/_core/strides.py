"""How elements lie in memory: questions about shapes and strides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def is_dense(array: np.ndarray) -> bool:
    """Whether an array's elements fill their memory without gaps or repetition, in any order of the dims."""
    if array.flags.forc:
        return True
    step = array.itemsize
    for stride, size in sorted((s, n) for s, n in zip(array.strides, array.shape, strict=True) if n != 1):
        if stride != step:
            return False
        step *= size
    return True


def overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements may share a place. Unlike `is_dense` this allows gaps; strides count elements, not bytes."""
    reach = 0
    for stride, size in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False
