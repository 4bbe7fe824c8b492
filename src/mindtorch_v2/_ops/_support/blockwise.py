"""Element-wise kernels of several passes, block by block: a block stays in the cache, and threads share the blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..._core import parallel
from ..._core.parallel import splits
from .half import in_float32, is_half

# Elements of a block, where one thread goes over all of them: 256 KB of float32. Smaller arrays are a block of their own.
BLOCK = 1 << 16


def in_blocks(work: Callable[..., Any], out: np.ndarray, *arrays: np.ndarray, passes: int = 8) -> np.ndarray:
    """Call `work(block of out, blocks of the arrays)` for all blocks of arrays that `splits` is true for; returns `out`.

    What becomes of an element must not depend on the others: blocks that threads share are larger than those of one thread. All
    have about the same size, since some functions compute a few elements in another way. `passes`: how often `work` goes over
    a block.
    """
    flat = [a.reshape(-1) for a in (out, *arrays)]
    size = out.size
    shared = parallel.elements_of_block(size, passes) if parallel.is_shared() else size
    count = (size + shared // 2) // shared
    if count > 1:
        step = -(-size // count)
        parallel.blocks(size, step, lambda part: work(*[a[part] for a in flat]))
        return out
    step = -(-size // max(size // BLOCK, 1))
    for start in range(0, size, step):
        work(*[a[start : start + step] for a in flat])
    return out


def in_blocks_of_one(fill: Callable[..., Any], array: np.ndarray, out: np.ndarray | None) -> np.ndarray | None:
    """`in_blocks` for `fill(block of the result, block)`, in `out` or a new array; None for arrays that it is not made for.

    These are row-major arrays of float32 or float64 with more than `BLOCK` elements.
    """
    if array.dtype.char not in "fd" or array.size <= BLOCK or not splits(array, out):
        return None
    return in_blocks(fill, np.empty(array.shape, array.dtype) if out is None else out, array, passes=3)


def blockwise(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """An element-wise kernel `kernel(array, *more, out=None)` as `in_float32` makes it, block by block where arrays are large.

    Its result has the dtype of the first argument; other arguments are arrays of the same shape, or no arrays. `out` is an
    array for the result, or None for a new one.
    """
    rounded = in_float32(kernel)

    @wraps(kernel)
    def run(first: Any, *rest: Any) -> Any:
        if first.size > BLOCK:
            arrays = [a for a in rest if a.__class__ is np.ndarray]
            if splits(first, *arrays):
                numbers, half = rest[len(arrays) :], is_half(first.dtype)

                def work(target: np.ndarray, *blocks: np.ndarray) -> None:
                    if half:
                        target[...] = rounded(*blocks, *numbers)
                    else:
                        kernel(*blocks, *numbers, out=target)

                return in_blocks(work, np.empty(first.shape, first.dtype), first, *arrays)
        if first.dtype.itemsize != 2 or not is_half(first.dtype):
            return kernel(first, *rest)
        return rounded(first, *rest)

    return run
