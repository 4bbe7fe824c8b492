"""Normalization of channels: batch and instance norm."""

from __future__ import annotations

import numpy as np

from ..._core import parallel
from ..._dispatch.errors import torch_error
from ..._dispatch.facts import Layout, Surface
from ..._dispatch.registry import aten, composite, op
from .._support.blas_sums import channel_dots, channel_sums
from .._support.common import home_of, like_first, normal_dim, unexpected_dtype
from .._support.double_backward import asked_for, backward_of_backward
from .._support.elementwise import need_float
from .._support.flops import per_element
from .._support.half import in_float32
from ._norm_dtypes import check_mixed
from .layer_norm import normalized_in_ops

# Up to here BLAS computes on one thread by itself.
_FEW = 8192
# More are taken in so many blocks of channels, of no fewer and no more elements than these: 0.5 to 2 MB of float32. Blocks are
# for threads to share; smaller ones, though they fit into a core's cache, take 1.2 to 1.5 times as long.
_BLOCKS = 4
_SMALLEST = 1 << 17
_LARGEST = 1 << 19


def _channels(input):
    return input._array.shape[1] if input._array.ndim > 1 else 0


def _planes(array):
    """(N, C, area): a view of a contiguous array."""
    return array.reshape(*array.shape[:2], -1)


def _inverse(variance, eps):
    return np.reciprocal(np.sqrt(variance + variance.dtype.type(eps)))


def _statistics_dtype(input, *parameters):
    """The dtype of saved means and scales: the input's, unless its parameters are wider."""
    return next((p.dtype for p in parameters if p is not None and p.dtype.itemsize > input.dtype.itemsize), input.dtype)


def _shapes(input, weight, bias, running_mean, running_var, training, *_):
    arrays = [None if t is None else t._array for t in (weight, bias, running_mean, running_var)]
    saved = (_channels(input) if training else 0,), _statistics_dtype(input._array, *arrays)
    return [like_first(input), saved, saved]


def _native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """The running statistics, which are written to, may be of another dtype than the input."""
    need_float("batch_norm", input)
    if (running_mean is None) != (running_var is None):
        raise torch_error(ValueError("running_mean and running_var must either both be None or neither be None"))
    check_mixed(input, weight, bias, running_mean, running_var)
    if input.dtype.itemsize == 2:
        results = _batch_norm(
            input.astype(np.float32),
            *[None if a is None else a.astype(np.float32) for a in (weight, bias)],
            running_mean,
            running_var,
            training,
            momentum,
            eps,
        )
        kind = _statistics_dtype(input, weight, bias, running_mean, running_var)
        return results[0].astype(input.dtype), *[saved.astype(kind, copy=False) for saved in results[1:]]
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


native_batch_norm = op(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    _native_batch_norm,
    layout=Layout.IMAGES,
    node="NativeBatchNormBackward0",
    shape=_shapes,
    samples=lambda make: [(make(3, 4, 2), make(4), make(4), None, None, True, 0.1, 1e-5)],
    flops=per_element(8),
    doc="""What `batch_norm` computes, with the mean and the inverse deviation of each channel.

    >>> torch.native_batch_norm(torch.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 1e-5)[1]
    tensor([2.])
    """,
)


# Rows longer than this are for `channel_sums` and `channel_dots`, which add them up without drifting.
_LONG = 1 << 16


def _sums(planes):
    """(C,) sums of (N, C, area), which may be some of the channels of an array: their rows are not copied."""
    area = planes.shape[2]
    if planes.flags.c_contiguous or not 1 < area <= _LONG:
        return channel_sums(planes)
    return np.add.reduce(np.vecdot(planes, np.ones(area, planes.dtype)), 0)


def _dots(left, right):
    """(C,) inner products of two arrays as `_sums` takes them."""
    if not 1 < left.shape[2] <= _LONG:
        return channel_dots(left, right)
    return np.add.reduce(np.vecdot(left, right), 0)


