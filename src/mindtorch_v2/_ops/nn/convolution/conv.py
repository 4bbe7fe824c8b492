"""Convolution: columns of windows and matrix products, for any number of spatial dims."""

from __future__ import annotations

import math

import numpy as np

from ...._core import parallel
from ...._core.layout import has_channels_last, with_channels_last
from ...._dispatch.facts import Autocast, Layout
from ...._dispatch.registry import aten, composite, op
from ..._support.blas_sums import channel_sums
from ..._support.double_backward import asked_for
from ..._support.half import in_float32
from .._windows import output_size
from ._checks import (
    check_bias_dtype,
    check_dtypes,
    check_integers,
    check_same,
    check_sizes,
    check_transposed_size,
    check_weight,
    each,
)
from ._kernels import forward, input_grad, weight_grad

# Multiply-adds of a gradient (of as many images as come in) from which on two threads gain by taking a gradient each.
_SHARED = 1 << 23

_DOCS = {
    "conv1d": """Convolution over one dim.

    >>> F.conv1d(torch.ones(1, 1, 3), torch.ones(1, 1, 2))
    tensor([[[2., 2.]]])
    """,
    "conv2d": """Convolution over two dims.

    >>> F.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """,
    "conv3d": """Convolution over three dims.

    >>> F.conv3d(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 2, 2, 2))
    tensor([[[[[8.]]]]])
    """,
    "conv_transpose1d": """The transpose of a convolution over one dim.

    >>> F.conv_transpose1d(torch.ones(1, 1, 2), torch.ones(1, 1, 2))
    tensor([[[1., 2., 1.]]])
    """,
    "conv_transpose2d": """The transpose of a convolution over two dims.

    >>> F.conv_transpose2d(torch.ones(1, 1, 1, 1), torch.ones(1, 1, 2, 2))
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """,
    "conv_transpose3d": """The transpose of a convolution over three dims.

    >>> F.conv_transpose3d(torch.ones(1, 1, 1, 1, 1), torch.ones(1, 1, 1, 1, 2))
    tensor([[[[[1., 1.]]]]])
    """,
}


def _transposed_size(size, kernel, stride, padding, dilation, output_padding):
    return tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, k, s, p, d, o in zip(size, kernel, stride, padding, dilation, output_padding, strict=True)
    )


def conv_output_shape(input, weight, stride, padding, dilation, transposed, output_padding, groups):
    """The result's shape, given shapes."""
    dims = len(weight) - 2
    kernel = weight[2:]
    stride, padding, dilation = (each(v, dims) for v in (stride, padding, dilation))
    if transposed:
        spatial = _transposed_size(input[2:], kernel, stride, padding, dilation, each(output_padding, dims))
        return (input[0], weight[1] * groups, *spatial)
    # torch lets no channels in and none out, whatever the weight says.
    return (input[0], weight[0] if input[1] else 0, *output_size(input[2:], kernel, stride, padding, dilation))


