"""Undoing max pooling, and pooling over windows of random sizes."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ...._core.determinism import alert_not_deterministic
from ...._core.layout import has_channels_last, suggested_format, with_channels_last
from ...._dispatch.facts import Autocast
from ...._dispatch.registry import aten, op
from ..._support.common import scalar_name
from ..._support.elementwise import need_real
from .._windows import per_dim
from ._checks import check_not_empty
from .pool import gathered, spread_max

_INT64 = np.dtype(np.int64)
_SIZES = {2: "two elements (height, width)", 3: "three elements (depth, height, width)"}


def _unpooled(self, indices, output_size, dims):
    alert_not_deterministic(f"max_unpooling{dims}d_forward_out")
    if indices.dtype != _INT64:
        actual = f" but got: {scalar_name(indices)}" if dims == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{actual}")
    if self.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor "
            f"with {self.ndim} dimensions."
        )
    if self.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(self.shape)}) "
            f"but got indices tensor with shape: {list(indices.shape)}"
        )
    if len(output_size) != dims:
        raise RuntimeError(f"There should be exactly {_SIZES[dims]} in output_size, but got {len(output_size)} elements.")
    check_not_empty(
        f"max_unpooling{dims}d_forward_out_cpu", self.shape, self.ndim - 1, "got {shape} with dimension {axis} being empty."
    )
    shape = (*self.shape[:-dims], *output_size)
    if not self.size:
        return np.zeros(shape, self.dtype)
    area = math.prod(output_size)
    planes = math.prod(self.shape[:-dims])
    output = np.zeros((planes, area), self.dtype)
    flat = indices.reshape(planes, -1)
    if flat.min() < 0 or flat.max() >= area:
        wrong = flat[(flat < 0) | (flat >= area)][0]
        raise RuntimeError(
            f"Found an invalid max index: {wrong} (output volumes are of size {'x'.join(map(str, output_size))})"
        )
    np.put_along_axis(output, flat, self.reshape(planes, -1), 1)
    output = output.reshape(shape)
    return with_channels_last(output) if dims == 2 and has_channels_last(self) else output


def _unpool_grad(g, indices, dims):
    """The elements of the gradient at the maxima's positions."""
    shape = indices._array.shape
    lead = shape[:-dims]
    flat = aten.view(g.contiguous(), (*lead, math.prod(g._array.shape[-dims:])))
    picked = aten.gather(flat, -1, aten.view(indices.contiguous(), (*lead, math.prod(shape[-dims:]))))
    return aten.contiguous(aten.view(picked, shape), memory_format=suggested_format(indices._array))


@op(
    "max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor",
    shape=lambda self, indices, output_size: ((*self._array.shape[:-2], *output_size), self._array.dtype),
    samples=lambda make: [(make(1, 1, 2, 2), (aten.arange(4) * 3).reshape(1, 1, 2, 2), (4, 4))],
    autocast=Autocast.FLOAT32,
)
def max_unpool2d(self, indices, output_size):
    """Puts maxima back to where they were, zeros elsewhere, over two dims.

    >>> torch.ops.aten.max_unpool2d(torch.tensor([[[[5.0]]]]), torch.tensor([[[[3]]]]), [2, 2])
    tensor([[[[0., 0.],
              [0., 5.]]]])
    """
    return _unpooled(self, indices, tuple(output_size), 2)


max_unpool2d.vjp(self=lambda g, indices: _unpool_grad(g, indices, 2))
# Of values at one place the last stays, and its tangent, though all of them get the gradient.
max_unpool2d.jvp(self=lambda t, indices, output_size: aten.max_unpool2d(t, indices, output_size))


@op(
    "max_unpool3d(Tensor self, Tensor indices, int[3] output_size, int[3] stride, int[3] padding) -> Tensor",
    shape=lambda self, indices, output_size, *_: ((*self._array.shape[:-3], *output_size), self._array.dtype),
    samples=lambda make: [],
    autocast=Autocast.FLOAT32,
)
def max_unpool3d(self, indices, output_size, stride, padding):
    """Puts maxima back to where they were, zeros elsewhere, over three dims.

    >>> torch.ops.aten.max_unpool3d(torch.tensor([[[[[5.0]]]]]), torch.tensor([[[[[1]]]]]), [1, 1, 2], [1, 1, 2], [0, 0, 0])
    tensor([[[[[0., 5.]]]]])
    """
    if any(s <= 0 for s in stride):
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
    return _unpooled(self, indices, tuple(output_size), 3)


max_unpool3d.vjp(self=lambda g, indices: _unpool_grad(g, indices, 3))
max_unpool3d.jvp(
    self=lambda t, indices, output_size, stride, padding: aten.max_unpool3d(t, indices, output_size, stride, padding)
)

# ---------------------------------------------------------------- fractional


def _starts(samples, size, kernel, out):
    """Where each window begins: steps of a constant average length, with a random phase per plane."""
    starts = np.empty((*samples.shape, out), _INT64)
    # In the precision of the samples, also where that is half of the usual: steps are cut off to whole numbers.
    number = samples.dtype.type
    if out > 1:
        step = number(size - kernel) / number(out - 1)
        phase = samples[..., None]
        steps = np.arange(out - 1).astype(samples.dtype)
        starts[..., :-1] = ((steps + phase) * step).astype(_INT64) - (phase * step).astype(_INT64)
    starts[..., -1:] = size - kernel
    return starts


