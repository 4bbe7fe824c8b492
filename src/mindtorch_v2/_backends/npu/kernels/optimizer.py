"""Arithmetic in place: what optimizers are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._core.keys import NPU
from ...._core.tensor import Tensor
from ...._dispatch.errors import broadcast_mismatch
from .. import tensors
from ._call import FLOATS, NUMBERS, Call, is_bool, kernel


def _operand(call: Call, value: Any, target: np.ndarray) -> Any:
    """A number, or an array of the target's dtype that writing into the target leaves as it is."""
    if isinstance(value, Tensor):
        return call.apart(call.cast(value._array, target.dtype), target) if value._keys & NPU else value._array.item()
    return value


def _keeps(self: Any, *others: Any) -> bool:
    """Whether the result fits: in-place arithmetic neither widens a dtype nor grows a shape."""
    arrays = [other._array for other in others if isinstance(other, Tensor)]
    shape, dtype = self._array.shape, self._array.dtype
    whole = all(isinstance(other, int) or (isinstance(other, Tensor) and other._array.dtype.kind in "iu") for other in others)
    if broadcast_mismatch([shape, *(a.shape for a in arrays)]) is not None:
        return False
    return (dtype in FLOATS or (dtype in NUMBERS and whole)) and np.broadcast_shapes(shape, *(a.shape for a in arrays)) == shape


def _in_place(name: str, with_tensor: str, with_number: str) -> None:
    @kernel(f"{name}.Tensor", f"{name}.Scalar", needs=(with_tensor, with_number))
    def run(call: Call, self: Any, other: Any, *alpha: Any) -> Any:
        refused = any(map(is_bool, (other, *alpha) if name == "sub_" else alpha))
        if refused or not _keeps(self, other, *alpha) or (name == "div_" and self._array.dtype not in FLOATS):
            return NotImplemented
        value = _operand(call, other, self._array)
        call.run(with_tensor if isinstance(value, np.ndarray) else with_number, self._array, value, *alpha)
        return self


for _name in ("add_", "sub_", "mul_", "div_"):
    _operator = f"Inplace{_name[:-1].title()}"
    _in_place(_name, _operator, f"{_operator}s")


def _with_two(name: str, operator: str) -> None:
    @kernel(name, needs=operator)
    def run(call: Call, self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
        if not _keeps(self, tensor1, tensor2) or self._array.dtype not in FLOATS:
            return NotImplemented
        first, second = (_operand(call, each, self._array) for each in (tensor1, tensor2))
        if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
            return NotImplemented
        call.run(operator, self._array, first, second, value)
        return self


_with_two("addcmul_", "InplaceAddcmul")
_with_two("addcdiv_", "InplaceAddcdiv")


@kernel("lerp_.Scalar", needs="InplaceLerps", dtypes=FLOATS)
def lerp_(call: Call, self: Any, end: Any, weight: Any) -> Any:
    if not _keeps(self, end):
        return NotImplemented
    call.run("InplaceLerps", self._array, _operand(call, end, self._array), weight)
    return self


@kernel("addcmul", needs="Addcmul")
def addcmul(call: Call, self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    return _out_of_place(call, "Addcmul", self, tensor1, tensor2, value)


@kernel("addcdiv", needs="Addcdiv")
def addcdiv(call: Call, self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    return _out_of_place(call, "Addcdiv", self, tensor1, tensor2, value)


def _out_of_place(call: Call, operator: str, self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    operands = call.operands(self, tensor1, tensor2)
    if not all(isinstance(each, np.ndarray) and each.dtype in FLOATS for each in operands):
        return NotImplemented
    out = call.output()
    call.run(operator, *operands, value, out)
    return out


@kernel("sqrt_", needs="Sqrt", dtypes=FLOATS)
def sqrt_(call: Call, self: Any) -> Any:
    roots = call.empty(self._array.shape, self._array.dtype)
    call.run("Sqrt", self._array, roots)
    tensors.assign(self._array, roots)
    return self


@kernel("relu_", needs="InplaceRelu", dtypes=NUMBERS)
def relu_(call: Call, self: Any) -> Any:
    call.run("InplaceRelu", self._array)
    return self