def _each_part(planes, work):
    """Call `work` with slices of the channels, of a large array on several threads, of a small one with all of them."""
    channels = planes.shape[1]
    if planes.size <= _FEW:
        work(slice(0, channels))
    else:
        size = min(_LARGEST, max(_SMALLEST, planes.size // _BLOCKS))
        parallel.blocks(channels, max(1, size * channels // planes.size), work)


def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    kind = input.dtype
    planes = _planes(input)
    count = input.size // max(input.shape[1], 1)
    result = np.empty(planes.shape, kind)
    if training:
        mean, variance = np.empty(input.shape[1], kind), np.empty(input.shape[1], kind)
    else:
        mean, variance = running_mean.astype(kind, copy=False), running_var

    def work(part):
        if training:
            mean[part] = _sums(planes[:, part])
            mean[part] /= kind.type(count)
            normal = np.subtract(planes[:, part], mean[part, None])
            variance[part] = _dots(normal, normal)
            variance[part] /= kind.type(count)
        scale = _inverse(variance[part], eps).astype(kind, copy=False)
        factor = (scale if weight is None else scale * weight[part])[:, None]
        if not training:  # one product and one sum, as torch has it
            scaled = np.multiply(planes[:, part], factor, result[:, part])
            shift = -mean[part, None] * factor
            np.add(scaled, shift if bias is None else shift + bias[part, None], scaled)
        elif bias is None:
            np.multiply(normal, factor, result[:, part])
        else:
            np.multiply(normal, factor, normal)
            np.add(normal, bias[part, None], result[:, part])

    _each_part(planes, work)
    if not training:
        return result.reshape(input.shape), np.zeros(0, kind), np.zeros(0, kind)
    if running_mean is not None:
        running_mean *= 1 - momentum
        running_mean += momentum * mean
    if running_var is not None:
        running_var *= 1 - momentum
        running_var += (momentum * count / (count - 1) if count > 1 else momentum) * variance
    return result.reshape(input.shape), mean, _inverse(variance, eps)


def _batch_norm_grad(g, input, weight, running_mean, running_var, training, eps, result1, result2, needs):
    made = aten.native_batch_norm_backward(
        g, input, weight, running_mean, running_var, result1, result2, training, eps, list(needs)
    )
    return asked_for(made, needs)


_LEFT_OUT = "running_mean", "running_var", "result1", "result2"
native_batch_norm.not_differentiable(*_LEFT_OUT).vjp(_batch_norm_grad)

# ---------------------------------------------------------------- with statistics always, never, or not written to

# As with native_batch_norm, the schema does not say that the running statistics are written to: an op whose schema does is
# one whose first argument is its result.
_legit = op(
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    _native_batch_norm,
    layout=Layout.IMAGES,
    shape=_shapes,
    samples=lambda make: [(make(3, 4, 2), make(4), make(4), make.constant(4), make.constant(4), False, 0.1, 1e-5)],
)
_legit.not_differentiable(*_LEFT_OUT).vjp(_batch_norm_grad)


@op(
    "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    layout=Layout.IMAGES,
    node="NativeBatchNormLegitBackward1",
    shape=lambda input, weight, bias, *rest: _shapes(input, weight, bias, None, None, *rest),
    samples=lambda make: [(make(3, 4, 2), make(4), make(4), True, 0.1, 1e-5)],
)
def legit_without_statistics(input, weight, bias, training, momentum, eps):
    return _native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


@legit_without_statistics.not_differentiable("result1", "result2").vjp
def _(g, input, weight, training, eps, result1, result2, needs):
    return _batch_norm_grad(g, input, weight, None, None, training, eps, result1, result2, needs)


@op(
    "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
    "Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    layout=Layout.IMAGES,
    shape=lambda input, weight, bias, mean, var, *rest: _shapes(input, weight, bias, mean, var, False),
    samples=lambda make: [(make(3, 4, 2), make(4), make(4), make.constant(4), make.constant(4), 0.1, 1e-5)],
)
def legit_without_training(input, weight, bias, running_mean, running_var, momentum, eps):
    return _native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@legit_without_training.not_differentiable(*_LEFT_OUT).vjp
def _(g, input, weight, running_mean, running_var, eps, result1, result2, needs):
    return _batch_norm_grad(g, input, weight, running_mean, running_var, False, eps, result1, result2, needs)


@composite(
    "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
    "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, "
    "Tensor running_var_out)",
    samples=lambda make: [],
)
def legit_functional(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """The new running statistics are returned, and the given ones left as they are."""
    mean, variance = aten.clone(running_mean), aten.clone(running_var)
    return *aten._native_batch_norm_legit(input, weight, bias, mean, variance, training, momentum, eps), mean, variance


# ---------------------------------------------------------------- backward


@op(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? "
    "running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, "
    "Tensor, Tensor)",
    layout=Layout.INPUT_IMAGES,
    takes_all_grads=True,
    samples=lambda make: [],
    shape=lambda grad_out, input, *rest: [
        (shape if wanted else (0,), input._array.dtype)
        for shape, wanted in zip((input._array.shape, (_channels(input),), (_channels(input),)), rest[-1], strict=True)
    ],
    flops=per_element(14),
)
def native_batch_norm_backward(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):
    need_float("batch_norm_backward_cpu", input)
    if grad_out.dtype != input.dtype:
        raise unexpected_dtype(input, grad_out)
    if grad_out.shape != input.shape:
        raise RuntimeError(f"Expected grad_out to have the input's shape {list(input.shape)}, but got {list(grad_out.shape)}")
    return _gradients(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)


@in_float32
def _gradients(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask):
    kind = input.dtype
    grads, planes = _planes(grad_out), _planes(input)
    mean = save_mean if train else running_mean.astype(kind, copy=False)
    invstd = save_invstd if train else _inverse(running_var, eps).astype(kind, copy=False)
    empty = np.zeros(0, kind)
    through_statistics = output_mask[0] and train
    sums, dots = np.empty(input.shape[1], kind), np.empty(input.shape[1], kind)
    result = np.empty(planes.shape, kind) if output_mask[0] else empty
    count = kind.type(max(input.size // max(input.shape[1], 1), 1))

    def work(part):
        g, centered = grads[:, part], None
        if output_mask[2] or through_statistics:
            sums[part] = _sums(g)
        if output_mask[1] or through_statistics:
            centered = np.subtract(planes[:, part], mean[part, None])
            dots[part] = _dots(g, centered)
            dots[part] *= invstd[part]
        if not output_mask[0]:
            return
        scale = invstd[part] if weight is None else invstd[part] * weight[part]
        grad = np.multiply(g, scale[:, None], result[:, part])
        if train:
            # (g - mean(g) - x̂ mean(g x̂)) scale, with the last two factors of each term taken together.
            share = scale / count
            np.multiply(centered, (dots[part] * invstd[part] * share)[:, None], centered)
            np.add(centered, (sums[part] * share)[:, None], centered)
            np.subtract(grad, centered, grad)

    _each_part(planes, work)
    grad_input = result.reshape(input.shape) if output_mask[0] else empty
    return grad_input, dots if output_mask[1] else empty, sums if output_mask[2] else empty


@native_batch_norm_backward.vjp
def _(grads, grad_out, input, weight, running_mean, running_var, save_invstd, train, eps, output_mask):
    shape = (1, -1, *[1] * (input.dim() - 2))
    axes = tuple(i for i in range(input.dim()) if i != 1)

    def forward(x, w, b):
        if train:
            normal = normalized_in_ops(x, axes, save_invstd.view(shape))
        else:
            normal = (x - running_mean.view(shape)) * (running_var + eps).rsqrt().view(shape)
        normal = normal if w is None else normal * w.view(shape)
        return normal if b is None else normal + b.view(shape)

    bias = aten.zeros((input.shape[1],), dtype=input.dtype, device=home_of(input)) if output_mask[2] else None
    (to_input, to_weight, _), to_grad = backward_of_backward(forward, (input, weight, bias), grad_out, grads)
    return to_grad, to_input, to_weight, None, None, None, None


@composite(
    "_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
    "running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor, "
    "Tensor, int)",
    samples=lambda make: [],
)
def batch_norm_impl_index(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    if not input._array.size:
        return _without_elements(input, weight, bias)
    for name, value in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        if value is not None and value._array.size != _channels(input):
            raise RuntimeError(f"{name} should contain {_channels(input)} elements not {value._array.size}")
        if value is None and not training and name.startswith("running"):
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    results = aten.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return *results, None, 0


def _without_elements(input, weight, bias):
    """An input without elements stays as it is, and leaves the running statistics alone; parameters get zeros as gradients."""
    result = aten.clone(input)
    if weight is not None:
        result = aten.mul(result, aten.select(weight, 0, 0))
    if bias is not None:
        result = aten.add(result, aten.select(bias, 0, 0))
    saved = aten.empty((_channels(input),), dtype=input.dtype, device=home_of(input))
    return result, saved, aten.empty_like(saved), None, 0


@composite(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    samples=lambda make: [(make(3, 4, 2), make(4), make(4), None, None, True, 0.1, 1e-5, False)],
)
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """Normalizes each channel by the batch's mean and variance, or by running ones.

    >>> F.batch_norm(torch.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if input._array.ndim < 2 and input._array.size:
        normal_dim(1, input._array.ndim)
    return aten._batch_norm_impl_index(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)[
        0
    ]


@composite(
    "batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> (Tensor, Tensor)",
    surface=Surface.FUNCTION,
    nondiff=True,
    samples=lambda make: [(make(3, 4, 2), None, None, 0.1)],
)
def batch_norm_update_stats(input, running_mean, running_var, momentum):
    """The mean and the biased variance of each channel of a batch, which move the running ones in place.

    >>> running = torch.zeros(1), torch.ones(1)
    >>> torch.batch_norm_update_stats(torch.tensor([[1.0], [3.0]]), *running, 0.5)
    (tensor([2.]), tensor([1.]))
    >>> running
    (tensor([1.]), tensor([1.5000]))
    """
    if not input._array.size:
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {list(input.shape)}")
    channels = normal_dim(1, input.ndim)
    dims = [dim for dim in range(input.ndim) if dim != channels]
    mean, variance = aten.mean(input, dims), aten.var(input, dims, correction=0)
    count = input._array.size // input.shape[channels]
    if running_mean is not None:
        aten.lerp_(running_mean, mean, momentum)
    if running_var is not None:
        unbiased = aten.mul(variance, count / (count - 1) if count > 1 else float("nan"))
        aten.lerp_(running_var, unbiased, momentum)
    return mean, variance


@composite(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    samples=lambda make: [(make(2, 3, 4), make(3), make(3), None, None, True, 0.1, 1e-5, False)],
    doc="""Normalizes each channel of each sample.

    >>> F.instance_norm(torch.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """,
)
def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """Every sample's channels are channels of one sample to batch_norm."""
    shape = input._array.shape
    batch, channels = shape[:2]
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")

    def repeated(value):
        return None if value is None else aten.repeat(value, (batch,))

    weights, biases, means, variances = (repeated(t) for t in (weight, bias, running_mean, running_var))
    flat = aten.view(input.contiguous(), (1, batch * channels, *shape[2:]))
    normal = aten.batch_norm(flat, weights, biases, means, variances, use_input_stats, momentum, eps, cudnn_enabled)
    if use_input_stats:
        for running, updated in ((running_mean, means), (running_var, variances)):
            if running is not None:
                aten.alias(running).copy_(aten.mean(aten.view(updated, (batch, channels)), 0))
    return aten.view(normal, shape)