def _each(name, argument, value, dims):
    values = per_dim(value, dims) if isinstance(value, int) else tuple(value)
    if len(values) != dims:
        form = "Ints" if dims == 2 else "three Ints"
        raise RuntimeError(f"{name}: {argument} must either be a single Int or tuple of {form}")
    return values


def _check_fractional(self, kernel, out, samples):
    dims = len(kernel)
    caller = "fractional_max_pool2d" if dims == 2 else "fractional_max_pool3d_out"
    if self.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(f"{caller}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(self.shape)}")
    check_not_empty(caller, self.shape, self.ndim - 1, "got{shape} with dimension {axis} being empty.")
    for n, k, o, what in zip(self.shape[-dims:], kernel, out, ("time", "height", "width")[-dims:], strict=True):
        if o + k - 1 > n - (dims == 3):  # a volume must be larger than what its windows cover
            raise RuntimeError(f"{caller}(): pool {what} {k} too large relative to input {what} {n}")
    if samples.dtype != self.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    batch = self.shape[0] if self.ndim == dims + 2 else 1
    if samples.shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != self.shape[-dims - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != dims:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims}; got {samples.shape[2]}.")


def _fractional(self, kernel, out, random_samples):
    dims = len(kernel)
    need_real("fractional_max_pool2d_out_frame", self)
    _check_fractional(self, kernel, out, random_samples)
    size = self.shape[-dims:]
    shape = (*self.shape[:-dims], *out)
    if not self.size or 0 in out:
        return np.zeros(shape, self.dtype), np.zeros(shape, _INT64)
    batched = self if self.ndim == dims + 2 else self[None]
    lead = batched.shape[:2]
    samples = random_samples[: lead[0]]
    # In two dims the first sample belongs to the last dim; in three the order is that of the dims.
    order = (1, 0) if dims == 2 else (0, 1, 2)
    starts = [_starts(samples[..., order[axis]], size[axis], kernel[axis], out[axis]) for axis in range(dims)]
    flat = batched.reshape(*lead, -1)
    best = places = None
    for position in itertools.product(*map(range, kernel)):
        at = np.zeros((*lead, *(1,) * dims), _INT64)
        for axis in range(dims):
            line = (starts[axis] + position[axis]).reshape(*lead, *[-1 if a == axis else 1 for a in range(dims)])
            at = at * size[axis] + line
        at = at.reshape(*lead, -1)
        values = np.take_along_axis(flat, at, 2)
        if best is None:
            best, places = values, at
        else:
            larger = (values > best) | (values != values)
            best = np.where(larger, values, best)
            places = np.where(larger, at, places)
    return best.reshape(shape), places.reshape(shape)


def _declare(dims, *, doc=None):
    name = f"fractional_max_pool{dims}d"
    ints = f"int[{dims}]"

    def shape(self, kernel_size, output_size, random_samples):
        pooled = (*self._array.shape[:-dims], *_each(name, "output_size", output_size, dims))
        return [(pooled, self._array.dtype), (pooled, _INT64)]

    @op(
        f"{name}(Tensor self, {ints} kernel_size, {ints} output_size, Tensor random_samples) -> (Tensor, Tensor)",
        shape=shape,
        node=f"FractionalMaxPool{dims}DBackward0",
        samples=lambda make: [(make(1, 2, *(6,) * dims), (2,) * dims, (3,) * dims, make.constant(1, 2, dims))],
        autocast=Autocast.FLOAT32,
        doc=doc,
    )
    def forward(self, kernel_size, output_size, random_samples):
        kernel, out = _each(name, "kernel_size", kernel_size, dims), _each(name, "output_size", output_size, dims)
        return _fractional(self, kernel, out, random_samples)

    forward.not_differentiable("random_samples").vjp(
        self=lambda g, self, kernel_size, output_size, result1: getattr(aten, f"{name}_backward")(
            g, self, kernel_size, output_size, result1
        )
    )

    @op(
        f"{name}_backward(Tensor grad_output, Tensor self, {ints} kernel_size, {ints} output_size, Tensor indices) -> Tensor",
        shape=lambda grad_output, self, *_: (self._array.shape, self._array.dtype),
        samples=lambda make: [],
    )
    def backward(grad_output, self, kernel_size, output_size, indices):
        return spread_max(grad_output, indices, self.shape, dims)

    backward.vjp(grad_output=lambda g, indices: gathered(g, indices, dims))


_declare(
    2,
    doc="""Maxima of windows of random sizes over two dims, and their positions.

    >>> torch.ops.aten.fractional_max_pool2d(torch.arange(9.0).view(1, 1, 3, 3), [2, 2], [1, 1], torch.zeros(1, 1, 2))[0]
    tensor([[[[8.]]]])
    """,
)
_declare(
    3,
    doc="""Maxima of windows of random sizes over three dims, and their positions.

    >>> torch.ops.aten.fractional_max_pool3d(torch.ones(1, 1, 3, 3, 3), [2, 2, 2], [1, 1, 1], torch.zeros(1, 1, 3))[0]
    tensor([[[[[1.]]]]])
    """,
)
