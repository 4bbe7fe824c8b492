"""NumPy's complaints in torch's words: the op, the argument, and both shapes or dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.keys import BACKENDS
from .._core.out_of_memory import out_of_memory
from .._core.storage import check_version
from .._core.strides import is_dense
from .._core.tensor import Tensor
from .callers import is_method_call, only_a_method
from .entry_globals import KERNEL_ERRORS
from .facts import Promotion
from .promotion import is_number, rank
from .registry import OpSpec


def type_name(value: Any) -> str:
    """How torch names a value's type in messages."""
    if isinstance(value, Tensor):
        return type(value).__name__ if type(value) is not Tensor else "Tensor"
    if isinstance(value, np.generic):
        return f"numpy.{type(value).__name__}"
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
            raise _no_tensor(op, args, position)
        if argument.is_tensor_list:
            _check_list(op, position, value)
            for index, item in enumerate(value):
                if not isinstance(item, Tensor) and not (item is None and "?" in argument.type_text):
                    raise TypeError(f"expected Tensor as element {index} in argument {position}, but got {type_name(item)}")


def _no_tensor(op: OpSpec, args: tuple[Any, ...], position: int) -> TypeError:
    return TypeError(
        f"{op.schema.name}(): argument '{op.schema.arguments[position].python_name}' (position "
        f"{position + first_place(op, args)}) must be Tensor, not {type_name(args[position])}"
    )


def need_tensor(function: str, value: Any, argument: str = "input", position: int = 1) -> None:
    """The same for a function that is no op."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {type_name(value)}")


def check_listed(op: OpSpec, args: tuple[Any, ...]) -> None:
    """TypeError for a tensor in place of a list of tensors (its rows are no such list), or a list in place of a tensor."""
    for position, (argument, value) in enumerate(zip(op.schema.arguments, args, strict=True)):
        if argument.is_tensor_list and isinstance(value, Tensor):
            _check_list(op, position, value)
        if argument.is_tensor and isinstance(value, list | tuple):
            raise _no_tensor(op, args, position)


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


def depends_on_values(error: Exception, by_mask: bool = False) -> Exception:
    """`raise depends_on_values(error)`: a shape rule needs data that its tensors do not have, or which elements a mask has."""
    error.__dict__["depends_on_values"] = "mask" if by_mask else "data"
    return error


def overlapping_write() -> RuntimeError:
    """For a write into an expanded tensor, whose elements share places."""
    return RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory "
        "location. Please clone() the tensor before performing the operation."
    )


def overlapping_read() -> RuntimeError:
    """For a write into memory that an operand reads."""
    return RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
        "single memory location. Please clone() the tensor before performing the operation."
    )


def overlapping_input(target: np.ndarray, source: np.ndarray, same: bool = False) -> None:
    """RuntimeError for a write into a part of an operand's memory, or with `same` into all of it, too. As in torch, arrays with
    gaps and other arrays without elements are not looked into."""
    if same and source is target:
        raise overlapping_read()
    if not target.size or not source.size or not is_dense(target) or not is_dense(source):
        return
    start, begin = (array.__array_interface__["data"][0] for array in (target, source))
    stop, end = start + target.nbytes, begin + source.nbytes
    equal = (start, stop, target.strides) == (begin, end, source.strides)
    if start < end and begin < stop and (same or not equal):
        raise overlapping_read()


def repeats_memory(target: Tensor) -> bool:
    """Whether several elements of a tensor share one place, so that it must not be written into."""
    array = target._array
    if not array.size or array.flags.writeable or target._keys & BACKENDS:
        return False
    if target._storage is not None:
        check_version(target._storage)  # a lazy copy gets memory of its own
    return not target._array.flags.writeable


def may_share_memory(source: Tensor, target: Tensor) -> bool:
    """Whether two tensors have parts of one memory. A tensor that was never viewed has its own, and no storage."""
    one, other = source._storage, target._storage
    return one is not None and other is not None and one.owner is other.owner


def check_apart(target: Tensor, *sources: Tensor) -> None:
    """RuntimeError for a write into memory that is repeated, or that an operand reads: the order of the writes would show."""
    array = target._array
    if target._keys & BACKENDS:
        return
    if not array.flags.writeable:
        if target._storage is not None:
            check_version(target._storage)  # a lazy copy gets memory of its own, and with it another array
            array = target._array
        if not array.flags.writeable:
            raise overlapping_write()
    for source in sources:
        if source is target or may_share_memory(source, target):
            overlapping_input(array, source._array, same=True)


def no_order() -> Exception:
    """For ops that bound their values, and complex numbers."""
    return NotImplementedError("clamp is not supported for complex types")


def not_implemented(op: OpSpec, kinds: list[dt.dtype]) -> Exception:
    """For an op that has no kernel for its operands' dtypes."""
    kind = next((k for k in kinds if k.is_complex), kinds[0])
    if kind.is_complex and op.complex_error is not None:
        return op.complex_error.kind(op.complex_error.message.format(op.schema.name.removesuffix("_")))
    return NotImplementedError(f"\"{op.kernel_name}\" not implemented for '{kind.scalar_name}'")


