"""Convolution of sequences laid out (time, batch, channels)."""

from __future__ import annotations

import numpy as np

from ...._dispatch.facts import Autocast
from ...._dispatch.registry import aten, op


def _check(self, weight, bias):
    if self.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.ndim != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if self.shape[2] != weight.shape[1]:
        raise RuntimeError(
            f"Input dim 2 (input channels) is not == dim 1 in the weight tensor: {self.shape[2]} and {weight.shape[1]}"
        )
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")


def _spans(time, width, pad):
    """For each place in the kernel, the slices of input and output that it joins."""
    length = time + 2 * pad - width + 1
    for k in range(width):
        shift = k - pad  # input time = output time + shift
        begin, end = max(0, -shift), min(length, time - shift)
        if begin < end:
            yield k, slice(begin + shift, end + shift), slice(begin, end)


def _shape(self, weight, bias, pad=0):
    time, batch, _ = self._array.shape
    width, _, out = weight._array.shape
    return (time + 2 * pad - width + 1, batch, out), self._array.dtype


@op(
    "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    shape=_shape,
    samples=lambda make: [(make(5, 2, 3), make(2, 3, 4), make(4)), (make(5, 2, 3), make(3, 3, 4), make(4), 2)],
    autocast=Autocast.LOWER,
    out=False,
)
def conv_tbc(self, weight, bias, pad):
    """Convolution of sequences laid out as (time, batch, channels).

    >>> torch.conv_tbc(torch.ones(3, 1, 1), torch.ones(2, 1, 1), torch.zeros(1)).flatten()
    tensor([2., 2.])
    """
    _check(self, weight, bias)
    time, batch, _ = self.shape
    width, _, out = weight.shape
    if time + 2 * pad - width + 1 < 0:
        raise RuntimeError(f"conv_tbc: the kernel of width {width} is longer than the padded input of length {time + 2 * pad}")
    output = np.empty((time + 2 * pad - width + 1, batch, out), self.dtype)
    output[...] = bias
    for k, source, target in _spans(time, width, pad):
        output[target] += np.matmul(self[source], weight[k])
    return output


def _backward_shapes(grad_output, input, weight, bias, pad):
    return [(t._array.shape, t._array.dtype) for t in (input, weight, bias)]


@op(
    "conv_tbc_backward(Tensor grad_output, Tensor input, Tensor weight, Tensor bias, int pad) -> (Tensor, Tensor, Tensor)",
    shape=_backward_shapes,
    takes_all_grads=True,
    samples=lambda make: [(make(4, 2, 4), make(5, 2, 3), make(2, 3, 4), make(4), 0)],
)
def conv_tbc_backward(grad_output, input, weight, bias, pad):
    if weight.dtype.kind == "c":
        input, weight = np.conjugate(input), np.conjugate(weight)
    to_input, to_weight = np.zeros_like(input), np.zeros_like(weight)
    for k, source, target in _spans(input.shape[0], weight.shape[0], pad):
        to_input[source] += np.matmul(grad_output[target], weight[k].T)
        to_weight[k] = np.tensordot(input[source], grad_output[target], ((0, 1), (0, 1)))
    return to_input, to_weight, grad_output.sum((0, 1))


@conv_tbc.vjp
def _(g, self, weight, bias, pad):
    return aten.conv_tbc_backward(g, self, weight, bias, pad)


@conv_tbc_backward.vjp
def _(grads, grad_output, input, weight, bias, pad):
    to_input, to_weight, to_bias = (
        aten.zeros_like(like) if g is None else g for g, like in zip(grads, (input, weight, bias), strict=True)
    )
    # The results are bilinear in the gradient, the input and the weight.
    to_grad = aten.conv_tbc(to_input, weight, to_bias, pad) + aten.conv_tbc(input, to_weight, aten.zeros_like(bias), pad)
    more_input = aten.conv_tbc_backward(grad_output, input, to_weight, bias, pad)[0]
    more_weight = aten.conv_tbc_backward(grad_output, to_input, weight, bias, pad)[1]
    return to_grad, more_input, more_weight, None
