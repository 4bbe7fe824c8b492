"""FLOPs of a recording that has input shapes but no FLOPs: PyTorch counts FLOPs and leaves them out of its traces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..._whole import load_runtime
from ..assembly.flops import flops_of
from ..recording.op_facts import has_number_form
from ..store import tree
from ..store.store import EventStore, InputInfo

# The types that traces give arguments that are no tensors; a tensor has the name of its element type, or "" if unknown.
_NO_TENSOR = ("Scalar", "ScalarList", "GenericList")
_MOST = 1 << 53  # no call does more: the shapes of such a row are wrong


def flops_from_shapes(store: EventStore) -> NDArray[np.int64]:
    """FLOPs of every row: 0 where the inputs are not known or the op has no formula.

    0 as well inside an op that has one: torch's ops call others (`sum` calls another `sum`), whose FLOPs are in the outer
    op's count already.
    """
    load_runtime()  # the formulas are those of the ops
    counted = np.flatnonzero((store.kind == observer.OP) & (store.shapes >= 0))
    width = len(store.input_infos) + 1
    distinct, which = np.unique(store.name[counted].astype(np.int64) * width + store.shapes[counted], return_inverse=True)
    ops: dict[str, list[int]] = {}
    for op, name in enumerate(observer.op_names):
        ops.setdefault(name, []).append(op)
    amounts = [
        _flops(ops.get(store.names[name], []), store.input_infos[info])
        for name, info in zip(*(part.tolist() for part in np.divmod(distinct, width)), strict=True)
    ]
    flops = np.zeros(len(store), np.int64)
    if amounts:
        flops[counted] = np.array(amounts, np.int64)[which]
    flops[tree.nearest_ancestor(store.parent, flops > 0) >= 0] = 0
    return flops


def _flops(ops: list[int], inputs: InputInfo) -> int:
    """FLOPs of a call of one of these overloads: by the first that takes such inputs and has a formula for them."""
    for op, fitted in _that_take(ops, inputs):
        if 0 < (flops := flops_of(op, fitted)) < _MOST:
            return flops
    return 0


def _that_take(ops: list[int], inputs: InputInfo) -> Iterator[tuple[int, InputInfo]]:
    """The ops that take such inputs, with the inputs cut to their arguments; those with most arguments first."""
    arguments = {op: schema.arguments for op in ops if (schema := observer.op_schemas[op]) is not None}
    for op in sorted(arguments, key=lambda op: -len(arguments[op])):
        count = len(arguments[op])
        # What comes after the arguments is where the results go: `out=`.
        if count <= len(inputs.dims) and all(
            _may_be(argument, dims, kind) or _is_number_for_tensor(op, kind)
            for argument, dims, kind in zip(arguments[op], inputs.dims, inputs.types, strict=False)
        ):
            dims, types, strides, concrete, _ = inputs
            yield op, InputInfo(dims[:count], types[:count], strides[:count], concrete[:count])


def _is_number_for_tensor(op: int, kind: str) -> bool:
    return kind == "Scalar" and has_number_form(observer.op_schemas[op].name)


def _may_be(argument: Any, dims: Any, kind: str) -> bool:
    """Whether an input of these dims and this type may have been passed for the argument."""
    if argument.is_tensor:
        return kind not in _NO_TENSOR and all(type(size) is int for size in dims)
    if argument.is_tensor_list:
        return kind not in _NO_TENSOR and all(isinstance(shape, tuple) for shape in dims)
    return not dims and kind in ("", *_NO_TENSOR)