def operands_of(op: OpSpec, args: tuple[Any, ...]) -> list[Any]:
    """The arguments that are promoted to one dtype."""
    return [a for n, a in zip(op.schema.arguments, args, strict=True) if n.name in op.promoted and a is not None]


def _computed(op: OpSpec, args: tuple[Any, ...]) -> dt.dtype:
    """The dtype of all operands together."""
    return dt.result_type(*[rank(one) for one in operands_of(op, args) if isinstance(one, Tensor) or is_number(one)])


def refuses_complex(op: OpSpec, args: tuple[Any, ...]) -> bool:
    """Whether an op that has words of its own against complex numbers gets one."""
    if op.complex_error is None:
        return False
    operands = args[:1] if op.complex_error.first else args
    return any(isinstance(one, Tensor) and one.is_complex() for one in operands)


def refused_before_kernel(op: OpSpec, args: tuple[Any, ...]) -> Exception | None:
    """What torch has against operands of a pointwise op before any kernel sees their dtypes."""
    operands = operands_of(op, args)
    shapes = shapes_of(tuple(operands))
    if not all(isinstance(one, Tensor) or is_number(one) for one in operands) or not shapes:
        return None
    if refuses_complex(op, args):
        return not_implemented(op, [_computed(op, args)])
    if op.schema.mutates and repeats_memory(args[0]):
        return overlapping_write()
    message = broadcast_mismatch(shapes)
    if message:
        return RuntimeError(message)
    if not op.schema.mutates:
        return None
    whole, target = np.broadcast_shapes(*shapes), args[0]
    if whole != shapes[0]:
        return RuntimeError(f"output with shape {list(shapes[0])} doesn't match the broadcast shape {list(whole)}")
    if op.promote is Promotion.COMPARE:  # truths fit anywhere
        return None
    computed = _computed(op, args)
    if not dt.can_cast(computed, target.dtype):
        return RuntimeError(
            f"result type {computed.scalar_name} can't be cast to the desired output type {target.dtype.scalar_name}"
        )
    return None


_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def _sizes(op: OpSpec, args: tuple[Any, ...]) -> list[int] | None:
    """The first list of integers among an op's arguments."""
    lists = (list(v) for a, v in zip(op.schema.arguments, args, strict=True) if a.is_int_list and isinstance(v, list | tuple))
    return next(lists, None)


def _too_wide(op: OpSpec, args: tuple[Any, ...]) -> Exception | None:
    """What torch raises for the first integer of more than 64 bits among an op's arguments, or None."""
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if argument.is_int_list and isinstance(value, list | tuple):
            for place, item in enumerate(value, 1):
                if isinstance(item, int) and not _LEAST <= item <= _MOST:
                    if len(value) == 1 and not argument.type_text.startswith("int[]"):
                        return ValueError("Overflow when unpacking long long")
                    return TypeError(
                        f"{op.schema.name}(): argument '{argument.python_name}' failed to unpack the object at pos {place} "
                        'with error "Overflow when unpacking long long"'
                    )
        elif isinstance(value, int):
            whole = argument.type_text.startswith("int")
            if not _LEAST <= value <= (_MOST if whole else 2 * _MOST + 1):
                return ValueError("Overflow when unpacking long long") if whole else OverflowError("int too big to convert")
    return None


def _out_of_range(op: OpSpec, args: tuple[Any, ...], error: OverflowError) -> Exception:
    """What torch raises for a number that is too wide: for 64 bits, for a dim, or for the dtype it is to be stored in."""
    too_wide = _too_wide(op, args)
    if too_wide is not None:
        return too_wide
    ndim = max(next((len(shape) for shape in shapes_of(args)), 0), 1)
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if argument.name.startswith("dim"):
            for dim in value if isinstance(value, list | tuple) else (value,):
                if isinstance(dim, int) and not -ndim <= dim < ndim:
                    return IndexError(
                        f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
                    )
    bounded = str(error).partition("out of bounds for ")[2]
    name = "int" if bounded == "int32" else f"{bounded or 'int64'}_t"
    return RuntimeError(f"value cannot be converted to type {name} without overflow")


