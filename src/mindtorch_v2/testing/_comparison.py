"""assert_close: tensors, numbers and containers of them, compared by torch's rules and described in its words."""

from __future__ import annotations

import cmath
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from .. import _surface as torch
from .._core import dtype as dt
from .._core.tensor import Tensor

# Relative and absolute tolerance; types that are not listed are compared exactly.
_TOLERANCES = {
    dt.float16: (1e-3, 1e-5),
    dt.bfloat16: (1.6e-2, 1e-5),
    dt.float32: (1.3e-6, 1e-5),
    dt.float64: (1e-7, 1e-7),
    dt.complex64: (1.3e-6, 1e-5),
    dt.complex128: (1e-7, 1e-7),
}


class _Options:
    """The arguments of one assert_close call."""

    def __init__(
        self,
        rtol: float | None,
        atol: float | None,
        equal_nan: bool,
        check_device: bool,
        check_dtype: bool,
        check_layout: bool,
        check_stride: bool,
        allow_subclasses: bool,
        msg: str | Callable[[str], str] | None,
    ) -> None:
        if (rtol is None) != (atol is None):
            raise ValueError(
                f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {'rtol' if rtol is None else 'atol'}."
            )
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride
        self.allow_subclasses, self.msg = allow_subclasses, msg

    def tolerances(self, *dtypes: dt.dtype) -> tuple[float, float]:
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        tolerances = [_TOLERANCES.get(d, (0.0, 0.0)) for d in dtypes]
        return max(r for r, _ in tolerances), max(a for _, a in tolerances)


class _Mismatch(Exception):
    """A difference, and the path of keys to where it is."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.path: list[Any] = []


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere, and types and shapes agree.

    Takes tensors, arrays, numbers, and sequences and mappings of those. `msg` replaces the message, or makes it from
    the generated one.
    """
    options = _Options(rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride, allow_subclasses, msg)
    try:
        _compare(actual, expected, options)
    except _Mismatch as difference:
        text = difference.message
        if difference.path:
            text += f"\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in difference.path)}"
        raise AssertionError(msg(text) if callable(msg) else text if msg is None else msg) from None


def _compare(actual: Any, expected: Any, options: _Options) -> None:
    if _is_container(actual) and _is_container(expected) and isinstance(actual, Mapping) == isinstance(expected, Mapping):
        _compare_containers(actual, expected, options)
    elif actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(f"None mismatch: {actual} is not {expected}")
    elif isinstance(actual, bool) and isinstance(expected, bool):
        if actual is not expected:
            raise _Mismatch(f"Booleans mismatch: {actual} is not {expected}")
    elif _is_number(actual) and _is_number(expected):
        _compare_numbers(actual, expected, options)
    elif _is_array(actual) and _is_array(expected) and (isinstance(actual, Tensor) == isinstance(expected, Tensor)):
        _compare_tensors(_as_tensor(actual), _as_tensor(expected), options)
    else:
        _unhandled(actual, expected)


def _unhandled(actual: Any, expected: Any) -> NoReturn:
    raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str | bytes)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex) and not isinstance(value, bool)


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__array_interface__")


def _as_tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else torch.as_tensor(value)  # type: ignore[attr-defined, no-any-return]


