"""Casts between float16 and float32, and element-wise work on half precision in float32, rounded once: for large arrays.

NumPy casts float16 one element at a time. A few passes over bits do the same for a block that stays in the cache, and give the
same bits: nan keeps its payload, numbers are rounded to the nearest, halfway to the even one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import parallel
from .single_pass import elementwise

F16, F32 = np.dtype(np.float16), np.dtype(np.float32)
_I16, _U16, _I32 = np.dtype(np.int16), np.dtype(np.uint16), np.dtype(np.int32)
# Up to here NumPy's own casts, in one call, are as fast.
MANY = 1 << 14
_ONE = 1
_BLOCK = 1 << 16


def _int32(bits: int) -> np.ndarray:
    return np.array(bits, np.uint32).view(_I32)


def _float32(value: float) -> np.ndarray:
    return np.array(value, F32)


# The fraction of a float32 has 13 more bits, and its exponent is larger by 112: 15 is in the place of 127.
_SHIFT = _int32(13)
_SCALE, _INVERSE = _float32(2.0**112), _float32(2.0**-112)
_SIGN_AND_LOW_EXPONENT = _int32(0x8FFFFFFF)
_EXPONENT = _int32(0x7F800000)
_REST_OF_EXPONENT = _int32(112 << 23)  # what the exponent of inf and nan still lacks
_INFINITE, _NEGATIVE_INFINITE = 0x7C00, 0xFC00  # from these on: infinite, or nan
_ONE_TOO_MANY = _float32(2.0**16)  # one power of two above float16, where it has inf
_TO_CHECK = 0x47000000  # 2**15, which rounding may bring up to inf
_NAN = 0x7F800000
_SMALLEST_NORMAL, _INF = _float32(2.0**-14), _float32(np.inf)
_HALF_SPACING = _float32(1.5 * 2.0**13)
_SIXTEEN, _SIGN16 = _int32(16), _int32(0xFFFF8000)
_SUBNORMAL, _UNIT = _float32(2.0**-140), _float32(1.0)


def is_half(kind: np.dtype[Any]) -> bool:
    """float16 or bfloat16, the only two types of two bytes with a fraction."""
    return kind.itemsize == 2 and kind.kind in "fV"


def _widen(target: np.ndarray, half: np.ndarray) -> None:
    """Fill `target` with float16 as float32."""
    raw, bits = target.view(_I32), half.view(_I16)
    np.copyto(raw, bits)  # the sign comes four times, three of which are cut off
    np.left_shift(raw, _SHIFT, raw)
    np.bitwise_and(raw, _SIGN_AND_LOW_EXPONENT, raw)
    np.multiply(target, _SCALE, target)
    if np.maximum.reduce(bits) >= _INFINITE or np.maximum.reduce(bits.view(_U16)) >= _NEGATIVE_INFINITE:
        np.add(raw, _REST_OF_EXPONENT, raw, where=np.abs(target) >= _ONE_TOO_MANY)


def _narrow(target: np.ndarray, single: np.ndarray, rounded: np.ndarray, step: np.ndarray) -> None:
    """Fill `target` with float32 as float16; the last two are memory for a block.

    Adding 1.5 * 2**13 times a number's own power of two rounds its fraction to ten bits, and subtracting that lays them bare.
    Below 2**-14 the power stays, as float16 has the same spacing there down to 0.
    """
    exponent = step.view(_I32)
    np.bitwise_and(single.view(_I32), _EXPONENT, exponent)
    most = np.maximum.reduce(exponent)
    bounded = single
    if most >= _TO_CHECK:
        bounded = np.clip(single, -_ONE_TOO_MANY, _ONE_TOO_MANY, out=rounded)
        np.bitwise_and(rounded.view(_I32), _EXPONENT, exponent)
    np.clip(step, _SMALLEST_NORMAL, _INF, out=step)  # NumPy's maximum takes four times as long
    np.multiply(step, _HALF_SPACING, step)
    np.add(bounded, step, rounded)
    np.subtract(rounded, step, rounded)
    np.multiply(rounded, _INVERSE, rounded)
    bits = rounded.view(_I32)
    np.right_shift(bits, _SHIFT, bits)
    np.right_shift(single.view(_I32), _SIXTEEN, exponent)
    np.bitwise_and(exponent, _SIGN16, exponent)
    np.bitwise_or(bits, exponent, bits)
    np.copyto(target.view(_I16), bits, casting="unsafe")
    if most >= _NAN:
        places = np.flatnonzero(np.isnan(single))
        target[places] = single[places].astype(F16)


def _flushes() -> bool:
    """Whether the calling thread takes denormal numbers for zero, on which the passes rely."""
    return not np.multiply(_SUBNORMAL, _UNIT)


class _Block:
    """Memory for the passes over one block, which is used for all blocks of an array."""

    def __init__(self, size: int, arrays: int) -> None:
        self._memory = np.empty((arrays + 2, size), F32)

    def widened(self, number: int, half: np.ndarray) -> np.ndarray:
        """A block of an array as float32, in the memory for the array of that number."""
        wide = self._memory[number, : half.size]
        if half.dtype == F16:
            _widen(wide, half)
        else:
            np.copyto(wide, half, casting="unsafe")
        return wide

    def narrow(self, target: np.ndarray, single: np.ndarray) -> None:
        """Fill a block of half precision with float32."""
        if target.dtype == F16:
            _narrow(target, single, *self._memory[-2:, : single.size])
        else:
            np.copyto(target, single, casting="unsafe")

    def result(self, size: int) -> np.ndarray:
        """Memory for a result in float32: that of the first array."""
        return self._memory[0, :size]


def _in_blocks(size: int, arrays: int, work: Callable[[slice, _Block], None]) -> None:
    """Call `work` with slices that together are all elements, and memory for a block. Threads share them."""

    def work_on(part: slice) -> None:
        block = _Block(min(_BLOCK, part.stop - part.start), arrays)
        for start in range(part.start, part.stop, _BLOCK):
            work(slice(start, min(start + _BLOCK, part.stop)), block)

    if parallel.is_shared():
        parallel.blocks(size, parallel.elements_of_block(size), work_on)
    else:
        work_on(slice(0, size))


def cast(array: np.ndarray, kind: np.dtype[Any]) -> np.ndarray:
    """`array.astype(kind)` with its elements in the same order; fast for large arrays between float16 and float32."""
    if array.size >= MANY and kind in (F16, F32) and array.flags.c_contiguous:
        result = np.empty(array.shape, kind)
        if fill(result, array):
            return result
    return array.astype(kind, order="K")


def fill(target: np.ndarray, source: np.ndarray) -> bool:
    """Cast an array into another of its shape; False where the passes over bits do not make this cast, or are slower."""
    to, own = target.dtype, source.dtype
    if target.size < MANY or not ((own == F32 and to == F16) or (own == F16 and to == F32)):
        return False
    if target.shape != source.shape or not (target.flags.c_contiguous and source.flags.c_contiguous) or _flushes():
        return False
    into, values = target.reshape(-1), source.reshape(-1)

    def work(part: slice, block: _Block) -> None:
        if to == F32:
            _widen(into[part], values[part])
        else:
            block.narrow(into[part], values[part])

    _in_blocks(target.size, 0, work)
    return True


def _one_value(operand: Any, kind: np.dtype[Any]) -> Any:
    """An operand that is not split, as float32: a number is rounded as an array of `kind` holds it, an array is not.

    1 stays, which kernels know as the factor that changes nothing.
    """
    if operand is _ONE:
        return operand
    if isinstance(operand, np.ndarray):
        return operand.astype(F32)
    return np.array(operand, kind).astype(F32)


def rounded_in_blocks(
    kernel: Callable[..., Any], *operands: Any, kind: np.dtype[Any], out: np.ndarray | None = None
) -> np.ndarray:
    """`kernel(*operands, out=)`, element by element and in float32, rounded to half precision, the dtype `kind`.

    Operands are arrays of half precision, and numbers or arrays without dims, which may be of float32.
    """
    large = [i for i, a in enumerate(operands) if a.__class__ is np.ndarray and a.ndim]
    arrays = [operands[i] for i in large]
    given = [a if i in large else _one_value(a, kind) for i, a in enumerate(operands)]
    shape = arrays[0].shape if arrays else ()
    alike = all(a.shape == shape and a.flags.c_contiguous for a in (*arrays, *([] if out is None else [out])))
    if not alike or _flushes():
        for i in large:
            given[i] = cast(given[i], F32)
        result = cast(np.asarray(kernel(*given)), kind)
        return result if out is None else np.positive(result, out)  # which broadcasts no target, as copyto would
    result = np.empty(shape, kind) if out is None else out
    target, flat = result.reshape(-1), [a.reshape(-1) for a in arrays]

    def work(part: slice, block: _Block) -> None:
        wide = list(given)
        for number, (i, a) in enumerate(zip(large, flat, strict=True)):
            wide[i] = block.widened(number, a[part])
        into = block.result(part.stop - part.start)
        kernel(*wide, out=into)
        block.narrow(target[part], into)

    _in_blocks(result.size, len(arrays), work)
    return result


def large_elementwise(
    kernel: Callable[..., Any], kinds: str, shared_from: int, *operands: Any, out: np.ndarray | None = None
) -> Any:
    """`kernel(*operands)` of many elements: half precision in float32, and threads share what has `shared_from` elements.

    `kinds`: of which dtypes, by NumPy's letter for their kind, the work in float32 is faster than NumPy's own.
    """
    first = operands[0]
    if first.dtype.itemsize == 2 and first.dtype.kind in kinds and all(_is_plain(a, first.dtype) for a in operands[1:]):
        return rounded_in_blocks(kernel, *operands, kind=first.dtype, out=out)
    given = {} if out is None else {"out": out}
    return elementwise(kernel, *operands, **given) if shared_from and first.size >= shared_from else kernel(*operands, **given)


def _is_plain(operand: Any, kind: np.dtype[Any]) -> bool:
    """Whether an operand is an array or a number of this dtype, or 1: others a kernel may round in a way of its own."""
    return operand is _ONE or (operand.__class__ is np.ndarray and operand.dtype == kind) or operand.__class__ is kind.type
