"""Checks of pooling's arguments, with torch's messages: reached only by calls with wrong arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from ..._support.common import no_kernel, normal_dim
from .._windows import Ints, per_dim

_NUMBERS = {2: "two", 3: "three"}


def _refuse_count(name: str, argument: str, dims: int, count: int) -> NoReturn:
    """An argument with neither one number nor one for each dim."""
    if dims == 1:
        form = {"stride": "None, an int, list of ints, or", "padding": "an int, list of ints, or"}.get(
            argument, "an int, list of ints or"
        )
        raise RuntimeError(f"{name}() {argument} must be {form} tuple of ints of size 1 but got size {count}")
    what = "omitted, a single int" if argument == "stride" else "a single int"
    if name == "avg_pool3d":
        form = f"must be {what}"
    else:
        form = f"must be either {what}" if argument == "dilation" else f"must either be {what}"
    raise RuntimeError(f"{name}: {argument} {form}, or a tuple of {_NUMBERS[dims]} ints")


def _each(value: Sequence[int], dims: int, name: str, argument: str) -> Ints:
    values = per_dim(value, dims)
    if len(values) != dims:
        _refuse_count(name, argument, dims, len(values))
    return values


def settings(
    name: str, dims: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int] = (1,)
) -> tuple[Ints, Ints, Ints, Ints]:
    """Kernel, stride, padding and dilation with a number for each dim."""
    sizes = _each(kernel, dims, name, "kernel_size")
    steps = _each(stride, dims, name, "stride") if len(stride) else sizes
    return sizes, steps, _each(padding, dims, name, "padding"), _each(dilation, dims, name, "dilation")


def _half(kernel: int, dilation: int) -> int:
    """Half of a kernel's span, truncated."""
    span = (kernel - 1) * dilation + 1
    return span // 2 if span >= 0 else -(-span // 2)


def _refuse_max_pool1d(shape: Ints, kernel: int, stride: int, padding: int, dilation: int, out: Ints | None) -> NoReturn:
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            f"max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(shape)}"
        )
    for name, number in (("kernel_size", kernel), ("stride", stride)):
        if number <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {number}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if 2 * padding > kernel:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and kernel_size={kernel}"
        )
    if dilation <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {dilation}")
    assert out is not None
    raise RuntimeError(f"max_pool1d() Invalid computed output size: {out[0]}")


def refuse(name: str, shape: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints | None) -> NoReturn:
    """Raises torch's error for a pooling with wrong arguments; `out` is the number of windows, if that is defined."""
    dims = len(kernel)
    if dims == 1:
        _refuse_max_pool1d(shape, kernel[0], stride[0], padding[0], dilation[0], out)
    if name == "avg_pool2d" and len(shape) < 3:
        normal_dim(-3, len(shape))
    wrong_dims = len(shape) not in (dims + 1, dims + 2)
    if wrong_dims and name != "avg_pool2d":
        raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")
    for k, s, p, d in zip(kernel, stride, padding, dilation, strict=True):
        if s == 0:
            raise RuntimeError("stride should not be zero")
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > _half(k, d):
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
            )
    letters = "THW"[-dims:]
    for what, sign, values in (("kernel size", "k", kernel), ("stride", "d", stride), ("dilation", "dilation", dilation)):
        if min(values) <= 0:
            sizes = " ".join(f"{sign}{letter}: {value}" for letter, value in zip(letters, values, strict=True))
            raise RuntimeError(f"{what} should be greater than zero, but got {sizes}")
    if dims == 2 and (wrong_dims or 0 in shape[-3:]):
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(shape)}"
        )
    if 0 in shape[-dims - 1 :]:
        caller = "max_pool3d_with_indices_out_cpu_template" if name == "max_pool3d" else name
        raise RuntimeError(
            f"{caller}(): Expected input's non-batch dimensions to have positive length, but input has a shape "
            f"of {list(shape)} and non-batch dimension {shape[-dims - 1 :].index(0)} has length zero!"
        )
    if name == "avg_pool3d" and any(n < k for n, k in zip(shape[-3:], kernel, strict=True)):
        raise RuntimeError(
            "input image (T: {} H: {} W: {}) smaller than kernel size (kT: {} kH: {} kW: {})".format(*shape[-3:], *kernel)
        )
    if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        if dims == 2:
            sizes = f"padW = {padding[1]}, padH = {padding[0]}, kW = {kernel[1]}, kH = {kernel[0]}"
        else:
            sizes = "kT: {0} kW: {2} kH: {1} padT: {3} padW: {5} padH: {4}".format(*kernel, *padding)
        raise RuntimeError(f"pad should be smaller than or equal to half of kernel size, but got {sizes}")
    assert out is not None
    planes = shape[-dims - 1]
    raise RuntimeError(
        f"Given input size: ({'x'.join(map(str, shape[-dims - 1 :]))}). Calculated output size: ({planes}x"
        f"{'x'.join(map(str, out))}). Output size is too small"
    )


def check_one_int(name: str, shape: Ints, **arguments: Sequence[int]) -> None:
    """RuntimeError unless the input has two or three dims, and each argument one number (a stride may have none)."""
    if not 2 <= len(shape) <= 3:
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for argument #1 'self' "
            f"(while checking arguments for {name})"
        )
    for argument, value in arguments.items():
        if len(value) != 1 and (argument != "stride" or len(value)):
            raise RuntimeError(f"{name}() argument '{argument}' should contain one int (got {len(value)})")


def check_ordered(name: str, array: np.ndarray) -> None:
    """NotImplementedError for what has no largest element, and for unsigned integers of more than a byte."""
    kind = array.dtype.kind
    if kind in "bc" or (kind == "u" and array.dtype.itemsize > 1):
        raise no_kernel(name, array)


def check_not_empty(
    name: str, shape: Ints, dims: int, text: str = "input has sizes {shape} with dimension {axis} being empty"
) -> None:
    """RuntimeError for an input that is empty in more than its batch; `text` ends the sentence."""
    for axis in range(len(shape) - dims, len(shape)):
        if shape[axis] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but "
                + text.format(shape=list(shape), axis=axis)
            )
