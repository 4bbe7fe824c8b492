"""Factories of evenly spaced numbers: arange, range, linspace, logspace."""

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._core.strides import overflowed
from ..._core.tensor import make_tensor
from ..._dispatch.errors import torch_error
from ..._dispatch.out_arguments import store_out
from ..._dispatch.registry import op
from .._support.common import no_kernel, np_dtype
from .._support.factory import OPTIONS, check_options
from .._support.out_rules import fills_out
from .._support.warn import warn
from ..random.uniform_normal import scaled

_I64 = np.dtype(np.int64)
_PLAIN = (int, float)


def _plain(number):
    """A Python number, unwrapped from a 0-d tensor or array."""
    if number.__class__ in _PLAIN:
        return number
    if hasattr(number, "_array"):
        number = number._array
    return number.item() if isinstance(number, np.ndarray) else number


def _filling(spec):
    """Lets a factory of a row of numbers fill a tensor of as many elements, whatever its shape; others take the row's."""

    def fill(*args):
        *values, out = args
        named = fills_out(spec, tuple(values), out)
        result = spec.kernel(*[getattr(value, "_array", value) for value in named])
        if result.size == out.numel():
            result = result.reshape(out._array.shape)
        store_out(spec, named, (out,), (make_tensor(result),))
        return out

    spec.out_form = fill
    return spec


# ---------------------------------------------------------------- by step


def _range_dtype(dtype, *numbers):
    if dtype is not None:
        return np_dtype(dtype)
    return np_dtype(None) if any(isinstance(n, float) for n in numbers) else _I64


# Elements, of which NumPy makes none where there should be more.
_MOST = 1 << 60


def _check_range(start, end, step):
    try:
        known = math.isfinite(start) and math.isfinite(end)
        moves = step != 0 and not math.isnan(step)
    except TypeError:  # a complex number
        raise RuntimeError("value cannot be converted to type double without overflow") from None
    if not moves:
        raise RuntimeError("step must be nonzero")
    if not known:
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def _arange(start, end, step, dtype, layout, pin_memory):
    if layout is not None or pin_memory:
        check_options(layout, pin_memory)
    start, end, step = _plain(start), _plain(end), _plain(step)
    kind = _range_dtype(dtype, start, end, step)
    _check_range(start, end, step)
    if kind.kind in "bc":
        raise no_kernel("arange_cpu", kind)
    if (end - start) / step >= _MOST:
        raise overflowed((math.ceil((end - start) / step),))
    if kind is _I64:
        return np.arange(*_whole(start, end, step))
    values = np.arange(math.ceil((end - start) / step)) * (int(step) if kind.kind in "iu" else float(step))
    values += int(start) if kind.kind in "iu" else start
    return values if values.dtype is kind else values.astype(kind)


def _whole(start, end, step):
    """The bounds of an int64 range, which are cut to whole numbers before anything is counted; those of others are not."""
    start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise torch_error(ValueError("step must be nonzero"))
    return start, end, step


def _arange_shape(start, end, step, dtype):
    start, end, step = _plain(start), _plain(end), _plain(step)
    _check_range(start, end, step)
    kind = _range_dtype(dtype, start, end, step)
    count = len(range(*_whole(start, end, step))) if kind is _I64 else math.ceil((end - start) / step)
    return (count,), kind


@op(
    f"arange(Scalar end, {OPTIONS}) -> Tensor",
    nondiff=True,
    shape=lambda end, dtype, *_: _arange_shape(0, end, 1, dtype),
    samples=lambda make: [(5,)],
    host_made=True,
    out_rule=fills_out,
)
def arange(end, dtype, layout, device, pin_memory):
    """Numbers from `start` up to but not including `end`, `step` apart.

    >>> torch.arange(1, 8, 3)
    tensor([1, 4, 7])
    """
    if dtype is None and end.__class__ is int and 0 <= end < _MOST and layout is None and not pin_memory:
        return np.arange(end)
    return _arange(0, end, 1, dtype, layout, pin_memory)


_filling(arange)
_filling(
    op(
        f"arange.start(Scalar start, Scalar end, {OPTIONS}) -> Tensor",
        lambda start, end, dtype, layout, device, pin: _arange(start, end, 1, dtype, layout, pin),
        nondiff=True,
        shape=lambda start, end, dtype, *_: _arange_shape(start, end, 1, dtype),
        samples=lambda make: [(1, 4)],
        host_made=True,
        out_rule=fills_out,
    )
)
_filling(
    op(
        f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {OPTIONS}) -> Tensor",
        lambda start, end, step, dtype, layout, device, pin: _arange(start, end, step, dtype, layout, pin),
        nondiff=True,
        shape=lambda start, end, step, dtype, *_: _arange_shape(start, end, step, dtype),
        samples=lambda make: [(1, 4, 0.5)],
        host_made=True,
        out_overload="start_out",
        out_rule=fills_out,
    )
)


def _closed_shape(start, end, step, dtype):
    _warn_closed()
    _check_range(start, end, step)
    return (int((end - start) / step) + 1,), np_dtype(dtype)


def _warn_closed():
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
        "[start, end)."
    )


def _closed_range(start, end, step, dtype, layout, pin_memory):
    _warn_closed()
    check_options(layout, pin_memory)
    _check_range(start, end, step)
    return (np.arange(int((end - start) / step) + 1) * step + start).astype(np_dtype(dtype))


