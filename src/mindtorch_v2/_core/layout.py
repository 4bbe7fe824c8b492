"""In which order the dims of fresh memory lie: torch's rules, where NumPy's own choice (`order="K"`) is another.

NumPy agrees for one operand without repeated elements and for operands that lie alike. It falls back to row-major where
operands disagree, where torch follows the first that tells two dims apart, and takes an expanded dim for the innermost one,
where torch leaves it in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .half_precision import cast, fill
from .memory_format import channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format
from .single_pass import LARGE, copy_into
from .strides import is_dense, memory_of


def order_of_dims(shape: tuple[int, ...], strides: Sequence[Sequence[int]]) -> list[int]:
    """The dims of a result, innermost first, for operands with these strides: 0 where an operand is broadcast.

    A stable insertion sort, from the last dim to the first. Of two dims the one with the smaller stride lies further inside, by
    the first operand that has both; with equal strides the smaller dim does. Dims that no operand tells apart stay in order.
    """

    def comes_after(dim: int, other: int) -> int:
        for steps in strides:
            if steps[dim] and steps[other]:
                if steps[dim] != steps[other]:
                    return 1 if steps[dim] > steps[other] else -1
                if shape[dim] > shape[other]:
                    return 1
        return 0

    order = list(reversed(range(len(shape))))
    for end in range(1, len(order)):
        at = end
        for before in range(end - 1, -1, -1):
            comparison = comes_after(order[before], order[at])
            if comparison > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif comparison < 0:
                break
    return order


def _fresh(shape: tuple[int, ...], np_dtype: np.dtype, order: list[int]) -> np.ndarray:
    """Memory without gaps whose dims lie in this order, innermost first."""
    outermost_first = order[::-1]
    return np.empty([shape[dim] for dim in outermost_first], np_dtype).transpose(_inverse(outermost_first))


def _inverse(permutation: list[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def dense_like(array: np.ndarray, np_dtype: np.dtype) -> np.ndarray:
    """Fresh memory of an array's shape with its dims in the same order, as torch's preserve_format has it."""
    if array.flags.c_contiguous or not array.size:
        return _with_steps_of(array, np.empty(array.shape, np_dtype))
    if 0 not in array.strides or is_dense(array):
        return _with_steps_of(array, np.empty_like(array, np_dtype))
    return _fresh(array.shape, np_dtype, order_of_dims(array.shape, [[abs(step) for step in array.strides]]))


def _with_steps_of(array: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Fresh memory with an array's own steps along dims of one element: they tell how images lie that have one channel."""
    if 1 not in array.shape or not array.size:
        return fresh
    item, own = fresh.itemsize, array.itemsize
    steps = tuple(
        abs(step) // own * item if n == 1 else kept
        for n, step, kept in zip(array.shape, array.strides, fresh.strides, strict=True)
    )
    return fresh if steps == fresh.strides else np.ndarray(fresh.shape, fresh.dtype, memory_of(fresh)[0], 0, steps)


def dense_copy(array: np.ndarray) -> np.ndarray:
    """A copy that keeps the order of dims."""
    if array.size < LARGE and array.flags.c_contiguous and 1 not in array.shape:
        return array.copy()
    copied = dense_like(array, array.dtype)
    copy_into(copied, array)
    return copied


def on_the_way(array: np.ndarray, np_dtype: np.dtype) -> np.ndarray:
    """An array that is to be cast: torch rounds float64 to float16 by way of float32, NumPy at once."""
    if np_dtype.type is not np.float16 or array.dtype.type is not np.float64:
        return array
    with np.errstate(all="ignore"):
        return array.astype(np.float32, order="K")


def dense_cast(array: np.ndarray, np_dtype: np.dtype) -> np.ndarray:
    """A copy in another dtype that keeps the order of dims; what does not fit is cast as in C."""
    if array.size < LARGE and (array.flags.c_contiguous or 0 not in array.strides) and 1 not in array.shape:
        return cast(on_the_way(array, np_dtype), np_dtype)
    converted = dense_like(array, np_dtype)
    source = on_the_way(array, np_dtype)
    if not fill(converted, source):
        copy_into(converted, source, "unsafe")
    return converted


def lies_as(array: np.ndarray, order: list[int]) -> bool:
    """Whether an array has its elements in this order of dims, without gaps."""
    step = array.itemsize
    for dim in order:
        size = array.shape[dim]
        if size != 1 and array.strides[dim] != step:
            return False
        step *= size
    return True


def like_operands(result: np.ndarray, operands: Sequence[np.ndarray]) -> np.ndarray:
    """A fresh pointwise result in torch's order of dims for its operands: itself, or a copy where it lies in another."""
    first = operands[0]
    if first.strides == result.strides and first.itemsize == result.itemsize:
        return result  # what most calls come to: it lies as its first operand, which decides
    shape = result.shape
    ndim = len(shape)
    if ndim < 2 or not result.size:
        return result
    return in_order(result, order_of_dims(shape, [_broadcast_strides(one, ndim, shape) for one in operands]))


# NumPy computes row-major where operands disagree. From so many elements on it takes longer to lay that out anew than to turn
# the operands.
_LARGE = 4096


def turned(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[int, ...] | bool]:
    """Two large operands that lie differently, turned so that a pointwise result lies row by row, and how it is turned back.

    That result is what `like_operands` makes of one of the operands as they are. True in place of the permutation: not turned.
    """
    shape = first.shape
    if first.size < _LARGE or second.shape != shape or first.strides == second.strides or 1 in shape:
        return first, second, True
    outermost_first = order_of_dims(shape, [first.strides, second.strides])[::-1]
    if outermost_first == list(range(len(shape))):
        return first, second, True
    return first.transpose(outermost_first), second.transpose(outermost_first), _inverse(outermost_first)


