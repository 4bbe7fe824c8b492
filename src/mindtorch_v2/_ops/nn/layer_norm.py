"""Normalization of whole rows: layer, group and RMS norm."""

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._core import parallel
from ..._core.layout import suggested_format
from ..._core.tensor import make_tensor
from ..._dispatch.facts import Layout
from ..._dispatch.registry import aten, composite, op
from .._support.blas_sums import column_sums, row_dots, row_sums, spread_mean_squares, spread_row_means, weighted_row_sums
from .._support.common import home_of, like_first
from .._support.double_backward import asked_for, backward_of_backward
from .._support.elementwise import constant, need_float
from .._support.flops import per_element
from .._support.split_products import dot_with_vector
from ..pointwise.scalar_forms import add_number_
from ._norm_dtypes import check_gradient, check_mixed, in_float32_with_parameters, statistics_dtype

# Up to here BLAS computes on one thread by itself.
_FEW = 8192
_FIRST_COLUMN = np.s_[:, :1]


def _step(rows):
    """How many rows are worked on together."""
    return max(parallel.elements_of_block(rows.size) // max(rows.shape[1], 1), 1)


def _normalize(rows, eps, finish=None):
    """Rows with mean 0 and variance 1, their means and 1 / sqrt(variance + eps).

    `finish(part, normal)` changes the normalized rows of a slice in place.
    """
    if rows.size <= _FEW:
        normal, mean, rstd = _normalize_block(rows, eps)
        if finish is not None:
            finish(slice(None), normal)
        return normal, mean, rstd
    normal = np.empty(rows.shape, rows.dtype)
    mean, rstd = np.empty((len(rows), 1), rows.dtype), np.empty((len(rows), 1), rows.dtype)

    def work(part):
        _, mean[part], rstd[part] = _normalize_block(rows[part], eps, normal[part])
        if finish is not None:
            finish(part, normal[part])

    parallel.blocks(len(rows), _step(rows), work)
    return normal, mean, rstd


def _normalize_block(rows, eps, out=None):
    mean = spread_row_means(rows)
    centered = np.subtract(rows, mean, out)
    rstd = spread_mean_squares(centered)
    np.add(rstd, constant(eps, rows.dtype), rstd)
    np.reciprocal(np.sqrt(rstd, rstd), rstd)
    return np.multiply(centered, rstd, centered), mean[_FIRST_COLUMN], rstd[_FIRST_COLUMN]


# ---------------------------------------------------------------- layer norm


def _check_layer_norm(input, normalized_shape, weight, bias):
    """RuntimeError unless the arrays' shapes go together."""
    shape = input.shape
    tail = normalized_shape if normalized_shape.__class__ is tuple else tuple(normalized_shape)
    if not tail:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            "element, but got normalized_shape = []"
        )
    if shape[-len(tail) :] != tail:
        raise RuntimeError(
            f"Given normalized_shape={list(tail)}, expected input with shape "
            f"[*, {', '.join(map(str, tail))}], but got input of size{list(shape)}"
        )
    if weight is not None and weight.shape != tail:
        raise RuntimeError(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape "
            f"{list(weight.shape)} and normalized_shape = {list(tail)}"
        )
    if bias is not None and bias.shape != tail:
        raise RuntimeError(
            "Expected bias to be of same shape as normalized_shape, but got bias of shape "
            f"{list(bias.shape)} and normalized_shape = {list(tail)}"
        )