_filling(
    op(
        f"range.step(Scalar start, Scalar end, Scalar step=1, {OPTIONS}) -> Tensor",
        lambda start, end, step, dtype, layout, device, pin: _closed_range(start, end, step, dtype, layout, pin),
        nondiff=True,
        shape=lambda start, end, step, dtype, *_: _closed_shape(start, end, step, dtype),
        samples=lambda make: [],
        out_overload="out",
        out_rule=fills_out,
        doc="""Numbers from `start` to `end`, both included; `arange` is to be preferred.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.range(1, 3)
    tensor([1., 2., 3.])
    """,
        pin_memory_stays_open=True,
    )
)
_filling(
    op(
        f"range(Scalar start, Scalar end, {OPTIONS}) -> Tensor",
        lambda start, end, dtype, layout, device, pin: _closed_range(start, end, 1, dtype, layout, pin),
        nondiff=True,
        shape=lambda start, end, dtype, *_: _closed_shape(start, end, 1, dtype),
        samples=lambda make: [],
        out_overload="out_",
        out_rule=fills_out,
        pin_memory_stays_open=True,
    )
)


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
        real, imag = (
            _spaced(a, b, steps, np.dtype(f"f{kind.itemsize // 2}"))
            for a, b in ((start.real, end.real), (start.imag, end.imag))
        )
        return (real + 1j * imag).astype(kind)
    work = np.dtype(np.float64) if kind.itemsize == 8 or kind.kind in "iu" else np.dtype(np.float32)
    first, last = work.type(start), work.type(end)
    step = work.type((last - first) / work.type(steps - 1)) if kind.kind not in "iu" else (last - first) / (steps - 1)
    count = np.arange(steps, dtype=work)
    half = steps // 2
    values = np.empty(steps, work)
    values[:half] = scaled(count[:half], step, first)
    values[half:] = scaled(steps - 1 - count[half:], -step, last)
    return values if values.dtype is kind else values.astype(kind)


def _ends(name, start, end):
    """Both bounds as Python numbers; RuntimeError for tensors with dims."""
    if start.__class__ in _PLAIN and end.__class__ in _PLAIN:
        return start, end
    wide = [
        f"{label} with {bound.ndim} dimension(s)"
        for label, bound in (("start", start), ("end", end))
        if getattr(bound, "ndim", 0)
    ]
    if wide:
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {' and '.join(wide)}.")
    return _plain(start), _plain(end)


def _check_kind(name, dtype, start, end):
    """RuntimeError for complex bounds where real numbers are asked for."""
    if dtype is not None and np_dtype(dtype).kind not in "cW" and (isinstance(start, complex) or isinstance(end, complex)):
        inferred, wanted = dt.number_dtype(1j), dt.from_numpy(np_dtype(dtype))
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {inferred.cpp_name} can't be safely cast to passed dtype {wanted.scalar_name}"
        )


def _linspace(start, end, steps, dtype, layout, device, pin_memory):
    check_options(layout, pin_memory)
    start, end = _ends("linspace", start, end)
    _check_kind("linspace", dtype, start, end)
    return _spaced(start, end, steps, _spaced_dtype(dtype, start, end))


def _logspace(start, end, steps, base, dtype, layout, device, pin_memory):
    check_options(layout, pin_memory)
    start, end = _ends("logspace", start, end)
    _check_kind("logspace", dtype, start, end)
    kind = _spaced_dtype(dtype, start, end)
    work = kind if kind.kind in "fc" and kind.itemsize >= 4 else np.dtype(np.float64)
    exponents = _spaced(start, end, steps, work)
    with np.errstate(all="ignore"):
        return np.power(work.type(base), exponents).astype(kind)


def _count_shape(start, end, steps, *rest):
    dtype = rest[0] if not isinstance(rest[0], float | int) else rest[1]
    return (steps,), _spaced_dtype(dtype, _plain(start), _plain(end))


for _overload, _start, _end in (
    (".Tensor_Tensor", "Tensor", "Tensor"),
    (".Tensor_Scalar", "Tensor", "Scalar"),
    (".Scalar_Tensor", "Scalar", "Tensor"),
    ("", "Scalar", "Scalar"),
):
    _samples = [(0.5, 2.0, 5)] if not _overload else []
    _filling(
        op(
            f"linspace{_overload}({_start} start, {_end} end, int steps, {OPTIONS}) -> Tensor",
            _linspace,
            nondiff=True,
            shape=_count_shape,
            samples=lambda make, samples=_samples: samples,
            host_made=True,
            out_rule=fills_out,
            doc="""`steps` numbers evenly spaced from `start` to `end`, both included.

        >>> torch.linspace(0, 1, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
        """,
        )
    )
    _filling(
        op(
            f"logspace{_overload}({_start} start, {_end} end, int steps, float base=10., {OPTIONS}) -> Tensor",
            _logspace,
            nondiff=True,
            shape=_count_shape,
            samples=lambda make, samples=_samples: samples,
            host_made=True,
            out_rule=fills_out,
            doc="""`steps` powers of `base` with exponents evenly spaced from `start` to `end`.

        >>> torch.logspace(0, 2, 3)
        tensor([  1.,  10., 100.])
        """,
        )
    )
