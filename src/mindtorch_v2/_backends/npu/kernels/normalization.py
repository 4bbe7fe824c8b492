"""NPU kernels of layer and batch normalization, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._call import FLOATS, Call, kernel


def _array(tensor: Any) -> np.ndarray | None:
    return None if tensor is None else tensor._array


@kernel("native_layer_norm", needs="LayerNorm", dtypes=FLOATS, mixed=True)
def layer_norm(call: Call, input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    out, mean, rstd = call.outputs()
    call.run("LayerNorm", input._array, list(normalized_shape), _array(weight), _array(bias), eps, out, mean, rstd)
    return out, mean, rstd


@kernel("native_layer_norm_backward", needs="LayerNormBackward", dtypes=FLOATS, mixed=True)
def layer_norm_backward(
    call: Call, grad_out: Any, input: Any, normalized_shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, output_mask: Any
) -> Any:
    shape, dtype = tuple(normalized_shape), input._array.dtype
    shapes = (input._array.shape, shape, shape)
    grads = [call.empty(size, dtype) if wanted else None for size, wanted in zip(shapes, output_mask, strict=True)]
    call.run(
        "LayerNormBackward",
        grad_out._array,
        input._array,
        list(normalized_shape),
        mean._array,
        rstd._array,
        _array(weight),
        _array(bias),
        list(output_mask),
        *grads,
    )
    return tuple(grads)


@kernel("native_batch_norm", needs="BatchNorm", dtypes=FLOATS, mixed=True)
def batch_norm(
    call: Call,
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    channels = (input._array.shape[1],)
    out = call.empty(input._array.shape, input._array.dtype)
    mean, invstd = (call.empty(channels, np.dtype(np.float32)) for _ in range(2))
    call.run(
        "BatchNorm",
        input._array,
        _array(weight),
        _array(bias),
        _array(running_mean),
        _array(running_var),
        training,
        momentum,
        eps,
        out,
        mean,
        invstd,
    )
    return out, mean, invstd


@kernel("native_batch_norm_backward", needs="BatchNormBackward", dtypes=FLOATS, mixed=True)
def batch_norm_backward(
    call: Call,
    grad_out: Any,
    input: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_invstd: Any,
    train: bool,
    eps: float,
    output_mask: Any,
) -> Any:
    channels, dtype = (input._array.shape[1],), input._array.dtype
    shapes = (input._array.shape, channels, channels)
    grads = [call.empty(size, dtype) if wanted else None for size, wanted in zip(shapes, output_mask, strict=True)]
    call.run(
        "BatchNormBackward",
        grad_out._array,
        input._array,
        _array(weight),
        _array(running_mean),
        _array(running_var),
        _array(save_mean),
        _array(save_invstd),
        train,
        eps,
        list(output_mask),
        *grads,
    )
    return tuple(grads)
