"""Arithmetic and elementary functions, element by element."""

from __future__ import annotations

import math

import numpy as np

from .._dispatch.registry import aten, op
from ._common import like_with_numbers, with_numbers


def _count(self, *_rest):
    """FLOPs of one operation per element of the first operand, as torch counts them."""
    return math.prod(self)


# ---------------------------------------------------------------- arithmetic


@op("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", promote="same", inplace=True, flops=_count)
def add(self, other, alpha, out=None):
    return np.add(self, other if alpha == 1 else np.multiply(other, alpha), out)


add.vjp(self=lambda g: g, other=lambda g, alpha: g if alpha == 1 else g * alpha)


@op("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", promote="same", inplace=True, flops=_count)
def sub(self, other, alpha, out=None):
    if self.dtype == np.bool_:
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                           "`logical_xor()` operator instead.")
    return np.subtract(self, other if alpha == 1 else np.multiply(other, alpha), out)


sub.vjp(self=lambda g: g, other=lambda g, alpha: -g if alpha == 1 else -(g * alpha))


@op("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", promote="same", node="RsubBackward1",
    flops=_count)
def rsub(self, other, alpha):
    return np.subtract(other, self if alpha == 1 else np.multiply(self, alpha))


rsub.vjp(self=lambda g, alpha: -g if alpha == 1 else -(g * alpha), other=lambda g: g)

mul = op("mul.Tensor(Tensor self, Tensor other) -> Tensor", np.multiply, promote="same", inplace=True, flops=_count)
mul.vjp(self=lambda g, other: g * other, other=lambda g, self: g * self)

div = op("div.Tensor(Tensor self, Tensor other) -> Tensor", np.divide, promote="float", inplace=True, flops=_count)
div.vjp(self=lambda g, other: g / other, other=lambda g, self, other: -g * ((self / other) / other))


@op("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", promote="same", inplace=True,
    node="DivBackward1", flops=_count)
