"""Normalisation: layer, batch, group, instance and RMS norm."""

from __future__ import annotations

import math

import numpy as np

from .._dispatch.registry import aten, composite, op
from ._common import like_first

# ---------------------------------------------------------------- layer norm


def _rows(array, normalized_shape):
    """The input as (rows, elements to normalise over), which is a view for contiguous inputs."""
    count = math.prod(normalized_shape)
    return array.reshape(-1, count) if count else array.reshape(0, 0)


def _moments(rows, eps):
    """Centred rows, their means, and 1 / sqrt(variance + eps)."""
    n = rows.shape[1]
    mean = np.add.reduce(rows, 1, None, None, True)
    mean /= n
    centred = np.subtract(rows, mean)
    variance = np.einsum("ij,ij->i", centred, centred)[:, None]
    variance /= n
    variance += eps
    np.sqrt(variance, variance)
    return centred, mean, np.reciprocal(variance, variance)


def _check_layer_norm(input, normalized_shape, weight, bias):
    tail = input._array.shape[input._array.ndim - len(normalized_shape):]
    if not normalized_shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
                           "but got normalized_shape = []")
    if tuple(tail) != tuple(normalized_shape):
        raise RuntimeError(f"Given normalized_shape={list(normalized_shape)}, expected input with shape "
                           f"[*, {', '.join(map(str, normalized_shape))}], but got input of size{list(input.shape)}")
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and tuple(value._array.shape) != tuple(normalized_shape):
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                               f"{list(value.shape)} and normalized_shape = {list(normalized_shape)}")


def _stat_shape(shape, normalized_shape):
    return (*shape[:len(shape) - len(normalized_shape)], *(1,) * len(normalized_shape))


@op("native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) "
    "-> (Tensor, Tensor, Tensor)", node="NativeLayerNormBackward0",
    shape=lambda input, normalized_shape, weight, bias, eps: [
        like_first(input), *[(_stat_shape(input._array.shape, normalized_shape), input._array.dtype)] * 2],
    samples=lambda make: [(make(3, 4), (4,), make(4), make(4), 1e-5), (make(2, 3, 4), (3, 4), None, None, 1e-5)])
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    made, mean, rstd = _moments(_rows(input, normalized_shape), eps)
    np.multiply(made, rstd, made)
    if weight is not None:
        made *= weight.reshape(-1)
    if bias is not None:
        made += bias.reshape(-1)
    shape = _stat_shape(input.shape, normalized_shape)
    return made.reshape(input.shape), mean.reshape(shape), rstd.reshape(shape)


@native_layer_norm.vjp
def _(g, input, normalized_shape, weight, bias, result1, result2, needs):
    return aten.native_layer_norm_backward(g, input, normalized_shape, result1, result2, weight, bias, list(needs))


@op("native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, "
    "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    shape=lambda grad_out, input, normalized_shape, *_: [like_first(input), *[(normalized_shape, input._array.dtype)] * 2],
    samples=lambda make: [])
def native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    rows = _rows(input, normalized_shape)
    g = _rows(grad_out, normalized_shape)
    mean, rstd = mean.reshape(-1, 1), rstd.reshape(-1, 1)
    normal = np.subtract(rows, mean)
    normal *= rstd
    empty = np.zeros(0, input.dtype)
    grad_input, grad_weight, grad_bias = empty, empty, empty
    if output_mask[1]:
        grad_weight = np.einsum("ij,ij->j", g, normal).reshape(normalized_shape)
    if output_mask[2]:
        grad_bias = np.add.reduce(g, 0).reshape(normalized_shape)
    if output_mask[0]:
        scaled = g if weight is None else g * weight.reshape(-1)
        n = rows.shape[1]
        along = np.einsum("ij,ij->i", scaled, normal)[:, None] / n
        normal *= along
        grad_input = np.subtract(scaled, np.add.reduce(scaled, 1, None, None, True) / n)
        grad_input -= normal
        grad_input *= rstd
        grad_input = grad_input.reshape(input.shape)
    return grad_input, grad_weight, grad_bias


