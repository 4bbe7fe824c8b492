"""NPU kernels of maximum, average and adaptive average pooling in two dims, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import tensors
from ._call import FLOATS, Call, kernel
from .matmul import KEEP_PRECISION, pair


def _window(kernel_size: Any, stride: Any) -> tuple[list[int], list[int]]:
    size = pair(kernel_size)
    return size, pair(stride) if stride else size


@kernel("max_pool2d_with_indices", needs="MaxPool2dWithIndices", dtypes=FLOATS)
def max_pool2d(call: Call, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    if self._array.ndim != 4:
        return NotImplemented
    out, indices = call.outputs()
    small = call.empty(indices.shape, np.dtype(np.int32))
    size, step = _window(kernel_size, stride)
    call.run("MaxPool2dWithIndices", self._array, size, step, pair(padding), pair(dilation), ceil_mode, out, small)
    return out, tensors.converted(small, indices.dtype)


@kernel("max_pool2d_with_indices_backward", needs="MaxPool2dWithIndicesBackward", dtypes=FLOATS)
def max_pool2d_backward(
    call: Call,
    grad_output: Any,
    self: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Any,
) -> Any:
    if self._array.ndim != 4:
        return NotImplemented
    out = call.output()
    size, step = _window(kernel_size, stride)
    call.run(
        "MaxPool2dWithIndicesBackward",
        grad_output._array,
        self._array,
        call.cast(indices._array, np.dtype(np.int32)),
        size,
        step,
        pair(padding),
        pair(dilation),
        ceil_mode,
        out,
    )
    return out


@kernel("avg_pool2d", needs="AvgPool2d", dtypes=FLOATS)
def avg_pool2d(
    call: Call,
    self: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any,
) -> Any:
    if self._array.ndim not in (3, 4):
        return NotImplemented
    out = call.output()
    size, step = _window(kernel_size, stride)
    call.run(
        "AvgPool2d",
        self._array,
        size,
        step,
        pair(padding),
        ceil_mode,
        count_include_pad,
        divisor_override or 0,
        KEEP_PRECISION,
        out,
    )
    return out


@kernel("avg_pool2d_backward", needs="AvgPool2dBackward", dtypes=FLOATS)
def avg_pool2d_backward(
    call: Call,
    grad_output: Any,
    self: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any,
) -> Any:
    out = call.output()
    size, step = _window(kernel_size, stride)
    call.run(
        "AvgPool2dBackward",
        grad_output._array,
        self._array,
        size,
        step,
        pair(padding),
        ceil_mode,
        count_include_pad,
        divisor_override or 0,
        KEEP_PRECISION,
        out,
    )
    return out


@kernel("_adaptive_avg_pool2d", needs="AdaptiveAvgPool2d", dtypes=FLOATS)
def adaptive_avg_pool2d(call: Call, self: Any, output_size: Any) -> Any:
    out = call.output()
    call.run("AdaptiveAvgPool2d", self._array, list(out.shape[-2:]), out)
    return out


@kernel("_adaptive_avg_pool2d_backward", needs="AdaptiveAvgPool2dBackward", dtypes=FLOATS)
def adaptive_avg_pool2d_backward(call: Call, grad_output: Any, self: Any) -> Any:
    out = call.output()
    call.run("AdaptiveAvgPool2dBackward", grad_output._array, self._array, out)
    return out
