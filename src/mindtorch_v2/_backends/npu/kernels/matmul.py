"""NPU kernels of matrix products and convolutions, which the matrix units compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._call import MATRIX_FLOATS, Call, kernel

KEEP_PRECISION = 0  # cubeMathType


@kernel("mm", needs="Mm", dtypes=MATRIX_FLOATS)
def mm(call: Call, self: Any, mat2: Any) -> np.ndarray:
    out = call.output()
    call.run("Mm", self._array, mat2._array, out, KEEP_PRECISION)
    return out


@kernel("bmm", needs="BatchMatMul", dtypes=MATRIX_FLOATS)
def bmm(call: Call, self: Any, mat2: Any) -> np.ndarray:
    out = call.output()
    call.run("BatchMatMul", self._array, mat2._array, out, KEEP_PRECISION)
    return out


@kernel("addmm", needs="Addmm", dtypes=MATRIX_FLOATS)
def addmm(call: Call, self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> np.ndarray:
    out = call.output()
    call.run("Addmm", self._array, mat1._array, mat2._array, beta, alpha, out, KEEP_PRECISION)
    return out


@kernel("baddbmm", needs="Baddbmm", dtypes=MATRIX_FLOATS)
def baddbmm(call: Call, self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> np.ndarray:
    out = call.output()
    call.run("Baddbmm", self._array, batch1._array, batch2._array, beta, alpha, out, KEEP_PRECISION)
    return out


@kernel("_convolution", needs="Convolution", dtypes=MATRIX_FLOATS)
def convolution(
    call: Call,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    *switches: bool,
) -> Any:
    if input._array.ndim != 4:
        return NotImplemented
    out = call.output()
    call.run(
        "Convolution",
        input._array,
        weight._array,
        None if bias is None else bias._array,
        pair(stride),
        pair(padding),
        pair(dilation),
        transposed,
        pair(output_padding),
        groups,
        out,
        KEEP_PRECISION,
    )
    return out


@kernel("convolution_backward", needs="ConvolutionBackward", dtypes=MATRIX_FLOATS)
def convolution_backward(
    call: Call,
    grad_output: Any,
    input: Any,
    weight: Any,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Any,
) -> Any:
    if input._array.ndim != 4:
        return NotImplemented
    dtype = input._array.dtype
    channels = weight._array.shape[1] * groups if transposed else weight._array.shape[0]
    shapes = (input._array.shape, weight._array.shape, (channels,))
    grads = [call.empty(shape, dtype) if wanted else None for shape, wanted in zip(shapes, output_mask, strict=True)]
    call.run(
        "ConvolutionBackward",
        grad_output._array,
        input._array,
        weight._array,
        [channels],
        pair(stride),
        pair(padding),
        pair(dilation),
        transposed,
        pair(output_padding),
        groups,
        list(output_mask),
        KEEP_PRECISION,
        *grads,
    )
    return tuple(grads)


def pair(values: Any) -> list[int]:
    values = [values] if isinstance(values, int) else list(values)
    return values * 2 if len(values) == 1 else values
