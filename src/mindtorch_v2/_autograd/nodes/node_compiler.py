"""Compiles plans: for each op one function that leaves the node of a call (`record`), and for each set of inputs that
require grad one that computes gradients (`run`), both when they are first needed. `node_codegen` writes their source.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Sequence
from typing import Any

from ..._core import dtype as dt
from ..._core.code_cache import compiled
from ..._core.keys import AUTOGRAD
from ..._core.tensor import Tensor
from ..._dispatch import observer
from ..._dispatch.dispatcher import listed_keys
from ..._dispatch.registry import aten
from .derivative import Derivative, Plan, needs_of
from .node import Node
from .node_codegen import make_source, record_source, run_source
from .saved import freed, fresh_storage, save_list, unpack_list, unpack_one, unpack_result, unpack_saved

# Up to this many inputs, every set of inputs that may require grad gets its own lines in one `record`. Beyond it only the set
# of the first input alone does, and any other set gets a function of its own when it first occurs.
_WRITTEN_OUT = 2

_F32 = dt.float32.np
_FOLDER = os.path.dirname(os.path.abspath(__file__))


# ---------------------------------------------------------------- names that compiled functions use


def _requires_any(values: Sequence[Any] | None) -> int:
    """1 if a tensor in a list of tensors and None requires grad, else 0."""
    for value in values or ():
        if value is not None and value._keys & AUTOGRAD:
            return 1
    return 0


def _edges_of(values: Sequence[Any] | None) -> list[Any]:
    return [(v._node, v._output_nr) if v is not None and v._keys & AUTOGRAD else None for v in values or ()]


def _shape_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._array.shape
    return None if value is None or not isinstance(value, list | tuple) else [_shape_of(v) for v in value]


def _spread(values: Any, count: int) -> Sequence[Any]:
    """The gradients of a list of tensors; None for each where a formula returned None for the list."""
    return [None] * count if values is None else values


def _link(node: Node, outputs: Sequence[Any]) -> None:
    """Set the history of a list of outputs, except for those that are not floating point."""
    forms: list[Any] = []
    for number, output in enumerate(outputs):
        if output is None:
            forms.append(None)
        else:
            array = output._array
            dtype = array.dtype
            forms.append((array.shape, dtype))
            if dtype is _F32 or dtype.kind in "fcVW":
                output._keys |= AUTOGRAD
                output._node = node
                output._output_nr = number
    node.inputs = forms


def _not_differentiable(function: str, argument: str) -> RuntimeError:
    return RuntimeError(
        f"The function '{function}' is not differentiable with respect to argument '{argument}'. This input "
        "cannot have requires_grad True."
    )


def _no_history(result: Tensor) -> RuntimeError:
    return RuntimeError(f"Autograd not support dtype: {result.dtype.scalar_name}")


def _original(target: Tensor) -> Tensor:
    """A copy, with history, of a tensor that is about to be overwritten."""
    copied: Tensor = aten.clone(target)
    return copied


_NAMES: dict[str, Any] = {
    "Tensor": Tensor,
    "isinstance": isinstance,
    "fresh_storage": fresh_storage,
    "requires_any": _requires_any,
    "no_history": _no_history,
    "listed_keys": listed_keys,
    "edges_of": _edges_of,
    "shape_of": _shape_of,
    "spread": _spread,
    "link": _link,
    "original": _original,
    "not_differentiable": _not_differentiable,
    "freed": freed,
    "save_list": save_list,
    "unpack_list": unpack_list,
    "unpack_one": unpack_one,
    "unpack_result": unpack_result,
    "unpack_saved": unpack_saved,
    "dtype_of": dt.from_numpy,
    "f32": _F32,
    "list": list,
    "tuple": tuple,
    "len": len,
    "any": any,
}


# ---------------------------------------------------------------- compiling


def _compile(derivative: Derivative, what: str, tag: str, source: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function `what` of a source; tracebacks show its lines, under a file name with the op and `tag`."""
    begun = observer.clock()
    op = derivative.op
    # In this folder, so that whatever tells the runtime's frames by their path counts it among them.
    overload = "." + op.schema.overload if op.schema.overload else ""
    filename = os.path.join(_FOLDER, f"<{what} {op.name}{overload}{tag}>")
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    space = {**_NAMES, "NodeType": derivative.node_type, **names}
    exec(compiled(source, filename), space)
    function: Callable[..., Any] = space[what]
    observer.note_first_use(op.name, begun)
    return function


