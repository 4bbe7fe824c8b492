"""Calls with `out=`: the op computes as ever, and its results are stored in the tensors that the caller names."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.keys import AUTOGRAD, BACKENDS, LAZY, META, NPU
from .._core.layout import on_the_way
from .._core.resizing import resize_tensor
from .._core.storage import check_version
from .._core.strides import dense_steps
from .._core.tensor import Tensor, storage_of
from .._core.threads import threads
from . import entry_globals, observer, registry
from .dispatcher import dims_of_tensors, execute, keys_of, listed_keys, prepare, torch_exception, wrapped
from .errors import torch_error
from .facts import OutGrad
from .lazy_values import stored_values
from .out_checks import (
    check_apart_from,
    check_before_kernel,
    check_grad,
    check_iterated,
    check_writable,
    on_device,
    resize_warning,
    targets_of,
    tensors_in,
)
from .overloads import number_as_tensor
from .registry import OpSpec
from .result_types import result_type_of
from .shape_rules import predicted


def run_out(op: OpSpec, args: tuple[Any, ...], out: Any) -> Any:
    """Run an op with `out=`: compute, then store in that tensor (or tensors), which takes the result's shape.

    What is refused changes nothing, and what is done counts as one write, whether the tensor had its shape or took it. Every
    exception leaves this function marked as torch's: the slow path of the op's entry knows nothing of `out=`.
    """
    try:
        return _run_out(op, args, out)
    except entry_globals.KERNEL_ERRORS as error:
        if "torch_error" in error.__dict__:
            raise
        if isinstance(error, AttributeError | TypeError):
            numbers = dims_of_tensors(op, args)
            if numbers is not args:
                return run_out(op, numbers, out)
            handled = entry_globals.call_overloaded(op, args, out)
            if handled is not NotImplemented:
                return handled
        raise torch_error(torch_exception(op, args, error)) from None


def _run_out(op: OpSpec, args: tuple[Any, ...], out: Any) -> Any:
    for listener in observer.listeners.out:
        listener(op.id)
    targets = targets_of(op, out)
    for mode in threads.state.modes:
        mode.before_out(targets)
    if op.out_form is not None:
        return op.out_form(*args, out)
    args = number_as_tensor(op, args, {}) or args
    sources = tensors_in(args)
    keys = listed_keys(sources)
    tracked = threads.state.grad_enabled and (keys | listed_keys(targets)) & AUTOGRAD
    if tracked:
        check_grad(op, targets, sources)
    args = on_device(op, args, sources, keys, targets)
    store_out(op, args, targets, _compute_out(op, args, sources, targets))
    if tracked and op.out_grad is OutGrad.WRITTEN:
        entry_globals.record_unknown(op, (*args, *targets), targets)
    return out if len(op.schema.returns) == 1 else result_type_of(op, "_out")(*targets)


def store_out(op: OpSpec, args: tuple[Any, ...], targets: tuple[Tensor, ...], results: Sequence[Tensor]) -> None:
    """Write the results of an op into what its call has as `out=`: all of them, or none if one is refused."""
    for target, result in zip(targets, results, strict=True):
        check_apart_from(op, args, target, target._array.shape == result._array.shape)
        op.out_dtype(result.dtype, target.dtype)
    for target, result in zip(targets, results, strict=True):
        _write_out(op, target, result)


def _compute_out(op: OpSpec, args: tuple[Any, ...], sources: list[Tensor], targets: tuple[Tensor, ...]) -> Any:
    """The results of a call with `out=`, not yet stored."""
    if op.out_rule is not None:
        for target in targets:
            args = op.out_rule(op, args, target)
    if op.elementwise:
        for target in targets:
            check_iterated(op, args, sources, target)
    try:
        if threads.state.modes:
            results = entry_globals.run_modes(op, args)
        elif op.out_kernel is not None and not (keys_of(args) | targets[0]._keys) & (BACKENDS | LAZY):
            arrays = prepare(op, args)
            results = wrapped(op, args, arrays, op.out_kernel(*arrays, dtype=targets[0]._array.dtype))
        else:
            results = execute(op, args)
    except (NotImplementedError, TypeError):
        _check_before_kernel(op, args, targets)
        raise
    return results if isinstance(results, list | tuple) else (results,)


def _check_before_kernel(op: OpSpec, args: tuple[Any, ...], targets: tuple[Tensor, ...]) -> None:
    """What torch says of `out=` before it finds that an op has no kernel for its operands."""
    if op.promote is not None:
        check_before_kernel(op, args, targets[0])
    elif op.shape is not None:
        try:
            dtypes = [dt.from_numpy(np_dtype) for _, np_dtype in predicted(op, args)]
        except entry_globals.KERNEL_ERRORS:
            return
        for kind, target in zip(dtypes, targets, strict=True):
            op.out_dtype(kind, target.dtype)


def _write_out(op: OpSpec, target: Tensor, result: Tensor) -> None:
    """Write one result into its target, which takes its shape."""
    on_npu = (target._keys | result._keys) & NPU
    if on_npu and target.device != result.device:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{result.device} and {target.device}! (when running {op.name})"
        )
    check_version(storage_of(target))
    if (target._keys | result._keys) & LAZY:
        result = stored_values(result, target)
    array = result._array
    if target._array.shape != array.shape:
        if target._array.size:
            warnings.warn(resize_warning(target, array.shape), stacklevel=5)
        if on_npu:
            target.resize_(array.shape)
        else:
            resize_tensor(target, array.shape, dense_steps(array, target._array.itemsize))
        if target._keys & AUTOGRAD:
            entry_globals.refresh_accumulator(target)
    if on_npu:
        execute(registry.packets["copy_"].overloads[""], (target, result, False))
        return
    check_writable(target)
    if array.size and not target._keys & META:
        np.copyto(target._array, on_the_way(array, target._array.dtype), casting="unsafe")
    storage_of(target).version += 1


entry_globals.install(run_out=run_out)
