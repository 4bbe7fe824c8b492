"""Factories: tensors from sizes, numbers and ranges."""

from __future__ import annotations

import math

import numpy as np

from .._core import dtype as dt
from .._dispatch.registry import op
from ._common import np_dtype

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_LIKE = _OPTIONS + ", MemoryFormat? memory_format=None"


def _size(size):
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
    return tuple(size)


def _sized(size, dtype, *_):
    return _size(size), np_dtype(dtype)


@op(f"empty(int[] size, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor", nondiff=True, shape=_sized)
def empty(size, dtype, layout, device, pin_memory, memory_format):
    return np.empty(_size(size), np_dtype(dtype))


@op(f"zeros(int[] size, {_OPTIONS}) -> Tensor", nondiff=True, shape=_sized)
def zeros(size, dtype, layout, device, pin_memory):
    return np.zeros(_size(size), np_dtype(dtype))


@op(f"ones(int[] size, {_OPTIONS}) -> Tensor", nondiff=True, shape=_sized)
def ones(size, dtype, layout, device, pin_memory):
    return np.ones(_size(size), np_dtype(dtype))


def _fill_dtype(value, dtype):
    return np_dtype(dt.number_dtype(value) if dtype is None else dtype)


@op(f"full(int[1] size, Scalar fill_value, {_OPTIONS}) -> Tensor", nondiff=True,
    shape=lambda size, fill_value, dtype, *_: (_size(size), _fill_dtype(fill_value, dtype)))
def full(size, fill_value, dtype, layout, device, pin_memory):
    made = np.empty(_size(size), _fill_dtype(fill_value, dtype))
    made.fill(fill_value)
    return made


def _like(self, dtype, *_):
    return self._array.shape, np_dtype(dtype, self._array.dtype)


@op(f"empty_like(Tensor self, {_LIKE}) -> Tensor", nondiff=True, shape=_like)
def empty_like(self, dtype, layout, device, pin_memory, memory_format):
    return np.empty_like(self, np_dtype(dtype, self.dtype))


@op(f"zeros_like(Tensor self, {_LIKE}) -> Tensor", nondiff=True, shape=_like)
def zeros_like(self, dtype, layout, device, pin_memory, memory_format):
    return np.zeros(self.shape, np_dtype(dtype, self.dtype)) if self.flags.c_contiguous else \
        np.zeros_like(self, np_dtype(dtype, self.dtype))


@op(f"ones_like(Tensor self, {_LIKE}) -> Tensor", nondiff=True, shape=_like)
def ones_like(self, dtype, layout, device, pin_memory, memory_format):
    return np.ones_like(self, np_dtype(dtype, self.dtype))


@op(f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor", nondiff=True,
    shape=lambda self, fill_value, dtype, *_: _like(self, dtype))
def full_like(self, fill_value, dtype, layout, device, pin_memory, memory_format):
    made = np.empty_like(self, np_dtype(dtype, self.dtype))
    made.fill(fill_value)
    return made


def _range_dtype(dtype, *numbers):
    if dtype is not None:
        return np_dtype(dtype)
    return np_dtype(None) if any(isinstance(n, float) for n in numbers) else np.dtype(np.int64)


def _range_length(start, end, step):
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return math.ceil((end - start) / step)


def _arange(start, end, step, dtype):
    wanted = _range_dtype(dtype, start, end, step)
    count = _range_length(start, end, step)
    if all(isinstance(n, int) for n in (start, end, step)):
        return np.arange(start, end, step, wanted)
    return (np.arange(count) * step + start).astype(wanted)


def _arange_shape(start, end, step, dtype):
    return (_range_length(start, end, step),), _range_dtype(dtype, start, end, step)


op(f"arange(Scalar end, {_OPTIONS}) -> Tensor", lambda end, dtype, *_: _arange(0, end, 1, dtype), nondiff=True,
   shape=lambda end, dtype, *_: _arange_shape(0, end, 1, dtype))
op(f"arange.start(Scalar start, Scalar end, {_OPTIONS}) -> Tensor",
   lambda start, end, dtype, *_: _arange(start, end, 1, dtype), nondiff=True,
   shape=lambda start, end, dtype, *_: _arange_shape(start, end, 1, dtype))
op(f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor",
   lambda start, end, step, dtype, *_: _arange(start, end, step, dtype), nondiff=True,
   shape=lambda start, end, step, dtype, *_: _arange_shape(start, end, step, dtype))


@op(f"linspace(Scalar start, Scalar end, int steps, {_OPTIONS}) -> Tensor", nondiff=True,
    shape=lambda start, end, steps, dtype, *_: ((steps,), np_dtype(dtype)))
def linspace(start, end, steps, dtype, layout, device, pin_memory):
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    wanted = np_dtype(dtype)
    if wanted.kind in "iu":
        return np.linspace(start, end, steps).astype(wanted)
    # Both halves are counted from their own end, as torch does, so that the ends are exact.
    count = np.arange(steps)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    work = wanted if wanted.itemsize >= 4 else np.dtype(np.float32)
    step = work.type(step)
    made = np.where(count < steps // 2, work.type(start) + step * count.astype(work),
                    work.type(end) - step * (steps - count - 1).astype(work)) if steps > 1 else np.full(steps, start, work)
    return made.astype(wanted, copy=False)


@op(f"eye(int n, {_OPTIONS}) -> Tensor", nondiff=True, shape=lambda n, dtype, *_: ((n, n), np_dtype(dtype)))
def eye(n, dtype, layout, device, pin_memory):
    return np.eye(n, dtype=np_dtype(dtype))


@op(f"eye.m(int n, int m, {_OPTIONS}) -> Tensor", nondiff=True, shape=lambda n, m, dtype, *_: ((n, m), np_dtype(dtype)))
def eye_m(n, m, dtype, layout, device, pin_memory):
    return np.eye(n, m, dtype=np_dtype(dtype))


@op(f"scalar_tensor(Scalar s, {_OPTIONS}) -> Tensor", nondiff=True, shape=lambda s, dtype, *_: ((), np_dtype(dtype)))
def scalar_tensor(s, dtype, layout, device, pin_memory):
    return np.asarray(s, np_dtype(dtype))
