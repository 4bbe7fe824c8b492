"""What an op returns, before or without running it: shape, dtype and layout of its results."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.device import device as Device
from .._core.keys import META
from .._core.layout import channels_last_steps, has_channels_last, steps_like, steps_of_operands
from .._core.tensor import Tensor
from .entry_codegen import iterates
from .errors import broadcast_mismatch, depends_on_values
from .facts import Layout, Promotion
from .promotion import as_number, computation_dtype
from .registry import OpSpec


def meta_steps(op: OpSpec, args: tuple[Any, ...], shape: tuple[int, ...], np_dtype: np.dtype) -> tuple[int, ...] | None:
    """Byte strides of a result without memory, by the op's layout; None for a row-major one."""
    arrays = [arg._array for arg in args if isinstance(arg, Tensor)]
    if arrays and op.schema.arguments[-1].name == "memory_format" and arrays[0].shape == shape:
        return steps_like(arrays[0], np_dtype.itemsize, args[-1])
    if len(shape) < 2 or all(array.flags.c_contiguous for array in arrays):
        return None
    if op.layout is Layout.VOLUMES and len(shape) == 4:
        return None  # torch, too, does not look at one volume without memory
    if op.layout in (Layout.IMAGES, Layout.INPUT_IMAGES, Layout.VOLUMES):
        image = arrays[int(op.layout is Layout.INPUT_IMAGES)]
        like_it = len(shape) == image.ndim and has_channels_last(image)
        return channels_last_steps(shape, np_dtype.itemsize) if like_it else None
    if iterates(op) or op.layout is Layout.OPERANDS:
        return steps_of_operands(shape, np_dtype.itemsize, [array for array in arrays if array.ndim])
    return None


def check_one_device(op: OpSpec, args: tuple[Any, ...]) -> None:
    """RuntimeError for tensors with memory among those without. Single elements may have it anywhere, and so may indices: where
    they point to makes no difference to a shape."""
    expected: Device | None = None
    for argument, value in zip(op.schema.arguments, args, strict=True):
        tensors = value if isinstance(value, list | tuple) and argument.type_text != "Tensor?[]" else (value,)
        for tensor in tensors:
            if isinstance(tensor, Tensor) and (tensor._array.ndim or tensor._keys & META):
                device = tensor.device
                if expected is None:
                    expected = device
                elif device != expected:
                    raise RuntimeError(f"Tensor on device {device} is not on the expected device {expected}!")


def predicted(op: OpSpec, args: tuple[Any, ...]) -> list[tuple[tuple[int, ...], np.dtype]]:
    """Shape and dtype of each result of an op, by its shape rule: no kernel runs."""
    if op.shape is not None:
        results = op.shape(*args)
    elif op.promote is not None:
        results = _pointwise_shape(op, args)
    else:
        raise depends_on_values(
            NotImplementedError(
                f"{op.name}: what it returns depends on the values of its tensors, and tensors on the meta device have none"
            )
        )
    return [(tuple(shape), np_dtype) for shape, np_dtype in (results if isinstance(results, list) else [results])]


def _pointwise_shape(op: OpSpec, args: tuple[Any, ...]) -> tuple[tuple[int, ...], np.dtype]:
    """The shape rule of ops that promote their operands: these broadcast."""
    shapes = [a._array.shape for a in args if isinstance(a, Tensor)]
    mismatch = broadcast_mismatch(shapes)
    if mismatch is not None:
        raise RuntimeError(mismatch)
    operands = tuple(
        as_number(a)
        for argument, a in zip(op.schema.arguments, args, strict=True)
        if argument.name in op.promoted and a is not None
    )
    assert op.promote is not None
    wanted = dt.bool_ if op.promote is Promotion.COMPARE else computation_dtype(op.promote, operands)
    return np.broadcast_shapes(*shapes), wanted.np
