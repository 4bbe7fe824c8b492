"""NumPy's complaints in torch's words: the op, the argument, and both shapes or dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.strides import is_dense
from .._core.tensor import Tensor
from .callers import is_method_call, only_a_method
from .facts import Promotion
from .registry import OpSpec


def type_name(value: Any) -> str:
    """How torch names a value's type in messages."""
    if isinstance(value, Tensor):
        return type(value).__name__ if type(value) is not Tensor else "Tensor"
    return type(value).__name__


def first_place(op: OpSpec, args: tuple[Any, ...]) -> int:
    """The number of an op's first argument in messages: that of a method stands before the dot, and has none."""
    schema = op.schema
    written = sum(value is not argument.default for argument, value in zip(schema.arguments, args, strict=True))
    return 0 if (op.packet is not None and only_a_method(op.packet)) or is_method_call(schema.name, written) else 1


def check_tensor_arguments(op: OpSpec, args: tuple[Any, ...]) -> None:
    """TypeError, as torch words it, for the first argument that should be a tensor and is not."""
    for position, (argument, value) in enumerate(zip(op.schema.arguments, args, strict=True)):
        if argument.is_tensor:
            if isinstance(value, Tensor) or (value is None and argument.optional):
                continue
            raise TypeError(
                f"{op.schema.name}(): argument '{argument.python_name}' (position "
                f"{position + first_place(op, args)}) must be Tensor, not {type_name(value)}"
            )
        if argument.is_tensor_list:
            _check_list(op, position, value)
            for index, item in enumerate(value):
                if not isinstance(item, Tensor) and not (item is None and "?" in argument.type_text):
                    raise TypeError(f"expected Tensor as element {index} in argument {position}, but got {type_name(item)}")


def check_listed(op: OpSpec, args: tuple[Any, ...]) -> None:
    """TypeError for a tensor in place of a list of tensors: its rows are no such list."""
    for position, (argument, value) in enumerate(zip(op.schema.arguments, args, strict=True)):
        if argument.is_tensor_list and isinstance(value, Tensor):
            _check_list(op, position, value)


def _check_list(op: OpSpec, position: int, value: Any) -> None:
    if not isinstance(value, list | tuple):
        raise TypeError(
            f"{op.schema.name}(): argument '{op.schema.arguments[position].python_name}' (position "
            f"{position + 1}) must be tuple of Tensors, not {type_name(value)}"
        )


def shapes_of(args: tuple[Any, ...]) -> list[tuple[int, ...]]:
    return [a._array.shape for a in args if isinstance(a, Tensor)]


def broadcast_mismatch(shapes: list[tuple[int, ...]]) -> str | None:
    """torch's message for shapes that do not broadcast, or None if they do."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        width = max(len(result), len(shape))
        a, b = (1,) * (width - len(result)) + result, (1,) * (width - len(shape)) + shape
        for dim in reversed(range(width)):
            if a[dim] != b[dim] and 1 not in (a[dim], b[dim]):
                return (
                    f"The size of tensor a ({a[dim]}) must match the size of tensor b ({b[dim]}) "
                    f"at non-singleton dimension {dim}"
                )
        result = tuple(m if n == 1 else n for n, m in zip(a, b, strict=True))
    return None


def torch_error(error: Exception) -> Exception:
    """`raise torch_error(ValueError(...))`: torch raises that very type, so it is not NumPy's complaint to translate."""
    error.__dict__["torch_error"] = True
    return error


def overlapping_write() -> RuntimeError:
    """For a write into an expanded tensor, whose elements share places."""
    return RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory "
        "location. Please clone() the tensor before performing the operation."
    )


def overlapping_input(target: np.ndarray, source: np.ndarray) -> None:
    """RuntimeError for a write into a part of an operand's memory; the very same elements are no harm, and as in torch,
    arrays with gaps are not looked into."""
    if not target.size or not source.size or not is_dense(target) or not is_dense(source):
        return
    start, begin = (array.__array_interface__["data"][0] for array in (target, source))
    stop, end = start + target.nbytes, begin + source.nbytes
    same = (start, stop, target.strides) == (begin, end, source.strides)
    if start < end and begin < stop and not same:
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )


def no_order() -> Exception:
    """For ops that bound their values, and complex numbers."""
    return NotImplementedError("clamp is not supported for complex types")


def not_implemented(op: OpSpec, kinds: list[dt.dtype]) -> Exception:
    """For an op that has no kernel for its operands' dtypes."""
    kind = next((k for k in kinds if k.is_complex), kinds[0])
    if kind.is_complex and op.complex_error is not None:
        return op.complex_error.kind(op.complex_error.message.format(op.schema.name.removesuffix("_")))
    return NotImplementedError(f"\"{op.kernel_name}\" not implemented for '{kind.scalar_name}'")


def translate(op: OpSpec, args: tuple[Any, ...], error: Exception) -> Exception:
    """The exception torch raises where a kernel failed with `error`; the same one where it is torch's already."""
    if (
        op.composite
        or "torch_error" in error.__dict__
        or (
            isinstance(error, RuntimeError | IndexError | NotImplementedError)
            and not isinstance(error, np.exceptions.AxisError)
        )
    ):
        return error
    if isinstance(error, np.exceptions.AxisError):
        ndim = max(error.ndim or 0, 1)
        return IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {error.axis})")
    if isinstance(error, ValueError) and "read-only" in str(error):
        return overlapping_write()
    if op.promoted:
        tensors = [a for n, a in zip(op.schema.arguments, args, strict=True) if n.name in op.promoted and isinstance(a, Tensor)]
        if isinstance(error, ValueError):
            message = broadcast_mismatch([t._array.shape for t in tensors])
            if message:
                return RuntimeError(message)
            if op.schema.mutates and len(tensors) > 1:
                whole = np.broadcast_shapes(*[t._array.shape for t in tensors])
                return RuntimeError(
                    f"output with shape {list(tensors[0]._array.shape)} doesn't match the broadcast shape {list(whole)}"
                )
        if isinstance(error, TypeError) and op.promote is Promotion.ONE:
            for argument, value in zip(op.schema.arguments, args, strict=True):
                if argument.name in op.promoted and value.dtype is not tensors[0].dtype:
                    return RuntimeError(
                        f"expected dtype {tensors[0].dtype.cpp_name} for `{argument.name}` but got dtype {value.dtype.cpp_name}"
                    )
        if isinstance(error, TypeError):
            return not_implemented(op, [dt.from_numpy(t._array.dtype) for t in tensors])
    if isinstance(error, ValueError | TypeError):
        shapes = ", ".join(map(str, map(list, shapes_of(args))))
        return RuntimeError(f"{op.schema.name}: {error} (input shapes: {shapes})")
    return error