def _layer_norm_in_ops(input, normalized_shape, weight, eps_rstd, mean):
    dims = tuple(range(-len(normalized_shape), 0))
    return (input - mean) * eps_rstd, dims


@native_layer_norm_backward.vjp
def _(g, grad_out, input, normalized_shape, mean, rstd, weight):
    """Second derivative, written in ops: x̂ = (x - mean) rstd, and each mean and rstd is a function of x."""
    normal, dims = _layer_norm_in_ops(input, normalized_shape, weight, rstd, mean)
    scaled = grad_out if weight is None else grad_out * weight

    def centre(t):
        return t - t.mean(dims, True) - normal * (t * normal).mean(dims, True)

    through = centre(g) * rstd
    grad_grad_out = through if weight is None else through * weight
    along = (scaled * normal).mean(dims, True)
    inner = (g * normal).mean(dims, True)
    cross = (g * scaled).mean(dims, True)
    bend = -(normal * (cross - g.mean(dims, True) * scaled.mean(dims, True) - 3 * along * inner)
             + (scaled - scaled.mean(dims, True)) * inner + (g - g.mean(dims, True)) * along) * rstd * rstd
    grad_weight = None
    if weight is not None:
        grad_weight = (grad_out * through).sum(tuple(range(input.dim() - len(normalized_shape))))
    return grad_grad_out, bend, None, None, grad_weight, None


@composite("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
           "bool cudnn_enable=True) -> Tensor")
def layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable):
    _check_layer_norm(input, normalized_shape, weight, bias)
    return aten.native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


# ---------------------------------------------------------------- batch norm


def _channel_axes(ndim):
    return tuple(i for i in range(ndim) if i != 1)


def _per_channel(values, ndim):
    return values.reshape(1, -1, *(1,) * (ndim - 2))


def _channels(input):
    return input._array.shape[1] if input._array.ndim > 1 else 0


@op("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)", node="NativeBatchNormBackward0",
    shape=lambda input, weight, bias, mean, var, training, *_: [
        like_first(input), *[((_channels(input) if training else 0,), input._array.dtype)] * 2],
    samples=lambda make: [(make(3, 4, 2), make(4), make(4), None, None, True, 0.1, 1e-5)])
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    ndim, axes = input.ndim, _channel_axes(input.ndim)
    count = input.size // max(input.shape[1], 1)
    if training:
        mean = np.add.reduce(input, axes) / input.dtype.type(count)
        made = np.subtract(input, _per_channel(mean, ndim))
        variance = np.einsum("nci,nci->c", *(made.reshape(*made.shape[:2], -1),) * 2) / input.dtype.type(count)
        invstd = 1 / np.sqrt(variance + input.dtype.type(eps))
        if running_mean is not None:
            running_mean *= 1 - momentum
            running_mean += momentum * mean
        if running_var is not None:
            running_var *= 1 - momentum
            running_var += momentum * (variance * (count / (count - 1)) if count > 1 else variance)
        saved = mean, invstd
        scale = invstd if weight is None else invstd * weight
    else:
        invstd = 1 / np.sqrt(running_var + running_var.dtype.type(eps))
        made = np.subtract(input, _per_channel(running_mean, ndim))
        saved = np.zeros(0, input.dtype), np.zeros(0, input.dtype)
        scale = invstd if weight is None else invstd * weight
    made *= _per_channel(scale, ndim)
    if bias is not None:
        made += _per_channel(bias, ndim)
    return made, *saved


@native_batch_norm.vjp
def _(g, input, weight, running_mean, running_var, training, eps, result1, result2, needs):
    made = aten.native_batch_norm_backward(g, input, weight, running_mean, running_var, result1, result2, training, eps,
                                           list(needs[:3]))
    return *made, None, None


