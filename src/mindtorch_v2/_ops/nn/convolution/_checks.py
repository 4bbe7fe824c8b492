"""Checks of a convolution's arguments, in the order of torch's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..._support.common import cpp_name, no_kernel, scalar_name, unexpected_dtype
from .._windows import Ints, per_dim

# The names of dims in messages, outermost first. A sequence is an image of height 1.
_SIDES = ("depth", "height", "width")
_INT64 = np.dtype(np.int64)
_FLOAT32 = np.dtype(np.float32)


def each(value: Iterable[int], dims: int, name: str = "stride") -> Ints:
    """A setting (stride, padding ...) for each spatial dim; RuntimeError unless there is one number, or one per dim."""
    values = per_dim(value, dims)
    if len(values) != dims:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match the "
            f"convolution dimensions, but got {name}={list(values)}"
        )
    return values


def check_weight(weight: np.ndarray, groups: int) -> None:
    """Checks of the weight that come before those of stride, padding and dilation."""
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def check_sizes(
    input: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> None:
    """RuntimeError where the settings and the shapes of input, weight and bias do not fit."""
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(stride) < 1:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) < 0:
        raise RuntimeError("dilation should be greater than zero")
    input_shape, shape = input.shape, weight.shape
    if len(input_shape) != len(shape):
        raise RuntimeError(
            f"Expected {len(shape)}-dimensional input for {len(shape)}-dimensional weight {list(shape)}, but "
            f"got {len(input_shape)}-dimensional input of size {list(input_shape)} instead"
        )
    if shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of "
            f"size {list(shape)} instead"
        )
    if shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but "
            f"got weight of size [{list(shape)}] instead"
        )
    expected, out_channels = (shape[0], shape[1] * groups) if transposed else (shape[1] * groups, shape[0])
    if input_shape[1] != expected:
        kind = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {kind}, weight of size {list(shape)}, expected input{list(input_shape)} to "
            f"have {expected} channels, but got {input_shape[1]} channels instead"
        )
    if bias is not None and bias.shape != (out_channels,):
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {list(shape)}, "
            f"expected bias to be 1-dimensional with {out_channels} elements, but got bias of size "
            f"{list(bias.shape)} instead"
        )
    if not transposed:
        spatial = [n + 2 * p for n, p in zip(input_shape[2:], padding, strict=True)]
        reach = [d * (k - 1) + 1 for k, d in zip(shape[2:], dilation, strict=True)]
        if any(n < r for n, r in zip(spatial, reach, strict=True)):
            raise RuntimeError(
                f"Calculated padded input size per channel: {_by(spatial)}. Kernel size: {_by(reach)}. Kernel "
                "size can't be greater than actual input size"
            )
    if 0 in input_shape[2:] or 0 in shape[2:] or 0 in dilation or transposed:
        _check_windows(input_shape, shape, stride, dilation, transposed, output_padding)


def _check_windows(
    input_shape: Ints, shape: Ints, stride: Ints, dilation: Ints, transposed: bool, output_padding: Ints
) -> None:
    if 0 in input_shape[2:] and 0 not in input_shape[:2]:
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(input_shape)}")
    if 0 in shape[2:]:
        size = (
            f": {' x '.join(map(str, shape[2:]))} (TxHxW)"
            if len(shape) == 5 and not transposed
            else f" {_named('kernel', shape[2:], 1)}"
        )
        raise RuntimeError(f"kernel size should be greater than zero, but got{size}")
    if 0 in dilation:
        raise RuntimeError(
            "dilation should be greater than zero, but got "
            + (_named("dilation", dilation, 1, ", ") if transposed else f"{list(dilation)}")
        )
    if any(o >= max(s, d) for o, s, d in zip(output_padding, stride, dilation, strict=True)):
        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got "
            f"{_named('output_padding', output_padding, 0)} {_named('stride', stride, 1)} "
            f"{_named('dilation', dilation, 1)}"
        )


def check_transposed_size(input_size: Ints, output_size: Ints) -> None:
    """RuntimeError where a transposed convolution would have no output, given the spatial sizes."""
    if min(output_size) <= 0:
        if len(output_size) == 1:
            input_size, output_size = (1, *input_size), (1, *output_size)
        raise RuntimeError(
            f"Given input size per channel: {_by(input_size)}. Calculated output size per channel: {_by(output_size)}. "
            "Output size is too small"
        )


def check_same(input: np.ndarray, weight: np.ndarray, stride: Any, dilation: Any) -> None:
    """Checks for padding="same", which is computed from the weight's shape: the dims of input, stride and dilation."""
    dims = weight.ndim
    if input.ndim != dims:
        raise RuntimeError(
            f"Expected {dims}-dimensional input for {dims}-dimensional weight{list(weight.shape)}, but got "
            f"{input.ndim}-dimensional input of size {list(input.shape)} instead"
        )
    for name, values in (("stride", stride), ("dilation", dilation)):
        if len(values) not in (1, dims - 2):
            raise RuntimeError(f"{name} cannot broadcast to {dims - 2} dimensions")


def _by(sizes: Iterable[int]) -> str:
    return f"({' x '.join(map(str, sizes))})"


def _named(name: str, values: Ints, missing: int, between: str = " ") -> str:
    if len(values) == 1:
        values = (missing, *values)
    return between.join(f"{name}_{side}: {v}" for side, v in zip(_SIDES[-len(values) :], values, strict=True))


# ---------------------------------------------------------------- dtypes


def check_bias_dtype(input: np.ndarray, bias: np.ndarray | None, transposed: bool) -> None:
    """RuntimeError for a bias of another dtype than the input's; torch checks this before any shape."""
    if bias is not None and bias.dtype != input.dtype and not transposed:
        raise RuntimeError(f"Input type ({cpp_name(input)}) and bias type ({cpp_name(bias)}) should be the same")


def check_dtypes(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, transposed: bool) -> None:
    """RuntimeError for a mix of dtypes; torch checks this after all shapes."""
    wanted = input.dtype
    if wanted == _FLOAT32 and transposed:
        for name, array in (("weight", weight), ("bias", bias)):
            if array is not None and array.dtype != wanted:
                raise RuntimeError(
                    f"Input type ({_type_name(input)}) and {name} type ({_type_name(array)}) should be the same "
                    f"or input should be a MKLDNN tensor and {name} is a dense tensor"
                )
    if weight.dtype != wanted:
        raise unexpected_dtype(input, weight)
    if wanted.kind in "iub" and bias is not None and bias.dtype.kind not in "iub":
        raise RuntimeError(f"result type {scalar_name(bias)} can't be cast to the desired output type {scalar_name(input)}")


def check_integers(input: np.ndarray, dilation: Ints, transposed: bool) -> None:
    """No convolution takes bools, and only that of plain windows takes integers of fewer than eight bytes."""
    kind = input.dtype
    if kind == _INT64 or (kind.kind != "b" and not transposed and max(dilation) == 1):
        return
    dims = max(input.ndim - 2, 2)
    kernel = (
        f"slow_conv_transpose{dims}d_out_cpu"
        if transposed
        else "slow_conv_dilated<>"
        if max(dilation) > 1
        else "slow_conv2d_cpu"
        if dims == 2
        else "compute_columns3d"
    )
    raise no_kernel(kernel, input)


def _type_name(array: np.ndarray) -> str:
    return f"torch.{scalar_name(array)}Tensor"
