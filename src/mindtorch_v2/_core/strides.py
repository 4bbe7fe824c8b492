"""How elements lie in memory: questions about shapes and strides, and views with any of them that stay inside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .storage import owner_of

_MOST = (1 << 63) - 1  # what an offset or a number of bytes can be


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


def memory_of(array: np.ndarray) -> tuple[np.ndarray, int]:
    """(an array that is all of the memory `array` looks at, in order; the offset of its first element in bytes)."""
    owner = owner_of(array)
    offset = 0 if owner is array else array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    if not owner.flags.c_contiguous:
        owner = owner.transpose(sorted(range(owner.ndim), key=lambda d: -owner.strides[d]))
    return owner, offset


def overflowed(shape: Sequence[int], strides: Sequence[int] | None = None) -> RuntimeError:
    """For sizes whose bytes cannot be counted; `strides` count elements."""
    suffix = "" if strides is None else f" and strides={list(strides)}"
    return RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}{suffix}")


def row_major(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Byte strides of a row-major array; RuntimeError for sizes whose bytes cannot be counted."""
    steps, step = [], itemsize
    for n in reversed(shape):
        steps.append(step)
        step *= max(n, 1)
    if step > _MOST:
        if 0 not in shape:
            raise overflowed(shape)
        if step // itemsize > _MOST:
            raise RuntimeError("Stride calculation overflowed")
    steps.reverse()
    return tuple(steps)


def dense_steps(array: np.ndarray, itemsize: int) -> list[int] | None:
    """Byte strides by which elements of `itemsize` bytes lie as those of an array; None where it is row-major or has gaps."""
    if (array.flags.c_contiguous and 1 not in array.shape) or not is_dense(array):
        return None
    return [step // array.itemsize * itemsize for step in array.strides]


def reach_of(shape: Sequence[int], steps: Sequence[int], start: int, itemsize: int) -> int:
    """How many bytes of memory a view with these byte strides needs; 0 for one without elements.

    RuntimeError for what no memory has: negative numbers, and more bytes than there are addresses.
    """
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if start < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {start // itemsize}")
    reach = start + itemsize
    for n, step in zip(shape, steps, strict=True):
        if n < 0 or step < 0:
            raise overflowed(shape, [s // itemsize for s in steps])
        reach += (n - 1) * step
    if 0 in shape:
        return 0
    if reach > _MOST:
        raise overflowed(shape, [s // itemsize for s in steps])
    return reach


def strided(memory: np.ndarray, np_dtype: np.dtype, shape: Sequence[int], steps: Sequence[int], start: int = 0) -> np.ndarray:
    """A view of any part of some memory, with these byte strides. RuntimeError if it is not inside.

    The numbers are checked here, as Python's, since NumPy's own check overflows. A view in which a dim repeats one place can
    only be read, and one without elements begins inside whatever its start.
    """
    item = np_dtype.itemsize
    reach = reach_of(shape, steps, start, item)
    if reach > memory.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {[s // item for s in steps]}, storage offset {start // item}, and "
            f"itemsize {item} requiring a storage size of {reach} are out of bounds for storage of size {memory.nbytes}"
        )
    if not reach:
        return np.ndarray(shape, np_dtype, memory, min(start, memory.nbytes), steps)
    return _made(np.ndarray(shape, np_dtype, memory, start, steps))


def restride(array: np.ndarray, shape: Sequence[int], steps: Sequence[int], np_dtype: np.dtype | None = None) -> np.ndarray:
    """A view of `array` from its first element on, with a shape and byte strides worked out from its own, which stay within
    its memory. Those that a caller chose go through `strided`, which checks them."""
    if array.flags.c_contiguous:
        return np.ndarray(shape, np_dtype or array.dtype, array, 0, steps)
    memory, start = memory_of(array)
    return _made(np.ndarray(shape, np_dtype or array.dtype, memory, start, steps))


def _made(view: np.ndarray) -> np.ndarray:
    """The view itself, which can only be read if a dim repeats one place: NumPy then refuses every write."""
    steps = view.strides
    if 0 in steps and view.size:
        for n, step in zip(view.shape, steps, strict=True):
            if step == 0 and n > 1:
                view.flags.writeable = False
    return view


def windowed(array: np.ndarray, shape: Sequence[int], strides: Sequence[int], writeable: bool = False) -> np.ndarray:
    """A view of an array from its first element on, with any shape and byte strides that stay inside of its memory."""
    memory, offset = (array, 0) if array.flags.c_contiguous else memory_of(array)
    if 0 not in shape:
        reach = offset + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)]) + array.itemsize
        if reach > memory.nbytes or min(shape, default=1) < 0 or min(strides, default=0) < 0:
            raise RuntimeError(f"windows of sizes {list(shape)} and strides {list(strides)} reach out of an array's memory")
    view: np.ndarray = np.ndarray(shape, array.dtype, memory, offset, strides)
    if not writeable:
        view.flags.writeable = False
    return view
