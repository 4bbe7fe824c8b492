"""Writing history: the node that an op leaves behind when one of its inputs requires grad."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .._core.threads import ThreadState, threads
from .._dispatch import entry_globals
from .._dispatch.registry import OpSpec
from .accumulate import AccumulateGrad
from .derivative import ARG, NEEDS, RESULT, Derivative, Plan, declared_derivative
from .node import Edge, Gradients, Node
from .node_compiler import compile_record
from .saved import freed, result_parts, tie, unpack_list, unpack_one, unpack_result

FLOATING = "fcV"
"""The kinds of NumPy dtypes that may require grad: real, complex, and the narrow floats, which NumPy calls void."""

_new = object.__new__


class OpNode(Node):
    """The node of a declared op; each op has a subclass with torch's name for it."""

    __slots__ = ("plan", "saved")

    plan: Plan
    # Values as the plan lays them out (see saved.py); None once they are freed, absent where nothing is saved.
    saved: tuple[Any, ...] | None

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        run: Sequence[Tensor | None] = self.plan.run(self, grads if self.inputs.__class__ is list else grads[0], True)
        return run

    def release(self) -> None:
        if self.plan.keeps_tensors:
            self.saved = None

    def slots(self) -> list[tuple[int, int, tuple[Any, ...]]]:
        """What is saved: (kind, index) as in the plan, and the values of that slot."""
        if self.saved is None:
            raise freed()
        arguments = self.plan.derivative.op.schema.arguments
        found, start = [], 0
        for kind, index in self.plan.saved:
            is_tensor = kind == ARG and arguments[index].is_tensor
            width = 4 if kind == RESULT else 0 if kind == NEEDS else 2 if is_tensor else 1
            found.append((kind, index, self.saved[start : start + width]))
            start += width
        return found

    def _kept(self) -> dict[str, int | None]:
        """torch's names of what nodes of this kind keep, and the slots they mean; None where this node does not."""
        derivative = self.plan.derivative
        arguments = derivative.op.schema.arguments
        names: dict[str, int | None] = {}
        for kind, index in derivative.lay_out((1 << len(derivative.arguments)) - 1).saved:
            slot = self.plan.saved.index((kind, index)) if (kind, index) in self.plan.saved else None
            if kind == RESULT:
                names["_saved_result" if index == 0 else f"_saved_result{index}"] = slot
            elif kind == ARG:
                names[f"_saved_{arguments[index].name}"] = slot
        return names

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._kept()]

    def __getattr__(self, name: str) -> Any:
        """`_saved_self`, `_saved_result`: what the node keeps, as torch names it."""
        if name.startswith("_saved_"):
            kept = self._kept()
            if name in kept:
                slot = kept[name]
                return None if slot is None else self.unpacked(slot)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def unpacked(self, slot: int) -> Any:
        """What is saved in a slot."""
        kind, index, values = self.slots()[slot]
        if kind == RESULT:
            return unpack_result(self, index, *values)
        if self.plan.derivative.op.schema.arguments[index].is_tensor_list:
            return unpack_list(self, values[0])
        return unpack_one(self, *values) if len(values) == 2 else values[0]


class NotImplementedNode(Node):
    """Stands where an op has no derivative: the forward is fine, a gradient asked of it is an error."""

    __slots__ = ("op_name",)

    title = "NotImplemented"
    op_name: str

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        raise RuntimeError(f"derivative for {self.op_name} is not implemented")


