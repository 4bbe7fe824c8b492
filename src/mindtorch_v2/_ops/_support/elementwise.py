"""Building blocks of element-wise kernels: constants as arrays, masks without branches, and the dtype they need."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.parallel import splits
from .blockwise import BLOCK, in_blocks
from .common import no_kernel

_F32 = np.dtype(np.float32)
_CONSTANTS: dict[tuple[Any, np.dtype], np.ndarray] = {}
_CONSTANTS32: dict[Any, np.ndarray] = {}  # those of float32, which most are: hashing a dtype takes longer than the rest
_ONE = np.array(1, np.float32)
_add, _exp, _negative, _reciprocal, _ndarray = np.add, np.exp, np.negative, np.reciprocal, np.ndarray
_BITS = {2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}
# exp of numbers between -16 and 16 is far from the limits of float32, and log(sum(exp(x))) is exact to 1e-6.
_SAFE = 16.0
_SAFE_SQUARE = _SAFE * _SAFE
# Up to here choosing element by element is as fast as computing with bits: 0 or an element, one of two elements.
_FEW, _SOME = 2048, 8192


def need_float(name: str, array: np.ndarray, refused: str = "iubcW") -> None:
    """NotImplementedError, in torch's words, for integers and complex numbers."""
    if array.dtype.kind in refused:
        raise no_kernel(name, array)


def need_real(name: str, array: np.ndarray) -> None:
    """NotImplementedError, in torch's words, for complex numbers."""
    if array.dtype.kind in "cW":  # W: complex32
        raise no_kernel(name, array)


def need_single_or_double(name: str, array: np.ndarray) -> None:
    """NotImplementedError, in torch's words, for all but float32 and float64."""
    if array.dtype.char not in "fd":
        raise no_kernel(name, array)


def constant(value: float, dtype: np.dtype) -> np.ndarray:
    """A number as a 0-d array: ufuncs take it faster than a Python number."""
    array = _CONSTANTS32.get(value) if dtype is _F32 else _CONSTANTS.get((value, dtype))
    if array is None:
        if not isinstance(value, int | float | complex):
            value = value.item()  # a tensor without dims, or a number of NumPy's
        if isinstance(value, complex) and dtype.kind not in "cW":
            if value.imag:
                name = "double" if dtype == np.float64 else "float"
                raise RuntimeError(f"value cannot be converted to type {name} without overflow")
            value = value.real
        array = np.array(value, dtype)
        if len(_CONSTANTS) + len(_CONSTANTS32) < 1024:
            if dtype is _F32:
                _CONSTANTS32[value] = array
            else:
                _CONSTANTS[value, dtype] = array
    return array


def exp_is_safe(array: np.ndarray) -> bool | np.bool:
    """Whether all elements are so small that a softmax need not subtract the maximum of each row first.

    NumPy finds these maxima row by row, which takes longer than the rest of a softmax: for 8192 rows of 64 elements 1.2 ms
    with the subtraction, against 0.16 ms for this test. If the norm of the array is small enough, so are all elements.
    """
    return np.vdot(array, array) < _SAFE_SQUARE or (array.min() > -_SAFE and array.max() < _SAFE)