def _compile_run(plan: Plan, wanted: int) -> Callable[..., Any]:
    """run(node, gradients, retain_graph) of a plan, for the gradients in `wanted`."""
    names: dict[str, Any] = {f"f{position}": formula for position, formula, _ in plan.formulas}
    names.update(joint=plan.derivative.joint, NEEDS=needs_of(wanted, len(plan.derivative.arguments)))
    return _compile(plan.derivative, "run", f" {wanted:b}", run_source(plan, wanted), names)


def plan_for(derivative: Derivative, mask: int) -> Plan:
    """The plan of a derivative for the inputs in `mask`; its `run` compiles itself at the first call."""
    plan = derivative.plans.get(mask)
    if plan is None:
        new = derivative.plans[mask] = plan = derivative.lay_out(mask)

        def first_run(node: Node, grads: Any, retain: bool) -> Any:
            new.run = _compile_run(new, mask)
            return new.run(node, grads, retain)

        plan.run = first_run
    return plan


def partial_run(plan: Plan, wanted: int) -> Callable[..., Any]:
    """A plan's `run` that computes only the gradients in `wanted`, for a backward pass with targets."""
    wanted &= plan.mask
    if wanted == plan.mask:
        return plan.run
    run = plan.parts.get(wanted)
    if run is None:
        run = plan.parts[wanted] = _compile_run(plan, wanted)
    return run


def make_for(derivative: Derivative, mask: int) -> Callable[..., Any]:
    """make(args, state) of an in-place op, for the inputs in `mask`."""
    plan = plan_for(derivative, mask)
    if plan.make is None:
        plan.make = _compile(derivative, "make", f" {mask:b}", make_source(plan), {f"plan_{mask}": plan})
    return plan.make


def compile_record(derivative: Derivative) -> Callable[..., None]:
    """record(args, result, state) of an op, which leaves the node of a call."""
    count = len(derivative.arguments)
    if count == 1 or (count <= _WRITTEN_OUT and not any(derivative.lists)):
        return _compile_record(derivative, [1, *range((1 << count) - 1, 1, -1)])
    recorders: dict[int, Callable[..., None]] = {}

    def others(mask: int, args: Any, result: Any, state: Any) -> None:
        if mask:
            record = recorders.get(mask)
            if record is None:
                record = recorders[mask] = _compile_record(derivative, [mask], known=True)
            record(args, result, state)

    return _compile_record(derivative, [1], others)


def _compile_record(
    derivative: Derivative,
    masks: list[int],
    others: Callable[..., None] | None = None,
    known: bool = False,
) -> Callable[..., None]:
    """record(args, result, state) with the lines of the plans for `masks`; see `node_codegen.record_source`."""
    plans = [plan_for(derivative, mask) for mask in masks]
    source = record_source(derivative, plans, others is not None, known)
    return _compile(
        derivative,
        "record",
        f" {masks[0]:b}" if known else "",
        source,
        {"others": others, **{f"plan_{plan.mask}": plan for plan in plans}},
    )


def mask_of(derivative: Derivative, args: tuple[Any, ...]) -> int:
    """One bit for each of a derivative's inputs that requires grad."""
    mask = 0
    for position, index in enumerate(derivative.arguments):
        value = args[index]
        if derivative.lists[position]:
            mask |= _requires_any(value) << position
        elif isinstance(value, Tensor):
            mask |= (value._keys & AUTOGRAD) << position
    return mask