def _compare_containers(actual: Any, expected: Any, options: _Options) -> None:
    if isinstance(actual, Mapping):
        missing, extra = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or extra:
            raise _Mismatch(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
                f"Additional keys in the actual mapping: {sorted(extra, key=str)}"
            )
        keys: Any = sorted(expected, key=str)
    else:
        if len(actual) != len(expected):
            raise _Mismatch(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        keys = range(len(expected))
    for key in keys:
        try:
            _compare(actual[key], expected[key], options)
        except _Mismatch as difference:
            difference.path.insert(0, key)
            raise


# ---------------------------------------------------------------- numbers


def _compare_numbers(actual: Any, expected: Any, options: _Options) -> None:
    if options.check_dtype and type(actual) is not type(expected):
        raise _Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    rtol, atol = options.tolerances(
        *[
            dt.complex128 if isinstance(v, complex) else dt.float64 if isinstance(v, float) else dt.int64
            for v in (actual, expected)
        ]
    )
    difference = abs(actual - expected)
    both_nan = cmath.isnan(actual) and cmath.isnan(expected)
    if actual == expected or (options.equal_nan and both_nan):
        return
    if math.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    raise _Mismatch(_number_message(actual, expected, rtol, atol))


def _number_message(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    exact = rtol == 0 and atol == 0
    difference = abs(actual - expected)
    relative = math.inf if expected == 0 else difference / abs(expected)
    lines = [
        f"Scalars are not {'equal' if exact else 'close'}!",
        "",
        f"Expected {expected} but got {actual}.",
        f"Absolute difference: {difference}",
        f"Relative difference: {relative}",
    ]
    if not exact:
        lines[3] += f" (up to {atol} allowed)"
        lines[4] += f" (up to {rtol} allowed)"
    return "\n".join(lines)


# ---------------------------------------------------------------- tensors


def _compare_tensors(actual: Any, expected: Any, options: _Options) -> None:
    if not options.allow_subclasses and type(actual) is not type(expected):
        _unhandled(actual, expected)
    _compare_attributes(actual, expected, options)
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    if "meta" in (actual.device.type, expected.device.type):
        return
    if actual.is_sparse or expected.is_sparse:
        actual, expected = actual.to_dense(), expected.to_dense()
    actual, expected = actual.detach(), expected.detach()
    if actual.dtype is not expected.dtype:
        common = dt.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(common), expected.to(common)
    matches = torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)  # type: ignore[attr-defined]
    if bool(matches.all()):
        return
    if not actual.ndim:
        raise _Mismatch(_number_message(actual.item(), expected.item(), rtol, atol))
    raise _Mismatch(_tensor_message(actual, expected, matches, rtol, atol))


def _compare_attributes(actual: Any, expected: Any, options: _Options) -> None:
    def differ(name: str, first: Any, second: Any) -> NoReturn:
        raise _Mismatch(f"The values for attribute '{name}' do not match: {first} != {second}.")

    if actual.shape != expected.shape:
        differ("shape", actual.shape, expected.shape)
    if options.check_layout and actual.is_sparse != expected.is_sparse:
        differ("layout", *["torch.sparse_coo" if t.is_sparse else "torch.strided" for t in (actual, expected)])
    if options.check_device and actual.device != expected.device:
        differ("device", actual.device, expected.device)
    if options.check_dtype and actual.dtype is not expected.dtype:
        differ("dtype", actual.dtype, expected.dtype)
    if options.check_stride and actual.stride() != expected.stride():
        differ("stride()", actual.stride(), expected.stride())


def _tensor_message(actual: Any, expected: Any, matches: Any, rtol: float, atol: float) -> str:
    exact = rtol == 0 and atol == 0
    if not (actual.is_floating_point() or actual.is_complex()):
        actual, expected = actual.to(dt.int64), expected.to(dt.int64)
    count, total = int((~matches).sum()), matches.numel()
    absolute = torch.abs(actual - expected)  # type: ignore[attr-defined]
    relative = absolute / torch.abs(expected)  # type: ignore[attr-defined]
    lines = [
        f"Tensor-likes are not {'equal' if exact else 'close'}!",
        "",
        f"Mismatched elements: {count} / {total} ({count / total:.1%})",
    ]
    for name, values, limit in (("absolute", absolute, atol), ("relative", relative, rtol)):
        # Elements that match have no say in where the greatest difference is.
        flat = torch.where(matches, torch.zeros_like(values), values).flatten()  # type: ignore[attr-defined]
        at = int(torch.argmax(flat))  # type: ignore[attr-defined]
        allowed = "" if exact else f" (up to {limit} allowed)"
        lines.append(f"Greatest {name} difference: {flat[at].item()} at index {_position(at, actual.shape)}{allowed}")
    return "\n".join(lines)


def _position(flat: int, shape: Any) -> tuple[int, ...]:
    indices = []
    for size in reversed(shape):
        indices.append(flat % size)
        flat //= size
    return tuple(reversed(indices))


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older name: no types are checked, and NaNs are equal."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    assert_close(
        torch.as_tensor(actual),
        torch.as_tensor(expected),
        rtol=rtol,
        atol=atol,  # type: ignore[attr-defined]
        equal_nan=equal_nan,
        check_dtype=False,
        check_device=True,
        check_stride=False,
        msg=msg or None,
    )
