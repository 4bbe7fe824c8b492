"""Factories of evenly spaced numbers: arange, range, linspace, logspace."""

from __future__ import annotations

import math
import warnings

import numpy as np

from .._core import dtype as dt
from .._dispatch.registry import op
from ._common import np_dtype
from ._factory import OPTIONS, check_options
from .random import scaled

_I64 = np.dtype(np.int64)


def _plain(number):
    """A Python number; 0-d tensors stand for theirs."""
    return number._array.item() if hasattr(number, "_array") else number


# ---------------------------------------------------------------- by step


def _range_dtype(dtype, *numbers):
    if dtype is not None:
        return np_dtype(dtype)
    return np_dtype(None) if any(isinstance(n, float) for n in numbers) else _I64


def _check_range(start, end, step):
    if not all(map(math.isfinite, (start, end))):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def _arange(start, end, step, dtype, layout, pin_memory):
    if layout is not None or pin_memory:
        check_options(layout, pin_memory)
    start, end, step = _plain(start), _plain(end), _plain(step)
    kind = _range_dtype(dtype, start, end, step)
    _check_range(start, end, step)
    if kind.kind == "b":
        raise NotImplementedError("\"arange_cpu\" not implemented for 'Bool'")
    if kind.kind in "iu":
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero")
        made = np.arange(start, end, step, _I64)
    else:
        made = np.arange(math.ceil((end - start) / step)) * float(step)
        made += start
    return made if made.dtype is kind else made.astype(kind)


def _arange_shape(start, end, step, dtype):
    start, end, step = _plain(start), _plain(end), _plain(step)
    _check_range(start, end, step)
    return (math.ceil((end - start) / step),), _range_dtype(dtype, start, end, step)


@op(f"arange(Scalar end, {OPTIONS}) -> Tensor", nondiff=True,
    shape=lambda end, dtype, *_: _arange_shape(0, end, 1, dtype), samples=lambda make: [(5,)])
def arange(end, dtype, layout, device, pin_memory):
    if dtype is None and end.__class__ is int and end >= 0 and layout is None and not pin_memory:
        return np.arange(end)
    return _arange(0, end, 1, dtype, layout, pin_memory)


op(f"arange.start(Scalar start, Scalar end, {OPTIONS}) -> Tensor",
   lambda start, end, dtype, layout, device, pin: _arange(start, end, 1, dtype, layout, pin), nondiff=True,
   shape=lambda start, end, dtype, *_: _arange_shape(start, end, 1, dtype), samples=lambda make: [(1, 4)])
op(f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {OPTIONS}) -> Tensor",
   lambda start, end, step, dtype, layout, device, pin: _arange(start, end, step, dtype, layout, pin), nondiff=True,
   shape=lambda start, end, step, dtype, *_: _arange_shape(start, end, step, dtype), samples=lambda make: [(1, 4, 0.5)])


def _closed_range(start, end, step, dtype, layout, pin_memory):
    warnings.warn("torch.range is deprecated and will be removed in a future release because its behavior is "
                  "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
                  "[start, end).", UserWarning, stacklevel=4)
    check_options(layout, pin_memory)
    _check_range(start, end, step)
    return (np.arange(int((end - start) / step) + 1) * step + start).astype(np_dtype(dtype))


op(f"range.step(Scalar start, Scalar end, Scalar step=1, {OPTIONS}) -> Tensor",
   lambda start, end, step, dtype, layout, device, pin: _closed_range(start, end, step, dtype, layout, pin),
   nondiff=True, samples=lambda make: [])
op(f"range(Scalar start, Scalar end, {OPTIONS}) -> Tensor",
   lambda start, end, dtype, layout, device, pin: _closed_range(start, end, 1, dtype, layout, pin), nondiff=True,
   samples=lambda make: [])


# ---------------------------------------------------------------- by count


def _spaced_dtype(dtype, start, end):
    if dtype is not None:
        return np_dtype(dtype)
    return np_dtype(dt.number_dtype(1j) if isinstance(start, complex) or isinstance(end, complex) else None)


def _spaced(start, end, steps, kind):
    """`steps` numbers from start to end; either half is counted from its own end, so that both ends are exact."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if steps < 2:
        return np.array([start] * steps, kind)
    if kind.kind == "c":
        real, imag = (_spaced(a, b, steps, np.dtype(f"f{kind.itemsize // 2}"))
                      for a, b in ((start.real, end.real), (start.imag, end.imag)))
        return (real + 1j * imag).astype(kind)
    work = np.dtype(np.float64) if kind.itemsize == 8 or kind.kind in "iu" else np.dtype(np.float32)
    first, last = work.type(start), work.type(end)
    step = work.type((last - first) / work.type(steps - 1)) if kind.kind not in "iu" else (last - first) / (steps - 1)
    count = np.arange(steps, dtype=work)
    half = steps // 2
    made = np.empty(steps, work)
    made[:half] = scaled(count[:half], step, first)
    made[half:] = scaled(steps - 1 - count[half:], -step, last)
    return made if made.dtype is kind else made.astype(kind)


def _linspace(start, end, steps, dtype, layout, device, pin_memory):
    check_options(layout, pin_memory)
    start, end = _plain(start), _plain(end)
    return _spaced(start, end, steps, _spaced_dtype(dtype, start, end))


def _logspace(start, end, steps, base, dtype, layout, device, pin_memory):
    check_options(layout, pin_memory)
    start, end = _plain(start), _plain(end)
    kind = _spaced_dtype(dtype, start, end)
    work = kind if kind.kind in "fc" and kind.itemsize >= 4 else np.dtype(np.float64)
    exponents = _spaced(start, end, steps, work)
    with np.errstate(all="ignore"):
        return np.power(work.type(base), exponents).astype(kind)


def _count_shape(start, end, steps, *rest):
    dtype = rest[0] if not isinstance(rest[0], float | int) else rest[1]
    return (steps,), _spaced_dtype(dtype, _plain(start), _plain(end))


for _overload, _start, _end in ((".Tensor_Tensor", "Tensor", "Tensor"), (".Tensor_Scalar", "Tensor", "Scalar"),
                                (".Scalar_Tensor", "Scalar", "Tensor"), ("", "Scalar", "Scalar")):
    _given = [(0.5, 2.0, 5)] if not _overload else []
    op(f"linspace{_overload}({_start} start, {_end} end, int steps, {OPTIONS}) -> Tensor", _linspace, nondiff=True,
       shape=_count_shape, samples=lambda make, given=_given: given)
    op(f"logspace{_overload}({_start} start, {_end} end, int steps, float base=10., {OPTIONS}) -> Tensor", _logspace,
       nondiff=True, shape=_count_shape, samples=lambda make, given=_given: given)
