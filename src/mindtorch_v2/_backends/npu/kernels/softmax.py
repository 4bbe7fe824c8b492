"""Softmax and the losses on top of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._call import FLOATS, Call, kernel


def _forward(name: str, operator: str) -> None:
    @kernel(name, needs=operator, dtypes=FLOATS)
    def run(call: Call, self: Any, dim: int, half_to_float: bool) -> Any:
        if half_to_float:
            return NotImplemented
        out = call.output()
        call.run(operator, self._array, dim, out)
        return out


def _backward(name: str, operator: str) -> None:
    @kernel(name, needs=operator, dtypes=FLOATS)
    def run(call: Call, grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
        if input_dtype is not output.dtype:
            return NotImplemented
        out = call.output()
        call.run(operator, grad_output._array, output._array, dim, out)
        return out


_forward("_softmax", "Softmax")
_forward("_log_softmax", "LogSoftmax")
_backward("_softmax_backward_data", "SoftmaxBackward")
_backward("_log_softmax_backward_data", "LogSoftmaxBackward")


_CLASSES = (np.int64, np.uint8)


def _weights(call: Call, weight: Any, self: Any) -> np.ndarray:
    """Class weights; CANN wants them also where all are one."""
    if weight is not None:
        return weight._array
    ones = call.empty((self._array.shape[-1 if self._array.ndim == 1 else 1],), self._array.dtype)
    call.run("InplaceFillScalar", ones, 1)
    return ones


@kernel("nll_loss_forward", needs="NLLLoss", dtypes=FLOATS)
def nll_loss_forward(call: Call, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    if self._array.ndim != 2 or target._array.dtype not in _CLASSES:
        return NotImplemented
    out, total = call.outputs()
    call.run("NLLLoss", self._array, target._array, _weights(call, weight, self), reduction, ignore_index, out, total)
    return out, total


@kernel("nll_loss_backward", needs="NLLLossBackward", dtypes=FLOATS)
def nll_loss_backward(
    call: Call, grad_output: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any
) -> Any:
    if self._array.ndim != 2:
        return NotImplemented
    out = call.output()
    call.run(
        "NLLLossBackward",
        grad_output._array,
        self._array,
        target._array,
        _weights(call, weight, self),
        reduction,
        ignore_index,
        total_weight._array,
        out,
    )
    return out


@kernel("mse_loss", needs="MseLoss", dtypes=FLOATS)
def mse_loss(call: Call, self: Any, target: Any, reduction: int) -> Any:
    if self._array.dtype != target._array.dtype:
        return NotImplemented
    out = call.output()
    call.run("MseLoss", self._array, target._array, reduction, out)
    return out


@kernel("mse_loss_backward", needs="MseLossBackward", dtypes=FLOATS)
def mse_loss_backward(call: Call, grad_output: Any, self: Any, target: Any, reduction: int) -> np.ndarray:
    out = call.output()
    call.run("MseLossBackward", grad_output._array, self._array, target._array, reduction, out)
    return out