@op("native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, "
    "Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    shape=lambda grad_out, input, *_: [like_first(input), *[((_channels(input),), input._array.dtype)] * 2],
    samples=lambda make: [])
def native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
                               output_mask):
    ndim, axes = input.ndim, _channel_axes(input.ndim)
    count = input.size // max(input.shape[1], 1)
    mean = save_mean if train else running_mean
    invstd = save_invstd if train else 1 / np.sqrt(running_var + running_var.dtype.type(eps))
    normal = np.subtract(input, _per_channel(mean, ndim))
    normal *= _per_channel(invstd, ndim)
    grad_bias = np.add.reduce(grad_out, axes)
    grad_weight = np.einsum("nci,nci->c", grad_out.reshape(*grad_out.shape[:2], -1), normal.reshape(*normal.shape[:2], -1))
    empty = np.zeros(0, input.dtype)
    grad_input = empty
    if output_mask[0]:
        scale = invstd if weight is None else invstd * weight
        if train:
            normal *= _per_channel(grad_weight / count, ndim)
            grad_input = np.subtract(grad_out, _per_channel(grad_bias / input.dtype.type(count), ndim))
            grad_input -= normal
            grad_input *= _per_channel(scale, ndim)
        else:
            grad_input = grad_out * _per_channel(scale, ndim)
    return grad_input, grad_weight if output_mask[1] else empty, grad_bias if output_mask[2] else empty


@native_batch_norm_backward.vjp
def _(g, grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps):
    """Second derivative, written in ops; statistics are constants in eval mode."""
    shape = [1, -1, *[1] * (input.dim() - 2)]
    axes = _channel_axes(input.dim())
    mean = (save_mean if train else running_mean).view(shape)
    invstd = save_invstd.view(shape) if train else (running_var + eps).rsqrt().view(shape)
    scale = 1 if weight is None else weight.view(shape)
    if not train:
        through = g * invstd
        return through * scale, None, (grad_out * through).sum(axes) if weight is not None else None, *[None] * 4
    normal = (input - mean) * invstd
    scaled = grad_out * scale

    def centre(t):
        return t - t.mean(axes, True) - normal * (t * normal).mean(axes, True)

    through = centre(g) * invstd
    along, inner = (scaled * normal).mean(axes, True), (g * normal).mean(axes, True)
    cross = (g * scaled).mean(axes, True)
    bend = -(normal * (cross - g.mean(axes, True) * scaled.mean(axes, True) - 3 * along * inner)
             + (scaled - scaled.mean(axes, True)) * inner + (g - g.mean(axes, True)) * along) * invstd * invstd
    return through * scale, bend, (grad_out * through).sum(axes) if weight is not None else None, *[None] * 4


@composite("_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
           "bool training, float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int)")
