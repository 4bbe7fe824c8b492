"""Work that goes over large arrays once, shared by threads: element by element, copies, and reductions along dims.

It is the memory that limits such work: of fewer elements than `LARGE` two threads are no faster than one. Each thread gets two
blocks or more. Results do not depend on where the blocks begin, and so have the same bits for every number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import parallel
from .blas import get_num_threads

LARGE = 1 << 21
# A copy that does not follow the lines of the cache takes ten times as long for each element.
TURNED = 1 << 18
_BLOCKS = 4


def _blocks(length: int, work: Callable[[slice], None]) -> None:
    parallel.blocks(length, -(-length // max(2 * get_num_threads(), _BLOCKS)), work)


def _outermost(array: np.ndarray) -> int:
    """The dim, of those long enough to be split, along which elements lie farthest apart; -1 if there is none."""
    dims = [dim for dim, size in enumerate(array.shape) if size >= 2 * _BLOCKS]
    return max(dims, key=lambda dim: abs(array.strides[dim]), default=-1)


def elementwise(kernel: Callable[..., Any], *operands: Any, out: np.ndarray | None = None) -> Any:
    """`kernel(*operands)`, which computes element by element and takes `out`; of row-major arrays, which may broadcast."""
    given = {} if out is None else {"out": out}
    arrays = [a for a in (*operands, out) if a.__class__ is np.ndarray and a.ndim]
    if not parallel.is_shared() or not all(a.flags.c_contiguous for a in arrays):
        return kernel(*operands, **given)
    if out is not None and any(a is not out and np.may_share_memory(a, out) for a in arrays):
        return kernel(*operands, **given)  # a block would read what another one has written
    shape = arrays[0].shape
    if all(a.shape == shape for a in arrays):
        length = arrays[0].size

        def part_of(value: Any, part: slice) -> Any:
            return value.reshape(-1)[part] if value.__class__ is np.ndarray and value.ndim else value
    else:
        try:
            shape = np.broadcast_shapes(*[a.shape for a in arrays])
        except ValueError:
            return kernel(*operands, **given)  # which says what is wrong
        length = shape[0]
        if length < 2 * _BLOCKS or (out is not None and out.shape != shape):
            return kernel(*operands, **given)

        def part_of(value: Any, part: slice) -> Any:
            is_long = value.__class__ is np.ndarray and value.ndim == len(shape) and value.shape[0] == length
            return value[part] if is_long else value

    if out is None:
        kind = kernel(*[part_of(value, slice(0, 0)) for value in operands]).dtype
        out = np.empty(shape, kind)

    def work(part: slice) -> None:
        kernel(*[part_of(value, part) for value in operands], out=part_of(out, part))

    _blocks(length, work)
    return out


def copy_into(target: np.ndarray, source: np.ndarray, casting: Any = "same_kind") -> None:
    """`np.copyto`."""
    size = target.size
    if size < TURNED or not parallel.is_shared():
        np.copyto(target, source, casting)
        return
    dim = _outermost(target)
    inner = target.strides.index(min(target.strides, key=abs))
    follows = source.shape == target.shape and source.strides[inner] == source.itemsize
    if dim < 0 or (size < LARGE and follows) or np.may_share_memory(target, source):
        np.copyto(target, source, casting)
        return
    source = np.broadcast_to(source, target.shape)
    lead = (slice(None),) * dim
    _blocks(target.shape[dim], lambda part: np.copyto(target[(*lead, part)], source[(*lead, part)], casting))


def reduced(reduce: Callable[..., Any], array: np.ndarray, axes: Any, dtype: Any = None, keepdim: bool = False) -> Any:
    """`reduce(array, axes, dtype, None, keepdim)` of a ufunc, shared along a dim that stays; axes as NumPy takes them."""
    if array.size < LARGE or axes is None or not array.flags.c_contiguous or not parallel.is_shared():
        return reduce(array, axes, dtype, None, keepdim)
    ndim = array.ndim
    along = tuple(axis % ndim for axis in (axes if axes.__class__ is tuple else (axes,)) if -ndim <= axis < ndim)
    # Not a dim further inside: a ufunc adds up whole lines along the first dims, and short parts of lines take twice as long.
    dim = next((dim for dim in range(min(along, default=0)) if array.shape[dim] >= 2 * _BLOCKS), -1)
    if dim < 0:
        return reduce(array, axes, dtype, None, keepdim)
    lead = (slice(None),) * dim
    sample = reduce(array[(*lead, slice(0, 1))], axes, dtype, None, True)  # its dtype, and how its dims lie
    kept = np.empty([array.shape[dim] if d == dim else n for d, n in enumerate(sample.shape)], sample.dtype)

    def work(part: slice) -> None:
        reduce(array[(*lead, part)], axes, dtype, kept[(*lead, part)], True)

    _blocks(array.shape[dim], work)
    return kept if keepdim else kept.reshape([n for d, n in enumerate(kept.shape) if d not in along])
