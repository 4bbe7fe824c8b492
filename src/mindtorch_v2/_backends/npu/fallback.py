"""Ops without a kernel for the device run on the CPU: arguments are copied there and results back, with one warning per op."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from typing import Any

from ..._core.keys import NPU
from ..._core.storage import Storage
from ..._core.tensor import Tensor
from ..._dispatch.dispatcher import execute
from ..._dispatch.registry import OpSpec
from . import tensors
from .placement import check_written, tensors_among

# How often each op has run on the CPU instead.
counts: Counter[str] = Counter()


def run_on_cpu(op: OpSpec, args: tuple[Any, ...], index: int) -> Any:
    """Run an op on copies of its arguments; what it changes in place or returns is on the device again."""
    check_written(op, args)
    inputs = tensors_among(args)
    if not op.host_made and (not inputs or any(tensor._array.size for tensor in inputs)):
        _tell(op)  # empty tensors are not copied
    copies: dict[int, Tensor] = {}
    moved = tuple(_to_cpu(value, copies) for value in args)
    wanted = [None if a.type_text == "Device?" else value for a, value in zip(op.schema.arguments, moved, strict=True)]
    result = execute(op, tuple(wanted))
    if op.schema.mutates:
        for argument, value, copy in zip(op.schema.arguments, args, wanted, strict=True):
            if argument.written:
                _write_back(value, copy)
        return args[0]
    return _to_npu(result, index)


def _tell(op: OpSpec) -> None:
    name = op.name + (f".{op.schema.overload}" if op.schema.overload else "")
    if os.environ.get("MINDTORCH_NPU_FALLBACK") == "error":
        raise NotImplementedError(f"{name} has no NPU kernel, and MINDTORCH_NPU_FALLBACK=error forbids to run it on the CPU")
    counts[name] += 1
    if counts[name] == 1:
        warnings.warn(f"{name} has no NPU kernel: it runs on the CPU, with copies there and back", UserWarning, stacklevel=4)


def _to_cpu(value: Any, copies: dict[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        if not value._keys & NPU:
            return value
        if id(value) not in copies:
            copies[id(value)] = tensors.on_cpu(value)
        return copies[id(value)]
    if isinstance(value, list | tuple):
        return type(value)(_to_cpu(each, copies) for each in value)
    return value


def _write_back(value: Any, copy: Any) -> None:
    if isinstance(value, list | tuple):
        for target, changed in zip(value, copy, strict=True):
            _write_back(target, changed)
    elif isinstance(value, Tensor) and value._keys & NPU:
        tensors.assign(value._array, tensors.upload(copy._array, tensors.index_of(value)))
        storage: Storage = value._storage
        storage.version += 1


def _to_npu(result: Any, index: int) -> Any:
    if isinstance(result, Tensor):
        return tensors.wrap(tensors.upload(result._array, index))
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(_to_npu(each, index) for each in result))
    if isinstance(result, list | tuple):
        return type(result)(_to_npu(each, index) for each in result)
    return result
