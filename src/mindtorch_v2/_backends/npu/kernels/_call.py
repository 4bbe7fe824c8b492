"""One call of an op on the device, and how a kernel is registered for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...._core import dtype as dt
from ...._core.keys import NPU
from ...._core.tensor import Tensor, storage_of
from ...._dispatch import registry
from ...._dispatch.promotion import as_number, computation_dtype
from ...._dispatch.registry import OpSpec
from ...._dispatch.result_types import result_type_of
from ...._dispatch.shape_rules import predicted
from .. import fallback, launch, tensors
from ..driver import driver
from ..errors import REFUSED_ARGUMENTS, NPUError
from ..placement import check_written, home, tensors_among
from ..streams import current_stream

Kernel = Callable[..., Any]
Dtypes = frozenset[np.dtype]


def _named(*dtypes: dt.dtype) -> Dtypes:
    return frozenset(each.np for each in dtypes)


MATRIX_FLOATS = _named(dt.float16, dt.bfloat16, dt.float32)  # what the matrix units multiply
FLOATS = MATRIX_FLOATS | _named(dt.float64)
NUMBERS = FLOATS | _named(dt.int8, dt.int16, dt.int32, dt.int64, dt.uint8)
COMPUTED = NUMBERS | _named(dt.bool_)


class Call:
    """The context of one kernel call: the device, memory for results, and CANN's operators."""

    __slots__ = ("args", "index", "op", "tensors")

    def __init__(self, op: OpSpec, args: tuple[Any, ...]) -> None:
        self.op = op
        self.args = args
        self.tensors = tensors_among(args)
        self.index = home(op, args, self.tensors)

    def outputs(self) -> list[np.ndarray]:
        """Fresh device arrays for the results, by the op's shape rule."""
        return [tensors.empty(shape, dtype, self.index) for shape, dtype in predicted(self.op, self.args)]

    def output(self) -> np.ndarray:
        """A fresh device array for the result of an op with one result."""
        (output,) = self.outputs()
        return output

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An uninitialized row-major array on the call's device."""
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

    def apart(self, array: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The array, or a copy if an operator that writes into `target` would change it before reading it."""
        read, written = ((launch.address(each), each.shape, each.strides) for each in (array, target))
        return array if read == written or not np.may_share_memory(array, target) else tensors.converted(array, array.dtype)

    def filled(self, value: Any, dtype: np.dtype) -> np.ndarray:
        """A number as an array without dims."""
        array = self.empty((), dtype)
        self.run("InplaceFillScalar", array, value)
        return array

    def cast(self, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """The array itself if it has the dtype, else a copy."""
        return array if array.dtype == dtype else tensors.converted(array, dtype)


def is_bool(value: Any) -> bool:
    """Whether an argument is a truth value or a tensor of them."""
    return isinstance(value, bool) or (isinstance(value, Tensor) and value._array.dtype == np.bool_)


def _as_operand(value: Any) -> Any:
    """A tensor of the device as it is, anything else as a number."""
    if isinstance(value, Tensor):
        return value if value._keys & NPU else value._array.item()
    return as_number(value)


def kernel(
    *names: str, needs: str | tuple[str, ...] = (), dtypes: Dtypes = COMPUTED, mixed: bool = False
) -> Callable[[Kernel], Kernel]:
    """Register `function(call, *args)` for ops; it returns arrays, or NotImplemented to have the CPU do it.

    The op also runs on the CPU, which may refuse it with torch's message, where the device cannot: without an operator
    that is needed (a card's library may lack it), for a first tensor that has none of `dtypes`, for tensors of several floating
    dtypes, unless the op promotes them or the kernel takes them `mixed`, and for arguments that an operator refuses.
    """
    wanted = (needs,) if isinstance(needs, str) else needs

    def register(function: Kernel) -> Kernel:
        for name in names:
            base, _, overload = name.partition(".")
            spec = registry.packets[base].overloads[overload]
            spec.kernel_for("npu")(_entry(spec, function, wanted, dtypes, mixed or spec.promote is not None))
        return function

    return register


def _entry(op: OpSpec, function: Kernel, needs: tuple[str, ...], dtypes: Dtypes, mixed: bool) -> Kernel:
    def run(*args: Any) -> Any:
        call = Call(op, args)
        check_written(op, args)
        if all(driver().has(operator) for operator in needs) and _suits(call, dtypes, mixed):
            try:
                result = function(call, *args)
            except NPUError as error:
                if error.error_code not in REFUSED_ARGUMENTS:
                    raise
                result = NotImplemented  # nothing was launched
            if result is not NotImplemented:
                return _finished(op, args, result)
        return fallback.run_on_cpu(op, args, call.index)

    return run


def _suits(call: Call, dtypes: Dtypes, mixed: bool) -> bool:
    """Whether the device computes with such arguments. Where all tensors are empty, the op runs on the CPU."""
    if any(isinstance(value, complex) for value in call.args):
        return False
    arrays = [tensor._array for tensor in call.tensors]
    if not arrays:
        return True
    if arrays[0].dtype not in dtypes or not any(array.size for array in arrays):
        return False
    present = {array.dtype for array in arrays}
    return present <= COMPUTED and (mixed or len(present & FLOATS) < 2)


def _finished(op: OpSpec, args: tuple[Any, ...], result: Any) -> Any:
    """A kernel's result for the caller: arrays become tensors, and an argument changed in place gets a new version."""
    if op.schema.mutates:
        storage_of(args[0]).version += 1
        return args[0]
    if isinstance(result, np.ndarray):
        return tensors.wrap(result)
    if isinstance(result, list):
        return [tensors.wrap(array) for array in result]
    if isinstance(result, tuple):
        outputs = [tensors.wrap(array) if isinstance(array, np.ndarray) else array for array in result]
        return result_type_of(op)(*outputs)
    return result
