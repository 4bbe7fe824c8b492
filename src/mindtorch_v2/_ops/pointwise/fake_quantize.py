"""Numbers as a quantized tensor would hold them, in floating point: what quantization-aware training computes with."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.facts import Surface
from ..._dispatch.registry import aten, composite, op
from .._support.common import like_first, no_kernel, normal_dim, scalar_name


def _rounded(self, scale, zero_point, quant_min, quant_max):
    """(the nearest numbers that the integers stand for, where those lie in the range); nan becomes the least."""
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
    if not (np.all(zero_point >= quant_min) and np.all(zero_point <= quant_max)):
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    if not dt.from_numpy(self.dtype).is_floating_point:
        raise no_kernel("fake_quantize_tensor_cachemask_kernel_type_handling", self)
    kind = np.float32 if self.dtype.itemsize == 2 else self.dtype
    scale, zero_point = np.asarray(scale, np.float32), np.asarray(zero_point, np.float32)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        places = self.astype(kind) * (1 / scale).astype(kind)
        if np.any(zero_point % 1):  # a zero point that is no integer is part of what is rounded
            np.rint(np.add(places, zero_point, places), places)
        else:
            np.add(np.rint(places, places), zero_point, places)
        np.copyto(places, -np.inf, where=np.isnan(places))
        inside = (places >= quant_min) & (places <= quant_max)
        np.clip(places, quant_min, quant_max, places)
        np.subtract(places, zero_point, places)
        np.multiply(places, scale, places)
    return places.astype(self.dtype, copy=False), inside


def _qparams(count):
    """A scale so small that every element of a sample lies outside the range, where the result does not follow it."""
    return aten.full((count,), 1e-9, dtype=dt.float32), aten.zeros((count,), dtype=dt.int32)


def _two(self, *_rest):
    return [like_first(self), (self._array.shape, dt.bool_.np)]


@op(
    "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) "
    "-> (Tensor output, Tensor mask)",
    shape=_two,
    samples=lambda make: [(make(3, 4), 1e-9, 0, -1, 1)],
    surface=Surface.NONE,
)
def _per_tensor(self, scale, zero_point, quant_min, quant_max):
    """What `fake_quantize_per_tensor_affine` computes, and which elements were in reach.

    >>> torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(torch.tensor([0.26, 9.0]), 0.5, 0, -2, 2)[1]
    tensor([ True, False])
    """
    return _rounded(self, scale, zero_point, quant_min, quant_max)


@op(
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
    "Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
    node="FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0",
    shape=_two,
    samples=lambda make: [(make(3, 4), *_qparams(1), aten.ones((1,), dtype=dt.int64), -1, 1)],
)
def _by_tensors(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
    for numbers in (scale, zero_point):
        if numbers.size != 1:
            raise RuntimeError(f"a Tensor with {numbers.size} elements cannot be converted to Scalar")
    if not fake_quant_enabled.all():
        return self.copy(), np.ones(self.shape, np.bool_)
    return _rounded(self, scale.reshape(()), zero_point.reshape(()), quant_min, quant_max)


@op(
    "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, "
    "int quant_max) -> (Tensor output, Tensor mask)",
    shape=_two,
    samples=lambda make: [(make(3, 4), *_qparams(4), 1, -1, 1)],
    surface=Surface.NONE,
)
def _per_channel(self, scale, zero_point, axis, quant_min, quant_max):
    """What `fake_quantize_per_channel_affine` computes, and which elements were in reach.

    >>> scale, zero_point = torch.tensor([0.5, 1.0]), torch.zeros(2, dtype=torch.int32)
    >>> torch.ops.aten.fake_quantize_per_channel_affine_cachemask(torch.tensor([0.26, 9.0]), scale, zero_point, 0, -2, 2)[1]
    tensor([ True, False])
    """
    if scalar_name(scale) not in ("Float", "BFloat16"):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {scalar_name(scale)}")
    if scalar_name(zero_point) not in ("Int", "Float", "Half"):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {scalar_name(zero_point)}")
    if scale.ndim != 1:
        raise RuntimeError("scale should be a 1-D tensor")
    if zero_point.ndim != 1:
        raise RuntimeError("zero point should be a 1-D tensor")
    if scale.size != zero_point.size:
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    dim = normal_dim(axis, self.ndim)
    if scale.size != self.shape[dim]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    wide = [1] * self.ndim
    wide[dim] = -1
    return _rounded(self, scale.reshape(wide), zero_point.reshape(wide), quant_min, quant_max)


for _kernel in (_per_tensor, _by_tensors, _per_channel):
    _kernel.not_differentiable("result1").vjp(self=lambda g, result1: g * result1)


@composite(
    "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor",
    samples=lambda make: [(make(3, 4), 1e-9, 0, -1, 1)],
)
def fake_quantize_per_tensor_affine(self, scale, zero_point, quant_min, quant_max):
    """Each element as the nearest multiple of `scale` that the integers from `quant_min` to `quant_max` can stand for.

    Gradients pass where the element lies in that range.

    >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.26, 9.0]), 0.1, 0, -8, 7)
    tensor([0.3000, 0.7000])
    """
    return aten.fake_quantize_per_tensor_affine_cachemask(self, scale, zero_point, quant_min, quant_max)[0]


@composite(
    "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, "
    "int quant_max) -> Tensor",
    samples=lambda make: [(make(3, 4), *_qparams(1), -1, 1)],
)
def fake_quantize_by_tensors(self, scale, zero_point, quant_min, quant_max):
    enabled = aten.ones((1,), dtype=dt.int64, device=self.device)
    return aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
        self, scale, zero_point, enabled, quant_min, quant_max
    )[0]


@composite(
    "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) "
    "-> Tensor",
    samples=lambda make: [(make(3, 4), *_qparams(4), 1, -1, 1)],
)
def fake_quantize_per_channel_affine(self, scale, zero_point, axis, quant_min, quant_max):
    """As `fake_quantize_per_tensor_affine`, with a scale and a zero point for each place along `axis`.

    >>> zero = torch.zeros(2, dtype=torch.int32)
    >>> torch.fake_quantize_per_channel_affine(torch.tensor([[0.26], [0.26]]), torch.tensor([0.1, 0.5]), zero, 0, -8, 7)
    tensor([[0.3000],
            [0.5000]])
    """
    return aten.fake_quantize_per_channel_affine_cachemask(self, scale, zero_point, axis, quant_min, quant_max)[0]