class NoDerivative:
    """In place of a derivative, for an op that has none."""

    def __init__(self, op: OpSpec) -> None:
        self.op = op

    def record(self, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        """An op that ought to be differentiable leaves a node that says it is not."""
        if self.op.nondiff:
            return
        outputs = result if isinstance(result, tuple | list) else (result,)
        floating = [o for o in outputs if isinstance(o, Tensor) and o._array.dtype.kind in FLOATING]
        if floating:
            node = _new(NotImplementedNode)
            node.op_name = self.op.name
            node.edges, node.hooks = tuple(_edges_among(args)), None
            node.sequence = state.sequence
            state.sequence += 1
            node.inputs = [(o._array.shape, o._array.dtype) if isinstance(o, Tensor) else None for o in outputs]
            for number, output in enumerate(outputs):
                if any(output is o for o in floating):
                    tie(output, node, number)

    record_first = record


def _edges_among(values: Sequence[Any]) -> Iterator[Edge]:
    """Where the gradients of those arguments would go that require grad."""
    for value in values:
        if isinstance(value, Tensor):
            if value._keys & AUTOGRAD:
                yield value._node, value._output_nr
        elif isinstance(value, tuple | list):
            yield from _edges_among(value)


def derivative_of(op: OpSpec) -> Derivative | NoDerivative:
    """An op's derivative, compiled."""
    made: Derivative | NoDerivative | None = op.derivative
    if made is None:
        declared = declared_derivative(op, OpNode)
        if declared is None:
            made = NoDerivative(op)
        else:
            if not op.schema.mutates:
                declared.record = compile_record(declared)
            made = declared
        op.derivative = made
    return made


def attach(op: OpSpec, args: tuple[Any, ...], result: Any) -> None:
    """Record that `result` came from `op(*args)`, if grad mode is on and the op has a derivative."""
    state = threads.state
    if state.grad_enabled:
        (op.derivative or derivative_of(op)).record(args, result, state)


def attach_first(op: OpSpec, args: tuple[Any, ...], result: tuple[Any, ...]) -> None:
    """As `attach`, for an op with several results of which the caller shows the first alone: the others are arrays."""
    state = threads.state
    if state.grad_enabled:
        derivative = op.derivative or derivative_of(op)
        record = derivative.record_first
        if record is None:
            assert isinstance(derivative, Derivative)
            record = derivative.record_first = compile_record(derivative, first=True)
        record(args, result, state)


# Called with every node as it is made, while somebody wants to know: anomaly mode, saved_tensors_hooks.
_on_node: list[Callable[[Node], None]] = []


def add_node_listener(function: Callable[[Node], None], on: bool) -> None:
    """Have `function(node)` called for every new node, or stop it. Ops take the longer way only while some are."""
    if on:
        _on_node.append(function)
    else:
        _on_node.remove(function)
    entry_globals.install(attach=_watched(attach) if _on_node else attach)
    entry_globals.install(attach_first=_watched(attach_first) if _on_node else attach_first)


def watched() -> bool:
    """Whether anybody wants to be told of new nodes."""
    return bool(_on_node)


def tell(node: Node) -> None:
    """Show a new node to those who watch."""
    for function in tuple(dict.fromkeys(_on_node)):
        function(node)


def _watched(attaching: Callable[..., None]) -> Callable[..., None]:
    """The same with the new node shown to those who watch."""

    def attach_watched(op: OpSpec, args: tuple[Any, ...], result: Any) -> None:
        state = threads.state
        before = state.sequence
        attaching(op, args, result)
        if state.sequence != before:
            outputs = result if isinstance(result, tuple | list) else (result,)
            for output in outputs:
                if isinstance(output, Tensor) and output._keys & AUTOGRAD:
                    tell(output._node)
                    return

    return attach_watched


def fill_results(node: OpNode, outputs: Sequence[Tensor]) -> None:
    """Save the results that a node asks for, once they are there."""
    if any(kind == RESULT for kind, _ in node.plan.saved):
        values: list[Any] = []
        for kind, index, held in node.slots():
            values += result_parts(outputs[index]) if kind == RESULT else held
        node.saved = tuple(values)


# ---------------------------------------------------------------- modes


def without_history(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call with grad mode off."""
    state = threads.state
    enabled = state.grad_enabled
    state.grad_enabled = False
    try:
        return function(*args, **kwargs)
    finally:
        state.grad_enabled = enabled


def below_autograd(function: Callable[..., Any], *args: Any) -> Any:
    """Run what lies below an op's own derivative, so that it leaves no nodes of its own."""
    return without_history(function, args, {})


def require_grad(tensor: Tensor, on: bool = True) -> None:
    """Make a leaf require grad, or stop it."""
    if on:
        if tensor._array.dtype.kind not in FLOATING:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if not tensor._keys & AUTOGRAD:
            if tensor._inference and not threads.state.inference:
                raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
            _give_accumulator(tensor)
            tensor._keys |= AUTOGRAD
    elif tensor._keys & AUTOGRAD:
        if not tensor._node.is_accumulator:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use var_no_grad = "
                "var.detach()."
            )
        tensor._keys &= ~AUTOGRAD


def refresh_accumulator(tensor: Tensor) -> None:
    """A leaf's AccumulateGrad: the one it had before, with its hooks, if it still fits; any other node stays."""
    try:
        node = tensor._node
        kept = not node.is_accumulator or node.fits(tensor)
    except AttributeError:
        kept = False
    if not kept:
        tensor._node = AccumulateGrad(tensor)
        tensor._output_nr = 0


def _give_accumulator(tensor: Tensor) -> None:
    refresh_accumulator(tensor)
    if not hasattr(tensor, "_grad"):
        tensor._grad = None


entry_globals.install(attach=attach)
entry_globals.install(attach_first=attach_first)
entry_globals.install(below_autograd=below_autograd)
entry_globals.install(without_history=without_history)
entry_globals.install(require_grad=require_grad)