@in_float32
def _convolve(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    shape = conv_output_shape(input.shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups)
    if not transposed:
        return (
            forward(input, weight, bias, stride, padding, dilation, groups) if input.shape[1] else np.empty(shape, input.dtype)
        )
    check_transposed_size(input.shape[2:], shape[2:])
    output = input_grad(input, shape, weight, stride, padding, dilation, groups)
    if bias is not None:
        output += bias.reshape(-1, *(1,) * len(stride))
    return output


_ARGUMENTS = (
    "Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool "
    "transposed, int[] output_padding, int groups"
)


def _conv_shape(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *_):
    return conv_output_shape(
        input._array.shape, weight._array.shape, stride, padding, dilation, transposed, output_padding, groups
    ), input._array.dtype


def conv_flops(input, weight, stride, padding, dilation, transposed, output_padding, groups):
    """torch's count: a multiply-add per output element, input channel and kernel element."""
    output = conv_output_shape(input, weight, stride, padding, dilation, transposed, output_padding, groups)
    return 2 * math.prod(output) * math.prod(weight[2:]) * (input[1] // groups)


def _conv_samples(make):
    return [
        (make(2, 4, 5, 5), make(6, 2, 3, 3), make(6), (1, 1), (1, 1), (1, 1), False, (0, 0), 2),
        (make(2, 3, 5), make(4, 3, 2), None, (2,), (0,), (1,), False, (0,), 1),
        (make(1, 4, 3, 3), make(4, 2, 2, 2), make(2), (2, 2), (0, 0), (1, 1), True, (0, 0), 1),
    ]


@op(
    f"_convolution({_ARGUMENTS}, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
    layout=Layout.NOTED,
    shape=_conv_shape,
    samples=lambda make: [],
    nondiff=True,
)
def convolution_kernel(
    input,
    weight,
    bias,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    benchmark,
    deterministic,
    cudnn_enabled,
    allow_tf32,
):
    mixed = input.dtype is not weight.dtype or (bias is not None and bias.dtype is not input.dtype)
    if mixed:
        check_bias_dtype(input, bias, transposed)
    check_weight(weight, groups)
    dims = weight.ndim - 2
    stride, padding, dilation, output_padding = (
        each(v, dims, n)
        for v, n in ((stride, "stride"), (padding, "padding"), (dilation, "dilation"), (output_padding, "output_padding"))
    )
    check_sizes(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    if mixed:
        check_dtypes(input, weight, bias, transposed)
    if input.dtype.kind in "iub":
        check_integers(input, dilation, transposed)
    output = _convolve(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    return with_channels_last(output) if _with_images_last(input, weight) else output


def _with_images_last(input, weight):
    """Whether results have the channels next to each other: where those of the input or of the weight are."""
    return has_channels_last(input) or has_channels_last(weight)


@composite(f"convolution({_ARGUMENTS}) -> Tensor", shape=_conv_shape, samples=_conv_samples)
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Convolution or its transpose in any number of dims: what the others call.

    >>> torch.convolution(torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    return aten._convolution(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, False, False, True, True
    )


@convolution.vjp
def _(g, input, weight, stride, padding, dilation, transposed, output_padding, groups, bias_shape, needs):
    grads = aten.convolution_backward(
        g, input, weight, bias_shape, stride, padding, dilation, transposed, output_padding, groups, list(needs)
    )
    return asked_for(grads, needs)


@op(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, int[] stride, "
    "int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] output_mask) "
    "-> (Tensor, Tensor, Tensor)",
    samples=lambda make: [],
    takes_all_grads=True,
    shape=lambda grad_output, input, weight, bias_sizes, *_: [
        (input._array.shape, input._array.dtype),
        (weight._array.shape, weight._array.dtype),
        (tuple(bias_sizes or grad_output._array.shape[1:2]), weight._array.dtype),
    ],
    # The gradients of input and weight take as much as the forward each.
    flops=lambda grad_output, input, weight, *rest: int(4 * math.prod(grad_output) * math.prod(weight[1:])),
)
@in_float32
def convolution_backward(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    dims = weight.ndim - 2
    stride, padding, dilation = (each(v, dims) for v in (stride, padding, dilation))
    if weight.dtype.kind == "c":
        input, weight = np.conjugate(input), np.conjugate(weight)
    empty = np.zeros(0, input.dtype)
    grad_input, grad_weight, grad_bias = empty, empty, empty
    settings = stride, padding, dilation, groups

    def to_input():
        if transposed:
            return forward(grad_output, weight, None, *settings, input.shape[2:])
        return input_grad(grad_output, input.shape, weight, *settings)

    def to_weight():
        ends = (input, grad_output) if transposed else (grad_output, input)
        return weight_grad(*ends, weight.shape, *settings)

    if output_mask[0] and output_mask[1] and input.size * weight.size // max(input.shape[1], 1) >= _SHARED:
        grad_input, grad_weight = parallel.both(to_input, to_weight)
    else:
        if output_mask[0]:
            grad_input = to_input()
        if output_mask[1]:
            grad_weight = to_weight()
    if output_mask[2]:
        # Not of the gradient's size where no channels come in, and so none come out.
        grad_bias = channel_sums(grad_output) if grad_output.size else np.zeros(bias_sizes or grad_output.shape[1], input.dtype)
    if _with_images_last(input, weight):
        grad_input, grad_weight = (with_channels_last(g) if g.size else g for g in (grad_input, grad_weight))
    return grad_input, grad_weight, grad_bias


@convolution_backward.vjp
def _(grads, grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs):
    settings = (stride, padding, dilation, transposed, output_padding, groups)
    return asked_for(
        aten._convolution_double_backward(*grads, grad_output, weight, input, *settings, [needs[0], needs[1], needs[2]]), needs
    )


@composite(
    "_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, Tensor self, int[] stride, "
    "int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] output_mask) "
    "-> (Tensor, Tensor, Tensor)",
    samples=lambda make: [],
)
def convolution_double_backward(
    ggI, ggW, ggb, gO, weight, self, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    """A convolution is linear in each argument, so its second derivatives are convolutions again."""
    settings = (stride, padding, dilation, transposed, output_padding, groups)
    to_grad, to_input, to_weight = output_mask
    grad_grad = grad_input = grad_weight = None
    if ggI is not None:
        if to_grad:
            grad_grad = aten.convolution(ggI, weight, None, *settings)
        if to_weight:
            grad_weight = aten.convolution_backward(gO, ggI, weight, None, *settings, [False, True, False])[1]
    if ggW is not None:
        if to_grad:
            more = aten.convolution(self, ggW, None, *settings)
            grad_grad = more if grad_grad is None else grad_grad + more
        if to_input:
            grad_input = aten.convolution_backward(gO, self, ggW, None, *settings, [True, False, False])[0]
    if ggb is not None and to_grad:
        spread = ggb.reshape(1, -1, *[1] * (gO.dim() - 2)).expand(gO.shape)
        grad_grad = spread if grad_grad is None else grad_grad + spread
    return grad_grad, grad_input, grad_weight


# ---------------------------------------------------------------- the named forms


def _declare(dims):
    name = f"conv{dims}d"
    ones = ", ".join(["1"] * dims)
    zeros = ", ".join(["0"] * dims)

    def unbatched(input, run, name=name):
        """Runs a single sample, without the batch dim, as a batch of one."""
        if input._array.ndim == dims + 1:
            return run(input.unsqueeze(0)).squeeze(0)
        if input._array.ndim != dims + 2:
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got "
                f"input of size: {list(input.shape)}"
            )
        return run(input)

    def samples(make):
        return [(make(2, 2, *(4,) * dims), make(3, 2, *(2,) * dims), make(3))]

    def transposed_samples(make):
        return [(make(2, 2, *(3,) * dims), make(2, 3, *(2,) * dims), make(3))]

    def forward_flops(input, weight, bias, stride, padding, dilation, groups):
        batched = input if len(input) == dims + 2 else (1, *input)
        return conv_flops(batched, weight, stride, padding, dilation, False, (0,) * dims, groups)

    @composite(
        f"{name}(Tensor input, Tensor weight, Tensor? bias=None, int[{dims}] stride=[{ones}], int[{dims}] "
        f"padding=[{zeros}], int[{dims}] dilation=[{ones}], int groups=1) -> Tensor",
        flops=forward_flops,
        samples=samples,
        autocast=Autocast.LOWER,
        torch_counts_flops=dims == 2,
        doc=_DOCS[name],
    )
    def forward(input, weight, bias, stride, padding, dilation, groups):
        return unbatched(
            input, lambda x: aten.convolution(x, weight, bias, stride, padding, dilation, False, (0,) * dims, groups)
        )

    @composite(
        f"{name}.padding(Tensor input, Tensor weight, Tensor? bias=None, int[{dims}] stride=[{ones}], str "
        f"padding='valid', int[{dims}] dilation=[{ones}], int groups=1) -> Tensor",
        samples=samples,
        autocast=Autocast.LOWER,
        torch_counts_flops=dims == 2,
    )
    def named_padding(input, weight, bias, stride, padding, dilation, groups):
        return unbatched(input, lambda x: aten._convolution_mode(x, weight, bias, stride, padding, dilation, groups))

    @composite(
        f"conv_transpose{dims}d.input(Tensor input, Tensor weight, Tensor? bias=None, int[{dims}] "
        f"stride=[{ones}], int[{dims}] padding=[{zeros}], int[{dims}] output_padding=[{zeros}], int groups=1, "
        f"int[{dims}] dilation=[{ones}]) -> Tensor",
        flops=lambda input, weight, bias, stride, padding, output_padding, groups, dilation: conv_flops(
            input if len(input) == dims + 2 else (1, *input), weight, stride, padding, dilation, True, output_padding, groups
        ),
        samples=transposed_samples,
        autocast=Autocast.LOWER,
        doc=_DOCS[f"conv_transpose{dims}d"],
    )
    def transposed(input, weight, bias, stride, padding, output_padding, groups, dilation):
        return unbatched(
            input,
            lambda x: aten.convolution(x, weight, bias, stride, padding, dilation, True, output_padding, groups),
            f"conv_transpose{dims}d",
        )


for _dims in (1, 2, 3):
    _declare(_dims)


@composite(
    "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[] stride, str padding, int[] dilation, "
    "int groups) -> Tensor",
    samples=lambda make: [(make(2, 2, 4), make(3, 2, 3), make(3), (1,), "same", (1,), 1)],
)
def convolution_mode(input, weight, bias, stride, padding, dilation, groups):
    kernel = weight._array.shape[2:]
    dims = len(kernel)
    if padding == "valid":
        return aten.convolution(input, weight, bias, stride, (0,) * dims, dilation, False, (0,) * dims, groups)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    check_same(input._array, weight._array, stride, dilation)
    dilation = each(dilation, dims)
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    if any(t % 2 for t in total):
        pads = [n for t in reversed(total) for n in (0, t % 2)]
        input = aten.constant_pad_nd(input, pads, 0)
    return aten.convolution(input, weight, bias, stride, tuple(t // 2 for t in total), dilation, False, (0,) * dims, groups)