def _rows(array, normalized_shape):
    """The input as (rows, elements to normalize over), which is a view for contiguous inputs."""
    count = math.prod(normalized_shape)
    return array.reshape(array.size // count if count else 0, count)


def _stat_shape(shape, normalized_shape):
    return (*shape[: len(shape) - len(normalized_shape)], *(1,) * len(normalized_shape))


def _layer_norm_shapes(input, normalized_shape, weight, bias):
    array = input._array
    parameters = [None if each is None else each._array for each in (weight, bias)]
    _check_layer_norm(array, normalized_shape, *parameters)
    statistics = _stat_shape(array.shape, normalized_shape), statistics_dtype(array, *parameters)
    return [like_first(input), statistics, statistics]


@op(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    node="NativeLayerNormBackward0",
    shape=lambda input, normalized_shape, weight, bias, eps: _layer_norm_shapes(input, normalized_shape, weight, bias),
    samples=lambda make: [(make(3, 4), (4,), make(4), make(4), 1e-5), (make(2, 3, 4), (3, 4), None, None, 1e-5)],
    flops=per_element(8),
    out=False,
)
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """What `layer_norm` computes, with the mean and the inverse deviation of each row.

    >>> torch.native_layer_norm(torch.tensor([[1.0, 3.0]]), [2], None, None, 1e-5)[1]
    tensor([[2.]])
    """
    _check_layer_norm(input, normalized_shape, weight, bias)
    if not input.flags.c_contiguous:  # the result lies in order, whatever the input
        input = input.copy("C")
    if (weight is not None and weight.dtype is not input.dtype) or (bias is not None and bias.dtype is not input.dtype):
        check_mixed(input, weight, bias)
    return _layer_norm(input, normalized_shape, weight, bias, eps)


@in_float32_with_parameters
def _layer_norm(input, normalized_shape, weight, bias, eps):
    need_float("LayerNormKernelImpl", input)
    if not input.size:
        shape = _stat_shape(input.shape, normalized_shape)
        return input.copy(), np.zeros(shape, input.dtype), np.zeros(shape, input.dtype)
    plain = input.ndim == 2 and len(normalized_shape) == 1

    def finish(_part, normal):
        if weight is not None:
            np.multiply(normal, weight.reshape(-1), normal)
        if bias is not None:
            np.add(normal, bias.reshape(-1), normal)

    normal, mean, rstd = _normalize(input if plain else _rows(input, normalized_shape), eps, finish)
    if plain:
        return normal, mean, rstd
    shape = _stat_shape(input.shape, normalized_shape)
    return normal.reshape(input.shape), mean.reshape(shape), rstd.reshape(shape)


@native_layer_norm.not_differentiable("result1", "result2").vjp
def _(g, input, normalized_shape, weight, bias, result1, result2, needs):
    made = aten.native_layer_norm_backward(g, input, normalized_shape, result1, result2, weight, bias, list(needs))
    return asked_for(made, needs)


@op(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, "
    "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    takes_all_grads=True,
    shape=lambda grad_out, input, normalized_shape, mean, rstd, weight, bias, mask: [
        (shape if wanted else (0,), input._array.dtype)
        for shape, wanted in zip((input._array.shape, tuple(normalized_shape), tuple(normalized_shape)), mask, strict=True)
    ],
    samples=lambda make: [],
    flops=per_element(14),
)
def native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    check_gradient(grad_out, input, mean, rstd, weight)
    return _layer_norm_gradients(grad_out, input, normalized_shape, mean, rstd, weight, output_mask)


@in_float32_with_parameters
def _layer_norm_gradients(grad_out, input, normalized_shape, mean, rstd, weight, output_mask):
    rows, grads = _rows(input, normalized_shape), _rows(grad_out, normalized_shape)
    empty = np.zeros(0, input.dtype)
    factor = None if weight is None else weight.reshape(-1)
    step = _step(rows)
    # Sums over each block of rows, which are added up at the end, in their order.
    to_weight, to_bias = (np.zeros((-(-len(rows) // step), rows.shape[1]), rows.dtype) for _ in range(2))
    grad_input = np.empty(rows.shape, rows.dtype) if output_mask[0] else None

    mean, rstd = mean.reshape(-1, 1), rstd.reshape(-1, 1)
    width = rows.dtype.type(1 / rows.shape[1]) if rows.shape[1] else 0

    def work(part):
        g, scale, number = grads[part], rstd[part], part.start // step
        if output_mask[2]:
            to_bias[number] = column_sums(g)
        if grad_input is None and not output_mask[1]:
            return
        # The sums of each row and column are products of matrices with vectors, so that passes over all elements are few.
        centered = np.subtract(rows[part], mean[part])
        product = np.multiply(g, centered)
        if output_mask[1]:
            to_weight[number] = dot_with_vector(scale.reshape(-1), product)
        if grad_input is None:
            return
        along, mean_g = (weighted_row_sums(a, factor) for a in (product, g))
        along *= scale * scale * width
        mean_g *= width
        np.multiply(centered, along, centered)
        grad = np.subtract(g if factor is None else np.multiply(g, factor, product), centered, grad_input[part])
        np.subtract(grad, mean_g, grad)
        np.multiply(grad, scale, grad)

    if rows.size <= _FEW:
        if rows.size:
            work(slice(0, len(rows)))
    elif any(output_mask):
        parallel.blocks(len(rows), step, work)
    return (
        empty if grad_input is None else grad_input.reshape(input.shape),
        np.add.reduce(to_weight, 0).reshape(normalized_shape) if output_mask[1] else empty,
        np.add.reduce(to_bias, 0).reshape(normalized_shape) if output_mask[2] else empty,
    )


def normalized_in_ops(input, dims, rstd):
    """(x - mean) / sqrt(variance + eps) over dims, in ops, given the value of the second factor instead of eps."""
    centered = input - input.mean(dims, True)
    variance = (centered * centered).mean(dims, True)
    eps = 1 / (rstd._array * rstd._array) - variance._array
    return centered * (variance + make_tensor(eps)).rsqrt()


@native_layer_norm_backward.vjp
def _(grads, grad_out, input, normalized_shape, mean, rstd, weight, bias):
    dims = tuple(range(-len(normalized_shape), 0))

    def forward(x, w, b):
        normal = normalized_in_ops(x, dims, rstd)
        normal = normal if w is None else normal * w
        return normal if b is None else normal + b

    (to_input, to_weight, _), to_grad = backward_of_backward(forward, (input, weight, bias), grad_out, grads)
    return to_grad, to_input, None, None, to_weight, None


_native_layer_norm = native_layer_norm.call


@composite(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor",
    samples=lambda make: [(make(3, 4), (4,), make(4), make(4))],
)
def layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable):
    """Normalizes over the last dims, then scales and shifts.

    >>> F.layer_norm(torch.tensor([1.0, 3.0]), (2,))
    tensor([-1.0000,  1.0000])
    """
    return _native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


# ---------------------------------------------------------------- group norm


def _group_norm_shapes(input, weight, bias, batch, group):
    parameters = [None if each is None else each._array for each in (weight, bias)]
    statistics = (batch, group), statistics_dtype(input._array, *parameters)
    return [like_first(input), statistics, statistics]


@op(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    layout=Layout.IMAGES,
    node="NativeGroupNormBackward0",
    takes_all_grads=True,
    shape=lambda input, weight, bias, N, C, HxW, group, eps: _group_norm_shapes(input, weight, bias, N, group),
    samples=lambda make: [(make(2, 4, 3), make(4), make(4), 2, 4, 3, 2, 1e-5)],
    flops=per_element(8),
    out=False,
)
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """What `group_norm` computes, with the mean and the inverse deviation of each group.

    >>> torch.native_group_norm(torch.tensor([[1.0, 3.0]]), None, None, 1, 2, 1, 1, 1e-5)[1]
    tensor([[2.]])
    """
    need_float("GroupNormKernelImpl", input)
    check_mixed(input, weight, bias)
    return _group_norm(input, weight, bias, N, C, HxW, group, eps)


def _of_groups(parameter, batch, group):
    """A parameter of the channels as (groups of all samples, channels of a group, 1)."""
    return parameter[None].repeat(batch, 0).reshape(batch * group, len(parameter) // group, 1)


def _each_group(rows, work):
    """Call `work` with slices of the groups, of a large array on several threads, of a small one with all of them."""
    if rows.size <= _FEW:
        work(slice(0, len(rows)))
    else:
        parallel.blocks(len(rows), _step(rows), work)


@in_float32_with_parameters
def _group_norm(input, weight, bias, N, C, HxW, group, eps):
    rows = input.reshape(N * group, C * HxW // group)
    factor, shift = (None if p is None else _of_groups(p, N, group) for p in (weight, bias))
    normal, (mean, rstd) = np.empty(rows.shape, rows.dtype), np.empty((2, len(rows), 1), rows.dtype)
    count, eps = rows.dtype.type(max(rows.shape[1], 1)), constant(eps, rows.dtype)

    def work(part):
        middle, scale = mean[part], rstd[part]
        np.divide(row_sums(rows[part]), count, middle)
        centered = np.subtract(rows[part], middle, normal[part])
        np.divide(row_dots(centered, centered), count, scale)
        np.add(scale, eps, scale)
        np.reciprocal(np.sqrt(scale, scale), scale)
        planes, scale = centered.reshape(len(centered), C // group, HxW), scale[:, None]
        np.multiply(planes, scale if factor is None else factor[part] * scale, planes)
        if shift is not None:
            np.add(planes, shift[part], planes)

    _each_group(rows, work)
    return normal.reshape(input.shape), mean.reshape(N, group), rstd.reshape(N, group)


def _like_input(tensor, input):
    return tensor.contiguous(memory_format=suggested_format(input._array))


@native_group_norm.vjp
def _(grads, input, weight, N, C, HxW, group, result1, result2, needs):
    g, to_mean, to_rstd = grads
    grads_of_output = (None, None, None)
    if g is not None:
        g = _like_input(g, input)
        grads_of_output = asked_for(
            aten.native_group_norm_backward(g, input, result1, result2, weight, N, C, HxW, group, list(needs)), needs
        )
    if not needs[0] or (to_mean is None and to_rstd is None):
        return grads_of_output
    through = _through_statistics(to_mean, to_rstd, input, result1, result2, N, group, C * HxW // group)
    return through if grads_of_output[0] is None else grads_of_output[0] + through, *grads_of_output[1:]


def _through_statistics(to_mean, to_rstd, input, mean, rstd, N, group, count):
    """The gradient for the input of what the groups' means and 1 / sqrt(variance + eps) were used for."""
    grad = None if to_mean is None else to_mean.view(N, group, 1)
    if to_rstd is not None:
        centered = input.reshape(N, group, count) - mean.view(N, group, 1)
        spread = centered * (to_rstd * rstd.pow(3)).view(N, group, 1)
        grad = -spread if grad is None else grad - spread
    return (grad / count).expand(N, group, count).reshape(input.shape)


@op(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, int C, "
    "int HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    layout=Layout.INPUT_IMAGES,
    takes_all_grads=True,
    shape=lambda grad_out, input, mean, rstd, weight, N, C, HxW, group, mask: [
        (shape if wanted else (0,), input._array.dtype)
        for shape, wanted in zip((input._array.shape, (C,), (C,)), mask, strict=True)
    ],
    samples=lambda make: [],
    flops=per_element(14),
)
def native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    check_gradient(grad_out, input, mean, rstd, weight)
    return _group_norm_gradients(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)


@in_float32_with_parameters
def _group_norm_gradients(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    if not input.size:
        return tuple(
            np.zeros(shape if wanted else 0, input.dtype)
            for shape, wanted in zip((input.shape, C, C), output_mask, strict=True)
        )
    rows, grads = (a.reshape(N * group, C // group, HxW) for a in (input, grad_out))
    mean, rstd = (a.reshape(-1, 1, 1) for a in (mean, rstd))
    factor = None if weight is None else _of_groups(weight, N, group)
    # Sums per sample and channel serve the parameters and, weighted, the groups.
    sums, dots = np.empty((2, *rows.shape[:2], 1), rows.dtype)
    grad_input = np.empty(rows.shape, rows.dtype) if output_mask[0] else None
    count = rows.dtype.type(C // group * HxW)

    def work(part):
        g = grads[part]
        lines = g.reshape(-1, HxW)
        centered = np.subtract(rows[part], mean[part])
        sums[part] = row_sums(lines).reshape(len(g), -1, 1)
        dots[part] = row_dots(lines, centered.reshape(-1, HxW)).reshape(len(g), -1, 1)
        dots[part] *= rstd[part]
        if grad_input is None:
            return
        scale = rstd[part]
        mean_g, along = (
            np.add.reduce(a[part] if factor is None else a[part] * factor[part], 1, None, None, True) for a in (sums, dots)
        )
        # (g - mean(g) - x̂ mean(g x̂)) rstd, where each sum counts by the weights of its channels.
        grad = np.multiply(g, scale if factor is None else factor[part] * scale, grad_input[part])
        np.multiply(centered, along * (scale * scale / count), centered)
        np.add(centered, mean_g * (scale / count), centered)
        np.subtract(grad, centered, grad)

    _each_group(rows.reshape(len(rows), -1), work)
    empty = np.zeros(0, input.dtype)
    return (
        empty if grad_input is None else grad_input.reshape(input.shape),
        np.add.reduce(dots.reshape(N, C), 0) if output_mask[1] else empty,
        np.add.reduce(sums.reshape(N, C), 0) if output_mask[2] else empty,
    )


@native_group_norm_backward.vjp
def _(grads, grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    def forward(x, w, b):
        normal = normalized_in_ops(x.reshape(N, group, C * HxW // group), (2,), rstd.view(N, group, 1)).reshape(N, C, HxW)
        normal = normal if w is None else normal * w.view(1, C, 1)
        return (normal if b is None else normal + b.view(1, C, 1)).reshape(input.shape)

    bias = aten.zeros((C,), dtype=input.dtype, device=home_of(input)) if output_mask[2] else None
    (to_input, to_weight, _), to_grad = backward_of_backward(forward, (input, weight, bias), grad_out, grads)
    return to_grad, to_input, None, None, to_weight


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enabled=True) -> Tensor",
    samples=lambda make: [(make(2, 4, 3), 2, make(4), make(4))],
)
def group_norm(input, num_groups, weight, bias, eps, cudnn_enabled):
    """Normalizes groups of channels of each sample.

    >>> F.group_norm(torch.tensor([[1.0, 3.0]]), 1)
    tensor([[-1.0000,  1.0000]])
    """
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    N, C = shape[:2]
    if num_groups <= 0 or C % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(shape)} and num_groups={num_groups}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value._array.shape != (C,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(value._array.shape)} and input of shape {list(shape)}"
            )
    return aten.native_group_norm(_like_input(input, input), weight, bias, N, C, math.prod(shape[2:]), num_groups, eps)[0]


# ---------------------------------------------------------------- rms norm


@composite(
    "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
    samples=lambda make: [(make(3, 4), (4,), make(4), 1e-5)],
)
def fused_rms_norm(input, normalized_shape, weight, eps):
    dims = tuple(range(-len(normalized_shape), 0))
    kind = input.dtype
    if eps is None:
        eps = dt.finfo(kind).eps
    wide = input if kind.itemsize > 2 else aten.to(input, dtype=dt.float32)
    rstd = aten.rsqrt(add_number_(aten.mean(aten.pow(wide, 2), dims, True), eps))
    scaled = aten.mul(wide, rstd)
    if weight is not None:
        scaled = aten.mul(scaled, weight)
    return aten.type_as(scaled, input), rstd


@composite(
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    samples=lambda make: [(make(3, 4), (4,), make(4))],
)
def rms_norm(input, normalized_shape, weight, eps):
    """Divides by the root of the mean square over the last dims.

    >>> F.rms_norm(torch.tensor([3.0, 4.0]), (2,))
    tensor([0.8485, 1.1314])
    """
    _check_layer_norm(input._array, normalized_shape, None if weight is None else weight._array, None)
    return aten._fused_rms_norm(input, normalized_shape, weight, eps)[0]