def steps_in_order(shape: Sequence[int], itemsize: int, order: Sequence[int]) -> tuple[int, ...]:
    """Byte strides without gaps of dims that lie in this order, innermost first."""
    steps, step = [0] * len(shape), itemsize
    for dim in order:
        steps[dim] = step
        step *= max(shape[dim], 1)
    return tuple(steps)


def steps_of_operands(shape: tuple[int, ...], itemsize: int, operands: Sequence[np.ndarray]) -> tuple[int, ...]:
    """Byte strides of a pointwise result of these operands, as `like_operands` lays one out."""
    ndim = len(shape)
    return steps_in_order(shape, itemsize, order_of_dims(shape, [_broadcast_strides(one, ndim, shape) for one in operands]))


def channels_last_steps(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Byte strides of images or volumes whose channels lie next to each other."""
    return steps_in_order(shape, itemsize, (1, *range(len(shape) - 1, 1, -1), 0))


_CHANNELS_LAST_RANK = {channels_last: 4, channels_last_3d: 5}


def check_rank(shape: Sequence[int], wanted: memory_format) -> int:
    """The number of dims that a memory format has; RuntimeError for a shape with another."""
    rank = _CHANNELS_LAST_RANK[wanted]
    if len(shape) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {wanted!r}".replace("torch.", "") + " format")
    return rank


def steps_of_format(shape: Sequence[int], itemsize: int, wanted: memory_format | None) -> tuple[int, ...] | None:
    """Byte strides of a memory format, None for those of a row-major tensor."""
    if wanted is None or wanted is contiguous_format:
        return None
    if wanted is preserve_format:
        raise RuntimeError("memory format option is only supported by strided tensors")
    check_rank(shape, wanted)
    return channels_last_steps(shape, itemsize)


def steps_like(array: np.ndarray, itemsize: int, wanted: memory_format | None) -> tuple[int, ...] | None:
    """Byte strides of a tensor like another one, in a memory format or, without one, with its dims in the same order."""
    if wanted is not None and wanted is not preserve_format:
        return steps_of_format(array.shape, itemsize, wanted)
    if not array.size:
        return None
    if is_dense(array):
        return tuple([step // array.itemsize * itemsize for step in array.strides])
    return steps_of_operands(array.shape, itemsize, [array])


def in_order(array: np.ndarray, order: list[int]) -> np.ndarray:
    """A fresh array whose dims lie in this order, innermost first: itself, or a copy."""
    if lies_as(array, order):
        if 1 in array.shape:  # along dims of one element NumPy leaves strides as they come
            steps = steps_in_order(array.shape, array.itemsize, order)
            if steps != array.strides:
                memory, start = memory_of(array)
                return np.ndarray(array.shape, array.dtype, memory, start, steps)
        return array
    arranged = _fresh(array.shape, array.dtype, order)
    copy_into(arranged, array)
    return arranged


def _broadcast_strides(operand: np.ndarray, ndim: int, shape: tuple[int, ...]) -> Sequence[int]:
    if operand.shape == shape:
        return operand.strides
    missing = ndim - operand.ndim
    own = zip(operand.shape, operand.strides, shape[missing:], strict=True)
    return [0] * missing + [0 if n == 1 and wide != 1 else step for n, step, wide in own]


# ---------------------------------------------------------------- images


def has_channels_last(array: np.ndarray) -> bool:
    """Whether the channels of images or volumes lie next to each other, by torch's rule for dims of one element, too."""
    strides, shape = array.strides, array.shape
    if not 4 <= len(shape) <= 5 or strides[1] > strides[-1]:
        return False
    least = 0
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        if not shape[dim] or not strides[dim] or strides[dim] < least or (dim == 0 and least == strides[1]):
            return False
        least = strides[dim] * shape[dim]
    return True


def suggested_format(array: np.ndarray) -> memory_format:
    """The memory format that an array's steps show; where it is in several, row-major unless its steps tell otherwise."""
    if not has_channels_last(array):
        return contiguous_format
    return channels_last if array.ndim == 4 else channels_last_3d


def with_channels_last(array: np.ndarray) -> np.ndarray:
    """The array with its channels next to each other."""
    moved = np.ascontiguousarray(np.moveaxis(array, 1, -1))
    # Steps along dims of one element are free for NumPy; torch tells from them how images lie that have one channel.
    return np.moveaxis(moved.reshape(-1).reshape(moved.shape), -1, 1)


def like_volume(result: np.ndarray, volume: np.ndarray) -> np.ndarray:
    """As `like_image`, for an op on volumes: four dims are one volume without a batch, not images."""
    if volume.ndim == 5:
        return like_image(result, volume)
    if not volume.flags.c_contiguous and np.moveaxis(volume, 0, -1).flags.c_contiguous:
        return with_channels_last(result[None])[0]
    return np.ascontiguousarray(result)


def like_image(result: np.ndarray, image: np.ndarray) -> np.ndarray:
    """The result of an op on images: its channels lie next to each other if those of the input do, else it is row-major."""
    if result.ndim == image.ndim and has_channels_last(image):
        return with_channels_last(result)
    return result if result.flags.c_contiguous else np.ascontiguousarray(result)
