"""Arithmetic, comparisons and activations, element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._core.keys import NPU
from ._call import COMPUTED, FLOATS, NUMBERS, Call, is_bool, kernel

_UNARY = {
    "neg": "Neg", "abs": "Abs", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "rsqrt": "Rsqrt", "reciprocal": "Reciprocal",
    "tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu", "logical_not": "LogicalNot",
}  # fmt: skip
# op -> the operators for two tensors, and for a tensor and a number
_BINARY = {
    "mul.Tensor": ("Mul", "Muls"), "mul.Scalar": ("Mul", "Muls"), "div.Tensor": ("Div", "Divs"), "div.Scalar": ("Div", "Divs"),
    **{f"{name}.Tensor": (f"{name.title()}Tensor", f"{name.title()}Scalar") for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}  # fmt: skip
_NOT_OF_BOOLS = ("neg", "relu")
_SCALED = {"add": ("Add", "Adds"), "sub": ("Sub", "Subs")}
_BACKWARD = {"tanh_backward": "TanhBackward", "sigmoid_backward": "SigmoidBackward"}


def _unary(operator: str) -> Any:
    def run(call: Call, self: Any) -> np.ndarray:
        (x,), out = call.operands(self), call.output()
        call.run(operator, x, out)
        return out

    return run


def _binary(operators: tuple[str, str]) -> Any:
    with_tensor, with_number = operators

    def run(call: Call, self: Any, other: Any) -> Any:
        x, y = call.operands(self, other)
        if not isinstance(x, np.ndarray):
            if with_tensor != "Mul":
                return NotImplemented
            x, y = y, x  # a number times a tensor
        out = call.output()
        call.run(with_tensor if isinstance(y, np.ndarray) else with_number, x, y, out)
        return out

    return run


def _scaled(operators: tuple[str, str]) -> Any:
    with_tensor, with_number = operators

    def run(call: Call, self: Any, other: Any, alpha: Any) -> Any:
        if is_bool(alpha) or (with_tensor == "Sub" and (is_bool(self) or is_bool(other))):
            return NotImplemented
        x, y = call.operands(self, other)
        if not isinstance(x, np.ndarray) or (x.dtype not in FLOATS and not isinstance(alpha, int)):
            return NotImplemented
        out = call.output()
        call.run(with_tensor if isinstance(y, np.ndarray) else with_number, x, y, alpha, out)
        return out

    return run


for _op, _operator in _UNARY.items():
    kernel(_op, needs=_operator, dtypes=NUMBERS if _op in _NOT_OF_BOOLS else COMPUTED)(_unary(_operator))
for _op, _operators in _BINARY.items():
    kernel(_op, needs=_operators)(_binary(_operators))
for _op, _operators in _SCALED.items():
    kernel(f"{_op}.Tensor", f"{_op}.Scalar", needs=_operators)(_scaled(_operators))


@kernel("maximum", needs="Maximum")
def maximum(call: Call, self: Any, other: Any) -> Any:
    return _two_tensors(call, "Maximum", self, other)


@kernel("minimum", needs="Minimum")
def minimum(call: Call, self: Any, other: Any) -> Any:
    return _two_tensors(call, "Minimum", self, other)


@kernel("logical_and", needs="LogicalAnd")
def logical_and(call: Call, self: Any, other: Any) -> Any:
    return _two_tensors(call, "LogicalAnd", self, other)


def _two_tensors(call: Call, operator: str, *values: Any) -> Any:
    operands = call.operands(*values)
    if not all(isinstance(each, np.ndarray) for each in operands):
        return NotImplemented
    out = call.output()
    call.run(operator, *operands, out)
    return out


@kernel("pow.Tensor_Scalar", needs="PowTensorScalar")
def power(call: Call, self: Any, exponent: Any) -> Any:
    x, n = call.operands(self, exponent)
    if x.dtype not in FLOATS and n < 0:
        return NotImplemented
    out = call.output()
    call.run("PowTensorScalar", x, n, out)
    return out


@kernel("clamp", needs="Clamp")
def clamp(call: Call, self: Any, min: Any, max: Any) -> Any:
    # A bound that is no number makes every element of the result none, which CANN does not promise.
    if min is max is None or min != min or max != max:
        return NotImplemented
    out = call.output()
    call.run("Clamp", call.cast(self._array, out.dtype), min, max, out)
    return out


@kernel("clamp_min", needs="Clamp")
def clamp_min(call: Call, self: Any, min: Any) -> Any:
    return clamp(call, self, min, None)


@kernel("where.self", needs="SWhere")
def where(call: Call, condition: Any, self: Any, other: Any) -> Any:
    if condition._array.dtype != np.bool_ or not condition._keys & NPU:
        return NotImplemented
    out = call.output()
    values = [
        call.filled(each, out.dtype) if not isinstance(each, np.ndarray) else call.cast(each, out.dtype)
        for each in call.operands(self, other)
    ]
    call.run("SWhere", condition._array, *values, out)
    return out


@kernel("isneginf", needs="EqScalar", dtypes=FLOATS)
def isneginf(call: Call, self: Any) -> np.ndarray:
    out = call.empty(self._array.shape, np.dtype(np.bool_))
    call.run("EqScalar", self._array, -math.inf, out)
    return out


@kernel("threshold_backward", needs="ThresholdBackward", dtypes=FLOATS)
def threshold_backward(call: Call, grad_output: Any, self: Any, threshold: Any) -> np.ndarray:
    out = call.output()
    call.run("ThresholdBackward", grad_output._array, self._array, threshold, out)
    return out


@kernel("gelu", needs="GeluV2", dtypes=FLOATS)
def gelu(call: Call, self: Any, approximate: str) -> Any:
    if approximate not in ("none", "tanh"):
        return NotImplemented
    out = call.output()
    call.run("GeluV2", self._array, int(approximate == "tanh"), out)
    return out


@kernel("gelu_backward", needs="GeluBackwardV2", dtypes=FLOATS)
def gelu_backward(call: Call, grad_output: Any, self: Any, approximate: str) -> Any:
    if approximate not in ("none", "tanh"):
        return NotImplemented
    out = call.output()
    call.run("GeluBackwardV2", grad_output._array, self._array, approximate, out)
    return out


def _from_result(operator: str) -> Any:
    def run(call: Call, grad_output: Any, output: Any) -> np.ndarray:
        out = call.output()
        call.run(operator, grad_output._array, output._array, out)
        return out

    return run


for _op, _operator in _BACKWARD.items():
    kernel(_op, needs=_operator, dtypes=FLOATS)(_from_result(_operator))