def div_mode(self, other, rounding_mode):
    if rounding_mode is None:
        return np.divide(self, other)
    if rounding_mode == "floor":
        return np.floor_divide(self, other)
    if rounding_mode != "trunc":
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
                           f"'{rounding_mode}'")
    if self.dtype.kind in "iu":
        return np.where((self < 0) != (np.asarray(other) < 0), -(np.abs(self) // np.abs(other)),
                        np.abs(self) // np.abs(other)).astype(self.dtype)
    return np.trunc(np.divide(self, other))


div_mode.vjp(self=lambda g, rounding_mode, other: g / other if rounding_mode is None else aten.zeros_like(g),
             other=lambda g, self, other, rounding_mode:
             -g * ((self / other) / other) if rounding_mode is None else aten.zeros_like(g))

neg = op("neg(Tensor self) -> Tensor", np.negative, promote="same", inplace=True, flops=_count)
neg.vjp(self=lambda g: -g)

reciprocal = op("reciprocal(Tensor self) -> Tensor", np.reciprocal, promote="float", inplace=True, flops=_count)
reciprocal.vjp(self=lambda g, result: g * -(result * result))

sqrt = op("sqrt(Tensor self) -> Tensor", np.sqrt, promote="float", inplace=True, flops=_count)
sqrt.vjp(self=lambda g, result: g / (2 * result))

exp = op("exp(Tensor self) -> Tensor", np.exp, promote="float", inplace=True, flops=_count)
exp.vjp(self=lambda g, result: g * result)

log = op("log(Tensor self) -> Tensor", np.log, promote="float", inplace=True, flops=_count)
log.vjp(self=lambda g, self: g / self)

sin = op("sin(Tensor self) -> Tensor", np.sin, promote="float", inplace=True, flops=_count)
sin.vjp(self=lambda g, self: g * self.cos())

cos = op("cos(Tensor self) -> Tensor", np.cos, promote="float", inplace=True, flops=_count)
cos.vjp(self=lambda g, self: g * -self.sin())

abs_ = op("abs(Tensor self) -> Tensor", np.abs, promote="same", inplace=True, flops=_count)
abs_.vjp(self=lambda g, self: g * self.sgn())

sgn = op("sgn(Tensor self) -> Tensor", np.sign, promote="same", inplace=True)
sgn.vjp(self=lambda g: aten.zeros_like(g))

sign = op("sign(Tensor self) -> Tensor", np.sign, promote="same", inplace=True)
sign.vjp(self=lambda g: aten.zeros_like(g))


@op("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", promote="same", promoted=("self", "exponent"),
    inplace=True, flops=_count)
def pow_scalar(self, exponent, out=None):
    if exponent == 2:
        return np.multiply(self, self, out)
    return np.power(self, exponent, out)


pow_scalar.vjp(self=lambda g, self, exponent: aten.zeros_like(g) if exponent == 0 else
               g * (self.pow(exponent - 1) * exponent))


pow_tensor = op("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", np.power, promote="same", inplace=True,
                node="PowBackward1", flops=_count)
pow_tensor.vjp(
    self=lambda g, self, exponent: g * aten.where(exponent == 0, 0.0, exponent * self.pow(exponent - 1)),
    exponent=lambda g, self, exponent, result:
    g * aten.where((self == 0) & (exponent >= 0), 0.0, result * self.log()))


@op("pow.Scalar(Scalar self, Tensor exponent) -> Tensor", promote="same", promoted=("self", "exponent"),
    node="PowBackward2", flops=_count)
def pow_base(self, exponent):
    return np.power(self, exponent)


pow_base.vjp(exponent=lambda g, self, result: g * (result * math.log(self)))


@op("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", inplace=True, node="ClampBackward1",
    shape=like_with_numbers)
def clamp(self, min, max, out=None):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    self = with_numbers(self, min, max)
    if min is None:
        return np.minimum(self, max, out)
    if max is None:
        return np.maximum(self, min, out)
    return np.minimum(np.maximum(self, min, out), max, out)


def _clamp_grad(g, self, min, max):
    if min is not None and max is not None:
        inside = (self >= min).logical_and_(self <= max)
    else:
        inside = self >= min if min is not None else self <= max
    return aten.where(inside, g, 0.0)


clamp.vjp(self=_clamp_grad)

maximum = op("maximum(Tensor self, Tensor other) -> Tensor", np.maximum, promote="same")
maximum.vjp(
    self=lambda g, self, other: aten.where(self == other, g / 2, g).masked_fill_(self < other, 0.0),
    other=lambda g, self, other: aten.where(self == other, g / 2, g).masked_fill_(self > other, 0.0))

minimum = op("minimum(Tensor self, Tensor other) -> Tensor", np.minimum, promote="same")
minimum.vjp(
    self=lambda g, self, other: aten.where(self == other, g / 2, g).masked_fill_(self > other, 0.0),
    other=lambda g, self, other: aten.where(self == other, g / 2, g).masked_fill_(self < other, 0.0))


# ---------------------------------------------------------------- several operands at once


@op("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", promote="same", inplace=True)
def addcmul(self, tensor1, tensor2, value, out=None):
    product = np.multiply(tensor1, tensor2)
    if value != 1:
        product = np.multiply(product, value)
    return np.add(self, product, out)


addcmul.vjp(self=lambda g: g, tensor1=lambda g, tensor2, value: g * (tensor2 * value),
            tensor2=lambda g, tensor1, value: g * (tensor1 * value))


@op("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", promote="float", inplace=True)
def addcdiv(self, tensor1, tensor2, value, out=None):
    ratio = np.divide(tensor1, tensor2)
    if value != 1:
        ratio = np.multiply(ratio, value)
    return np.add(self, ratio, out)


addcdiv.vjp(self=lambda g: g, tensor1=lambda g, tensor2, value: g * (value / tensor2),
            tensor2=lambda g, tensor1, tensor2, value: -g * ((tensor1 * value) / (tensor2 * tensor2)))


@op("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", promote="same", promoted=("self", "end"),
    inplace=True)
def lerp(self, end, weight, out=None):
    if weight < 0.5:
        return np.add(self, np.multiply(np.subtract(end, self), weight), out)
    return np.subtract(end, np.multiply(np.subtract(end, self), 1 - weight), out)


lerp.vjp(self=lambda g, weight: g * (1 - weight), end=lambda g, weight: g * weight)