def batch_norm_impl_index(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    made = aten.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return *made, None, 0


@composite("batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
           "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor")
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    if input._array.ndim < 2:
        raise RuntimeError(f"Expected 2D or more, but got {input._array.ndim}D input to batch_norm")
    for name, value in (("weight", weight), ("bias", bias), ("running_mean", running_mean), ("running_var", running_var)):
        if value is not None and value._array.size != _channels(input):
            raise RuntimeError(f"{name} should contain {_channels(input)} elements not {value._array.size}")
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("running_mean must be defined in evaluation mode")
    return aten._batch_norm_impl_index(input, weight, bias, running_mean, running_var, training, momentum, eps,
                                       cudnn_enabled)[0]


@composite("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
           "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor")
def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """Every sample's channels are channels of one sample to batch_norm."""
    shape = input._array.shape
    batch, channels = shape[:2]
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")

    def repeated(value):
        return None if value is None else aten.repeat(value, (batch,))

    means, variances = repeated(running_mean), repeated(running_var)
    made = aten.batch_norm(aten.view(input.contiguous(), (1, batch * channels, *shape[2:])), repeated(weight),
                           repeated(bias), means, variances, use_input_stats, momentum, eps, cudnn_enabled)
    if running_mean is not None and use_input_stats:
        running_mean.copy_(means.view(batch, channels).mean(0))
        running_var.copy_(variances.view(batch, channels).mean(0))
    return aten.view(made, shape)


# ---------------------------------------------------------------- group norm


def _group_stats(N, group, dtype):
    return [((N, group), dtype)] * 2


@op("native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) "
    "-> (Tensor, Tensor, Tensor)", node="NativeGroupNormBackward0",
    shape=lambda input, weight, bias, N, C, HxW, group, eps: [like_first(input), *_group_stats(N, group, input._array.dtype)],
    samples=lambda make: [(make(2, 4, 3), make(4), make(4), 2, 4, 3, 2, 1e-5)])
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    made, mean, rstd = _moments(input.reshape(N * group, -1), eps)
    made *= rstd
    made = made.reshape(N, C, HxW)
    if weight is not None:
        made *= weight.reshape(1, C, 1)
    if bias is not None:
        made += bias.reshape(1, C, 1)
    return made.reshape(input.shape), mean.reshape(N, group), rstd.reshape(N, group)


@native_group_norm.vjp
def _(g, input, weight, N, C, HxW, group, result1, result2, needs):
    return aten.native_group_norm_backward(g.contiguous(), input, result1, result2, weight, N, C, HxW, group, list(needs))


@op("native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, int C, "
    "int HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    shape=lambda grad_out, input, mean, rstd, weight, N, C, *_: [like_first(input), *[((C,), input._array.dtype)] * 2],
    samples=lambda make: [])
def native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    normal = np.subtract(input.reshape(N * group, -1), mean.reshape(-1, 1))
    normal *= rstd.reshape(-1, 1)
    g = grad_out.reshape(N, C, HxW)
    by_channel = normal.reshape(N, C, HxW)
    empty = np.zeros(0, input.dtype)
    grad_weight = np.einsum("nci,nci->c", g, by_channel) if output_mask[1] else empty
    grad_bias = np.add.reduce(g, (0, 2)) if output_mask[2] else empty
    grad_input = empty
    if output_mask[0]:
        scaled = (g if weight is None else g * weight.reshape(1, C, 1)).reshape(N * group, -1)
        n = scaled.shape[1]
        along = np.einsum("ij,ij->i", scaled, normal)[:, None] / n
        grad_input = scaled - np.add.reduce(scaled, 1, None, None, True) / n - normal * along
        grad_input *= rstd.reshape(-1, 1)
        grad_input = grad_input.astype(input.dtype, copy=False).reshape(input.shape)
    return grad_input, grad_weight, grad_bias


@composite("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
           "bool cudnn_enabled=True) -> Tensor")
def group_norm(input, num_groups, weight, bias, eps, cudnn_enabled):
    shape = input._array.shape
    N, C = shape[:2]
    if C % num_groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, but got input of shape "
                           f"{list(shape)} and num_groups={num_groups}")
    return aten.native_group_norm(input.contiguous(), weight, bias, N, C, math.prod(shape[2:]), num_groups, eps)[0]


# ---------------------------------------------------------------- rms norm


@composite("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)")
def fused_rms_norm(input, normalized_shape, weight, eps):
    dims = tuple(range(-len(normalized_shape), 0))
    if eps is None:
        eps = float(np.finfo(input._array.dtype).eps) if input._array.dtype.kind == "f" else 0.0078125
    rstd = aten.rsqrt(aten.add_(aten.mean(aten.pow(input, 2), dims, True), eps))
    made = aten.mul(input, rstd)
    return (made if weight is None else aten.mul(made, weight)), rstd


@composite("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor")
def rms_norm(input, normalized_shape, weight, eps):
    _check_layer_norm(input, normalized_shape, weight, None)
    return aten._fused_rms_norm(input, normalized_shape, weight, eps)[0]