def _without_dims(op: OpSpec, args: tuple[Any, ...]) -> IndexError | None:
    """torch's words for a dim of a tensor that has none, which is where kernels divide by the number of dims."""
    if () not in shapes_of(args):
        return None
    for argument, value in zip(op.schema.arguments, args, strict=True):
        dim = value[0] if isinstance(value, list | tuple) and value else value
        if argument.name.startswith("dim") and isinstance(dim, int):
            return IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return None


# What NumPy says of arrays that no memory can hold.
_TOO_BIG = (
    "array is too big",
    "Maximum allowed dimension exceeded",
    "Maximum allowed size exceeded",
    "maximum supported dimension",
    "too many elements",
)


def _impossible_size(op: OpSpec, args: tuple[Any, ...], error: ValueError) -> Exception | None:
    """torch's words for a shape that no memory could have; None where the error is about something else."""
    text, sizes = str(error), _sizes(op, args)
    if text.startswith(_TOO_BIG):
        if sizes and op.schema.is_view and math.prod(sizes) > _MOST:
            return _too_wide(op, args) or RuntimeError("numel: integer multiplication overflow")
        overflowed = RuntimeError("Storage size calculation overflowed" + (f" with sizes={sizes}" if sizes else ""))
        return _too_wide(op, args) or overflowed
    if "negative dimensions" in text and sizes and min(sizes) < 0:
        return RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {sizes}")
    return None


def _about_shapes(op: OpSpec, args: tuple[Any, ...], error: ValueError) -> Exception | None:
    """torch's words for a ValueError about memory that may not be written, or broadcasting; None for any other."""
    if "read-only" in str(error):
        return overlapping_write()
    if op.promoted or "broadcast" not in str(error):
        return None
    mismatch = broadcast_mismatch(shapes_of(args))
    return None if mismatch is None else RuntimeError(mismatch)


def _about_operands(op: OpSpec, args: tuple[Any, ...], error: Exception) -> Exception | None:
    """torch's words for operands that NumPy cannot combine: by their shapes (ValueError) or dtypes (TypeError)."""
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
    if isinstance(error, TypeError) and op.promote in (Promotion.ONE, Promotion.WEIGHT):
        for place, (argument, value) in enumerate(zip(op.schema.arguments, args, strict=True), 1):
            is_weight = op.promote is Promotion.WEIGHT and place == len(args)
            if argument.name not in op.promoted or (is_weight and not value.ndim):
                continue
            if value.dtype is not tensors[0].dtype:
                return RuntimeError(
                    f"expected dtype {tensors[0].dtype.cpp_name} for `{argument.name}` but got dtype {value.dtype.cpp_name}"
                )
    return not_implemented(op, [_computed(op, args)]) if isinstance(error, TypeError) and tensors else None


def translate(op: OpSpec, args: tuple[Any, ...], error: Exception) -> Exception:
    """The exception torch raises where a kernel failed with `error`; the same one where it is torch's already."""
    is_repeated = isinstance(error, ValueError) and "read-only" in str(error)
    if op.promoted and not op.composite and (is_repeated or isinstance(error, NotImplementedError | TypeError)):
        # torch's kernels look at dtypes last: operands must broadcast, and a target must be able to hold the result.
        earlier = refused_before_kernel(op, args)
        if earlier is not None:
            return earlier
    if "torch_error" in error.__dict__:
        return error
    if isinstance(error, MemoryError):
        return out_of_memory(error)
    if isinstance(error, OverflowError):
        return error if str(error) == "int too big to convert" else _out_of_range(op, args, error)
    if isinstance(error, np.exceptions.AxisError):
        ndim = max(error.ndim or 0, 1)
        return IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {error.axis})")
    plain: Exception | None = _without_dims(op, args) if isinstance(error, ZeroDivisionError) else None
    if isinstance(error, ValueError):
        plain = _impossible_size(op, args, error)
    if plain is not None:
        return plain
    # What a composite raises comes from the ops that it is made of, but for exceptions of NumPy's own classes.
    if (op.composite and not type(error).__module__.startswith("numpy")) or isinstance(error, RuntimeError | IndexError):
        return error
    found = _about_shapes(op, args, error) if isinstance(error, ValueError) else None
    if found is None and op.promoted:
        found = _about_operands(op, args, error)
    if found is None and isinstance(error, KERNEL_ERRORS):
        shapes = ", ".join(map(str, map(list, shapes_of(args))))
        found = RuntimeError(f"{op.schema.name}: {error} (input shapes: {shapes})")
    return found or error
