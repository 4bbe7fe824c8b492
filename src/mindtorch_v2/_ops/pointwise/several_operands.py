"""Ops of three tensors, or of two and a number, in one pass: addcmul, addcdiv, lerp."""

from __future__ import annotations

import numpy as np

from ..._core.parallel import splits
from ..._dispatch.facts import Promotion
from ..._dispatch.out_dtypes import same
from ..._dispatch.promotion import INTEGER_QUOTIENT
from ..._dispatch.registry import aten, op
from .._support.blockwise import BLOCK, in_blocks
from .._support.common import no_kernel
from .._support.flops import per_element
from .._support.half import is_half, rounded_once
from .arithmetic import conj, fitting_number, number

_BOOL = np.dtype(np.bool_)


@op(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    deprecated=("self value tensor1 tensor2",),
    promote=Promotion.SAME,
    inplace=True,
    tensors_only=True,
    flops=per_element(2),
)
def addcmul(self, tensor1, tensor2, value, out=None):
    """`input + value * tensor1 * tensor2`, element by element.

    >>> torch.addcmul(torch.tensor([1.0]), torch.tensor([4.0]), torch.tensor([2.0]), value=0.5)
    tensor([5.])
    """
    if self.dtype is _BOOL:
        raise no_kernel("addcmul_cpu_out", self)
    return _plus_scaled(np.multiply, self, tensor1, tensor2, value, out)


def _plus_scaled(combine, self, tensor1, tensor2, value, out):
    """self + value * combine(tensor1, tensor2), block by block where the arrays are large."""
    if is_half(self.dtype):
        return rounded_once(lambda *arrays: _plus_scaled(combine, *arrays, value, None), out, self, tensor1, tensor2)
    if self.size > BLOCK and self.dtype.kind == "f" and splits(self, tensor1, tensor2, out):
        factor = None if value == 1 else fitting_number(value, self.dtype)
        result = np.empty(self.shape, self.dtype) if out is None else out
        return in_blocks(lambda *blocks: _plus_scaled_block(combine, factor, *blocks), result, self, tensor1, tensor2, passes=3)
    combined = combine(tensor1, tensor2)
    if value != 1:
        combined = np.multiply(
            combined, fitting_number(value, self.dtype), combined if combined.__class__ is np.ndarray else None
        )
    return np.add(self, combined, out)


def _plus_scaled_block(combine, factor, out, self, tensor1, tensor2):
    combined = combine(tensor1, tensor2)
    if factor is not None:
        np.multiply(combined, factor, combined)
    np.add(self, combined, out)


addcmul.vjp(
    self=lambda g: g,
    tensor1=lambda g, tensor2, value: g * conj(tensor2 * value),
    tensor2=lambda g, tensor1, value: g * conj(tensor1 * value),
)


@op(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    deprecated=("self value tensor1 tensor2",),
    promote=Promotion.QUOTIENT,
    inplace=True,
    tensors_only=True,
    flops=per_element(2),
)
def addcdiv(self, tensor1, tensor2, value, out=None):
    """`input + value * tensor1 / tensor2`, element by element.

    >>> torch.addcdiv(torch.tensor([1.0]), torch.tensor([4.0]), torch.tensor([2.0]), value=0.5)
    tensor([2.])
    """
    if self.dtype.kind in "iub":
        raise RuntimeError(INTEGER_QUOTIENT)
    return _plus_scaled(np.divide, self, tensor1, tensor2, value, out)


def _number_over(number, t):
    """number / t, made as torch makes it: filled, then divided in place."""
    return aten.div_(aten.fill_(aten.empty_like(t), number), t)


def _addcdiv_divisor_grad(g, tensor1, tensor2, value):
    square = tensor2 * tensor2
    slope = conj((tensor1 * value) / square)
    return -g * slope


addcdiv.vjp(
    self=lambda g: g, tensor1=lambda g, tensor2, value: g * conj(_number_over(value, tensor2)), tensor2=_addcdiv_divisor_grad
)


def _interpolated_block(weight, out, self, end):
    difference = np.subtract(end, self)
    if abs(weight) < 0.5:
        np.multiply(difference, weight, difference)
        np.add(self, difference, out)
    else:
        np.multiply(difference, np.subtract(1, weight, dtype=self.dtype), difference)
        np.subtract(end, difference, out)


def _interpolated(self, end, weight, out):
    """`lerp` computed from the nearer end, so that both ends are exact."""
    if self.size > BLOCK and not weight.ndim and splits(self, end, out) and self.dtype.kind == "f":
        result = np.empty(self.shape, self.dtype) if out is None else out
        return in_blocks(lambda *blocks: _interpolated_block(weight, *blocks), result, self, end, passes=3)
    difference = np.subtract(end, self)
    near = np.abs(weight) < 0.5
    if near.ndim == 0:
        return (
            np.add(self, np.multiply(difference, weight), out)
            if near
            else np.subtract(end, np.multiply(difference, np.subtract(1, weight)), out)
        )
    result = np.where(near, self + difference * weight, end - difference * (1 - weight))
    return result if out is None else np.positive(result, out)


@op(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    promote=Promotion.ONE,
    promoted=("self", "end"),
    kernel_name="lerp_kernel_scalar",
    tensors_only=True,
    inplace=True,
    samples=lambda make: [(make(3, 4), make(3, 4), 0.3), (make(3, 4), make(3, 4), 0.8)],
    flops=per_element(2),
)
def lerp(self, end, weight, out=None):
    """Moves from the input towards `end` by the share `weight`.

    >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([10.0, 20.0]), 0.25)
    tensor([ 2.5000, 12.5000])
    """
    if self.dtype.kind in "iub":
        raise TypeError("integers have nothing between them")
    if is_half(self.dtype):
        return rounded_once(lambda self, end: _interpolated(self, end, number(weight, self.dtype), None), out, self, end)
    return _interpolated(self, end, number(weight, self.dtype), out)


lerp.vjp(self=lambda g, weight: g * (1 - conj(weight)), end=lambda g, weight: g * conj(weight))


@op(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    promote=Promotion.WEIGHT,
    inplace=True,
    node="LerpBackward1",
    kernel_name="lerp_kernel_tensor",
    tensors_only=True,
    out_dtype=same,
    flops=per_element(2),
)
def lerp_tensor(self, end, weight, out=None):
    if self.dtype.kind in "iub":
        raise TypeError("integers have nothing between them")
    if is_half(self.dtype):
        return rounded_once(lambda *arrays: _interpolated(*arrays, None), out, self, end, weight)
    return _interpolated(self, end, weight, out)


def _lerp_self_grad(g, weight):
    rest = aten.fill_(aten.empty_like(weight), 1).sub_(weight)
    return g * conj(rest)


lerp_tensor.vjp(self=_lerp_self_grad, end=lambda g, weight: g * conj(weight), weight=lambda g, self, end: g * conj(end - self))