def where_true(mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values where the mask is true and 0 elsewhere; unlike a product, also where a value is inf or nan.

    np.where takes a branch per element, which costs several times as much on masks without a pattern.
    """
    if values.size <= _FEW or values.dtype.kind == "c" or mask.shape != values.shape:
        return np.where(mask, values, constant(0, values.dtype))
    bits = _bits(mask, values.dtype)
    np.bitwise_and(bits, values.view(bits.dtype), bits)
    return bits.view(values.dtype)


def chosen(mask: np.ndarray, first: np.ndarray, second: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """np.where of arrays of one dtype, in `out` or a new array; without branches, as `where_true`, where arrays are large."""
    if out is None and mask.size <= _SOME >= first.size and second.size <= _SOME:
        return np.where(mask, first, second)
    arrays = [a for a in (mask, first, second, out) if a is not None and a.ndim]
    kind = first.dtype
    if kind.kind not in "fiuV" or kind.itemsize not in _BITS or not all(a.flags.c_contiguous for a in arrays):
        return _chosen_by_branches(mask, first, second, out)
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    made = np.empty(shape, kind) if out is None else out
    if made.shape != shape:
        return _chosen_by_branches(mask, first, second, out)  # which says what is wrong
    integer = _BITS[kind.itemsize]
    operands = mask, first.view(integer), second.view(integer)
    if all(a.shape in ((), shape) for a in operands):
        whole = [a for a in operands if a.ndim]

        def work(target: np.ndarray, *parts: np.ndarray) -> None:
            left = iter(parts)
            part, one, other = (next(left) if a.ndim else a for a in operands)
            _choose(part, one, other, target)

        in_blocks(work, made.view(integer), *whole, passes=5)
    else:
        _choose(*operands, made.view(integer))
    return made


def _choose(mask: np.ndarray, first: np.ndarray, second: np.ndarray, out: np.ndarray) -> None:
    """Integers of the first where the mask is true, else of the second, which may be `out`."""
    bits = _bits(mask, out.dtype)
    bits = np.bitwise_and(bits, np.bitwise_xor(first, second), bits if bits.shape == out.shape else None)
    np.bitwise_xor(bits, second, out)


def _bits(mask: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Integers as wide as a dtype, with all their bits set where the mask is true."""
    return np.asarray(np.negative(mask.view(np.int8)).astype(_BITS[dtype.itemsize]))


def _chosen_by_branches(mask: np.ndarray, first: np.ndarray, second: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    if out is None:
        return np.where(mask, first, second)
    if out is not second:
        np.copyto(out, second)
    np.copyto(out, first, where=mask)
    return out


def clipped(array: np.ndarray, low: float, high: float, out: np.ndarray | None = None) -> np.ndarray:
    """The array cut to [low, high]; nan stays."""
    return array.clip(constant(low, array.dtype), constant(high, array.dtype), out=out)


def at_most(array: np.ndarray, high: float, out: np.ndarray | None = None) -> np.ndarray:
    """The smaller of each element and a number; nan stays. NumPy computes a minimum with a constant one by one."""
    if array.size <= _FEW or array.dtype is not _F32:
        return np.minimum(array, constant(high, array.dtype), out=out)
    return clipped(array, -np.inf, high, out)


def at_least(array: np.ndarray, low: float, out: np.ndarray | None = None) -> np.ndarray:
    """The larger of each element and a number; nan stays."""
    if array.size <= _FEW or array.dtype is not _F32:
        return np.maximum(array, constant(low, array.dtype), out=out)
    return clipped(array, low, np.inf, out)


def logistic(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """1 / (1 + exp(-x)). exp of a large number overflows to inf, whose reciprocal is the right 0."""
    if x.size > BLOCK and splits(x, out):
        return in_blocks(lambda target, block: _logistic(block, target), np.empty_like(x) if out is None else out, x)
    return _logistic(x, out)


def _logistic(x: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    result = _negative(x, out)
    if result.__class__ is not _ndarray:
        result = np.asarray(result)
    _exp(result, result)
    return _reciprocal(_add(result, _ONE if result.dtype is _F32 else constant(1, result.dtype), result), result)


def log_add_exp(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """log(exp(first) + exp(second)), for complex numbers, too: from the one with the larger real part, so nothing overflows."""
    if first.dtype.kind != "c":
        return np.logaddexp(first, second)
    swapped = first.real < second.real
    high, low = np.where(swapped, second, first), np.where(swapped, first, second)
    result = high + np.log1p(np.exp(low - high))
    if not np.isfinite(high).all():
        infinite = (high.real == low.real) & np.isinf(high.real)
        # exp(-inf) + exp(-inf) is 0, whose logarithm is -inf again; of two infinite sums only the phases matter.
        both = np.where(high.real < 0, low, np.log(np.exp(low) + np.exp(high)))
        result = np.where(infinite, both, result)
    spoiled = np.isnan(first) | np.isnan(second)
    return np.where(spoiled, np.array(complex(np.nan, np.nan), result.dtype), result) if spoiled.any() else result


def log1p_exp_minus_abs(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(-|x|)), what softplus adds to the positive part of x."""
    e = np.asarray(np.abs(x))
    np.negative(e, e)
    np.exp(e, e)
    if e.dtype != _F32:
        return np.log1p(e, e)
    # NumPy's log1p is slow. log(u) with u = 1 + e rounded, corrected by what the rounding lost.
    unit = constant(1, _F32)
    u = np.asarray(np.add(e, unit))
    lost = np.asarray(np.subtract(u, unit))
    np.subtract(e, lost, lost)
    np.divide(lost, u, lost)
    np.log(u, u)
    return np.add(u, lost, u)
