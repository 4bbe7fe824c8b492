"""Exponentials, logarithms, circular and hyperbolic functions, and the special functions."""

from __future__ import annotations

import math

import numpy as np

from .._dispatch.registry import aten, composite, op
from .pointwise import conj, count

# ---------------------------------------------------------------- exponentials and logarithms

exp = op("exp(Tensor self) -> Tensor", np.exp, promote="float", inplace=True, flops=count)
exp.vjp(self=lambda g, result: g * conj(result))

log = op("log(Tensor self) -> Tensor", np.log, promote="float", inplace=True, flops=count)
log.vjp(self=lambda g, self: g / conj(self))

sin = op("sin(Tensor self) -> Tensor", np.sin, promote="float", inplace=True, flops=count)
sin.vjp(self=lambda g, self: g * conj(self.cos()))

cos = op("cos(Tensor self) -> Tensor", np.cos, promote="float", inplace=True, flops=count)
cos.vjp(self=lambda g, self: g * -conj(self.sin()))
