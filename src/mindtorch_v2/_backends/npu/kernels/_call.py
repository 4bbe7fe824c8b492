"""One call of an op on the device, and how a kernel is registered for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...._core.keys import NPU
from ...._core.tensor import Tensor, storage_of
from ...._dispatch import registry
from ...._dispatch.dispatcher import predicted, result_type_of
from ...._dispatch.promotion import as_number, computation_dtype
from ...._dispatch.registry import OpSpec
from .. import fallback, launch, tensors
from ..driver import driver
from ..placement import home, tensors_among
from ..streams import current_stream

Kernel = Callable[..., Any]
FLOATS = "fV"  # bfloat16, which NumPy does not know, is of kind V
NUMBERS = FLOATS + "iu"
COMPUTED_KINDS = NUMBERS + "b"


class Call:
    """What a kernel needs beside the op's arguments: the device, room for results, and a way to run operators."""

    __slots__ = ("args", "index", "op")

    def __init__(self, op: OpSpec, args: tuple[Any, ...]) -> None:
        self.op = op
        self.args = args
        self.index = home(op, args)

    def outputs(self) -> list[np.ndarray]:
        """Fresh device arrays for the results, by the op's shape rule."""
        return [tensors.empty(shape, dtype, self.index) for shape, dtype in predicted(self.op, self.args)]

    def output(self) -> np.ndarray:
        """The same for an op with one result."""
        (made,) = self.outputs()
        return made

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """A fresh device array."""
        return tensors.empty(shape, dtype, self.index)

    def run(self, operator: str, *arguments: Any) -> None:
        """Put an operator of CANN into the current stream; arguments in CANN's order, results included."""
        stream = current_stream(self.index)
        for value in arguments:
            for array in value if isinstance(value, list) else (value,):
                if isinstance(array, np.ndarray):
                    tensors.used_by(stream, array)
        launch.launch(operator, *arguments, stream=stream)

    def operands(self, *values: Any) -> list[Any]:
        """Promoted operands: device arrays of the dtype the op computes in, numbers as they are. A CPU scalar is a number."""
        plain = [_as_operand(value) for value in values]
        if self.op.promote is None:
            return [value._array if isinstance(value, Tensor) else value for value in plain]
        target = computation_dtype(self.op.promote, tuple(values)).np
        return [self.cast(value._array, target) if isinstance(value, Tensor) else value for value in plain]

    def filled(self, value: Any, dtype: np.dtype) -> np.ndarray:
        """A number as an array without dims."""
        made = self.empty((), dtype)
        self.run("InplaceFillScalar", made, value)
        return made

    def cast(self, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """The array itself if it has the dtype, else a copy."""
        return array if array.dtype == dtype else tensors.converted(array, dtype)


def _as_operand(value: Any) -> Any:
    """A tensor of the device as it is, anything else as a number."""
    if isinstance(value, Tensor):
        return value if value._keys & NPU else value._array.item()
    return as_number(value)


def kernel(*names: str, needs: str | tuple[str, ...] = (), kinds: str = COMPUTED_KINDS) -> Callable[[Kernel], Kernel]:
    """Register `function(call, *args)` for ops; it returns arrays, or NotImplemented to have the CPU do it.

    needs: operators without which the CPU does it, on a card whose library lacks them. kinds: the NumPy kinds of dtype that
    the first tensor may have; the CPU does the others, or says in torch's words why nobody does.
    """
    wanted = (needs,) if isinstance(needs, str) else needs

    def register(function: Kernel) -> Kernel:
        for name in names:
            base, _, overload = name.partition(".")
            spec = registry.packets[base].overloads[overload]
            spec.kernel_for("npu")(_entry(spec, function, wanted, kinds))
        return function

    return register


def _entry(op: OpSpec, function: Kernel, needs: tuple[str, ...], kinds: str) -> Kernel:
    def run(*args: Any) -> Any:
        call = Call(op, args)
        if all(driver().has(operator) for operator in needs) and _suits(args, kinds):
            result = function(call, *args)
            if result is not NotImplemented:
                return _finished(op, args, result)
        return fallback.run_on_cpu(op, args, call.index)

    return run


def _suits(args: tuple[Any, ...], kinds: str) -> bool:
    """Whether the device computes with such arguments. What an op makes of nothing at all, or refuses, the CPU knows."""
    arrays = [value._array for value in tensors_among(args)]
    if any(isinstance(value, complex) for value in args) or not all(tensors.computes(array.dtype) for array in arrays):
        return False
    return not arrays or arrays[0].dtype.kind in kinds and any(array.size for array in arrays)


def _finished(op: OpSpec, args: tuple[Any, ...], result: Any) -> Any:
    """What a kernel made, as the caller wants it: arrays become tensors, a changed argument has a new version."""
    if op.schema.mutates:
        storage_of(args[0]).version += 1
        return args[0]
    if isinstance(result, np.ndarray):
        return tensors.wrap(result)
    if isinstance(result, list):
        return [tensors.wrap(array) for array in result]
    if isinstance(result, tuple):
        made = [tensors.wrap(array) if isinstance(array, np.ndarray) else array for array in result]
        return result_type_of(op)(*made)
    return result
