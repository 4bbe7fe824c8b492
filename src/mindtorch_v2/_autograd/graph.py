"""Recording the graph: the node that an op leaves behind when one of its inputs requires grad."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._core.keys import AUTOGRAD, PYTHON
from .._core.tensor import Tensor, storage_of
from .._core.threads import ThreadState, threads
from .._dispatch import entry_globals
from .._dispatch.registry import OpSpec, aten
from .nodes.accumulate import AccumulateGrad
from .nodes.derivative import ARG, NEEDS, RESULT, Derivative, Plan, declared_derivative
from .nodes.node import Edge, Gradients, Node
from .nodes.node_compiler import compile_record
from .nodes.saved import SavedSubclass, freed, result_parts, set_history, unpack_list, unpack_one, unpack_result

FLOATING = "fcVW"
"""The kinds of NumPy dtypes that may require grad: real, complex, and those of ml_dtypes: the narrow floats and complex32."""

NO_GRAD, INFERENCE, CUSTOM = "no_grad", "inference", "custom"
"""Where a view was taken that must not be written into with grad mode on."""

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
        """What is saved: kind and index of each slot as in the plan, and the values that stand in it."""
        if self.saved is None:
            raise freed()
        arguments = self.plan.derivative.op.schema.arguments
        slots, start = [], 0
        for kind, index in self.plan.saved:
            is_tensor = kind == ARG and arguments[index].is_tensor
            width = 4 if kind == RESULT else 0 if kind == NEEDS else 2 if is_tensor else 1
            slots.append((kind, index, self.saved[start : start + width]))
            start += width
        return slots

    def _saved_names(self) -> dict[str, int | None]:
        """torch's names of what nodes of this op may save, each with its slot; None where this node does not save it."""
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
        return [*super().__dir__(), *self._saved_names()]

    def __getattr__(self, name: str) -> Any:
        """`_saved_self`, `_saved_result`: what the node saved, under torch's names."""
        if name.startswith("_saved_"):
            slots = self._saved_names()
            if name in slots:
                slot = slots[name]
                return None if slot is None else self.unpacked(slot)
        if name.startswith("_raw_saved_"):
            from .nodes.saved_tensor import raw_saved  # loaded for the few programs that look

            return raw_saved(self, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def unpacked(self, slot: int) -> Any:
        """The value of a slot; a tensor as it was saved, RuntimeError if it was modified since."""
        kind, index, values = self.slots()[slot]
        if kind == RESULT:
            return unpack_result(self, index, *values)
        if self.plan.derivative.op.schema.arguments[index].is_tensor_list:
            return unpack_list(self, values[0])
        return unpack_one(self, *values) if len(values) == 2 else values[0]


class NotImplementedNode(Node):
    """The node of an op without a derivative: its forward works, its backward raises."""

    __slots__ = ("op_name",)

    title = "NotImplemented"
    op_name: str

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        raise RuntimeError(f"derivative for {self.op_name} is not implemented")


class NoDerivative:
    """Takes the place of a `Derivative` for an op that has none."""

    def __init__(self, op: OpSpec) -> None:
        self.op = op

    def record(self, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        """Leave a node that raises in backward, unless the op is declared `nondiff`."""
        if self.op.nondiff:
            return
        outputs = result if isinstance(result, tuple | list) else (result,)
        if any(map(_is_floating, outputs)):
            node = not_implemented_node(self.op, args, outputs, state)
            for number, output in enumerate(outputs):
                if _is_floating(output):
                    set_history(output, node, number)


def _is_floating(output: Any) -> bool:
    return isinstance(output, Tensor) and output._array.dtype.kind in FLOATING


def not_implemented_node(op: OpSpec, args: tuple[Any, ...], outputs: Sequence[Any], state: ThreadState) -> NotImplementedNode:
    """A node that raises in backward, after the tensors among `args` that require grad."""
    node: NotImplementedNode = _new(NotImplementedNode)
    node.op_name = op.name
    node.edges, node.hooks = tuple(_edges_among(args)), None
    node.sequence = state.sequence
    state.sequence += 1
    node.inputs = [(o._array.shape, o._array.dtype) if isinstance(o, Tensor) else None for o in outputs]
    return node


def _edges_among(values: Sequence[Any]) -> Iterator[Edge]:
    """The edges of the arguments that require grad, also of those inside lists."""
    for value in values:
        if isinstance(value, Tensor):
            if value._keys & AUTOGRAD:
                yield value._node, value._output_nr
        elif isinstance(value, tuple | list):
            yield from _edges_among(value)


def derivative_of(op: OpSpec) -> Derivative | NoDerivative:
    """An op's derivative, looked up and compiled at the first call."""
    derivative: Derivative | NoDerivative | None = op.derivative
    if derivative is None:
        declared = declared_derivative(op, OpNode)
        if declared is None:
            derivative = NoDerivative(op)
        else:
            if not op.schema.mutates:
                declared.record = compile_record(declared)
            derivative = declared
        op.derivative = derivative
    return derivative


def record_node(op: OpSpec, args: tuple[Any, ...], result: Any) -> None:
    """Record that `result` came from `op(*args)`, if grad mode is on and the op has a derivative."""
    state = threads.state
    if state.grad_enabled:
        (op.derivative or derivative_of(op)).record(args, result, state)
    elif state.grad_enabled is False and op.schema.is_view:
        _mark_views((result,) if result.__class__ is Tensor else result, INFERENCE if state.inference else NO_GRAD)


def record_subclass(op: OpSpec, args: tuple[Any, ...], result: Any) -> None:
    """`record_node` for results of a subclass's `__torch_dispatch__`: a node that saves its results saves the class's."""
    entry_globals.record_node(op, args, result)
    outputs = result if isinstance(result, tuple | list) else (result,)
    node = next((o._node for o in outputs if isinstance(o, Tensor) and o._keys & AUTOGRAD), None)
    if not isinstance(node, OpNode) or not any(kind == RESULT for kind, _ in node.plan.saved):
        return
    values: list[Any] = []
    for kind, index, slot in node.slots():
        output = outputs[index] if kind == RESULT else None
        if output is not None and output._keys & PYTHON:
            storage = storage_of(output)
            values += (SavedSubclass(without_history(aten.detach, (output,), {})), storage, storage.version, 0)
        else:
            values += slot
    node.saved = tuple(values)


def _mark_views(views: Sequence[Tensor], origin: str) -> None:
    """Views of tensors that require grad, taken while the program has grad mode off: as in torch they are leaves that
    require grad, and must not be written into once grad mode is on again."""
    for view in views:
        base = view._base
        # The memory's own tensor decides: a leaf that is itself a part of one without grad has views without, too.
        tracked = base is not None and base._keys & AUTOGRAD and not base._inference
        if tracked and view._array.dtype.kind in FLOATING and not view._keys & AUTOGRAD:
            set_origin(view, origin)
            _give_accumulator(view)
            view._keys |= AUTOGRAD
            view._node.become_end(origin)


def set_origin(view: Tensor, origin: str) -> None:
    """Note how a view was taken, and its version then."""
    storage = view._storage
    view._origin = (origin, 0 if storage is None else storage.version)


# Called with every new node, by anomaly mode, saved_tensors_hooks and inference mode, by who asked for it. A listener that
# several have asked for is called once.
_node_listeners: dict[Any, Callable[[Node], None]] = {}


def add_node_listener(owner: Any, listener: Callable[[Node], None]) -> None:
    """Have `listener(node)` called for every new node, until its owner removes it. An owner has one listener."""
    _node_listeners[owner] = listener
    _choose_recorders()


def remove_node_listener(owner: Any) -> None:
    """Remove an owner's listener; nothing happens if it has none."""
    _node_listeners.pop(owner, None)
    _choose_recorders()


def has_node_listeners() -> bool:
    """Whether new nodes have to be passed to `notify_node`."""
    return bool(_node_listeners)


def notify_node(node: Node) -> None:
    """Call each listener once with a new node."""
    for listener in tuple(dict.fromkeys(_node_listeners.values())):
        listener(node)


def _choose_recorders() -> None:
    """Have entries notify listeners of new nodes while there are listeners, and take the direct way otherwise."""
    entry_globals.install(record_node=_notifying(record_node) if _node_listeners else record_node)


def _notifying(record: Callable[..., None]) -> Callable[..., None]:
    """`record` followed by `notify_node`, if it left a node."""

    def record_and_notify(op: OpSpec, args: tuple[Any, ...], result: Any) -> None:
        state = threads.state
        before = state.sequence
        record(op, args, result)
        if state.sequence != before:
            outputs = result if isinstance(result, tuple | list) else (result,)
            for output in outputs:
                if isinstance(output, Tensor) and output._keys & AUTOGRAD:
                    notify_node(output._node)
                    return

    return record_and_notify


def fill_results(node: OpNode, outputs: Sequence[Tensor]) -> None:
    """Save those of an in-place op's outputs that its formulas take; the node was made before they were computed."""
    if any(kind == RESULT for kind, _ in node.plan.saved):
        values: list[Any] = []
        for kind, index, slot in node.slots():
            values += result_parts(outputs[index]) if kind == RESULT else slot
        node.saved = tuple(values)


# ---------------------------------------------------------------- modes


def without_history(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """`function(*args, **kwargs)` with grad mode off."""
    state = threads.state
    enabled = state.grad_enabled
    state.grad_enabled = None
    try:
        return function(*args, **kwargs)
    finally:
        state.grad_enabled = enabled


def below_autograd(function: Callable[..., Any], *args: Any) -> Any:
    """Run the body of a composite op that has a derivative of its own, so that the ops inside it leave no nodes."""
    return without_history(function, args, {})


def require_grad(tensor: Tensor, on: bool = True) -> None:
    """Set whether a leaf requires grad; RuntimeError where torch does not allow it."""
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
    """Give a leaf an AccumulateGrad of its shape and dtype. One that fits stays, with its hooks; so does any other node."""
    try:
        node = tensor._node
        fits = not node.is_accumulator or node.fits(tensor)
    except AttributeError:
        fits = False
    if not fits:
        tensor._node = AccumulateGrad(tensor)
        tensor._output_nr = 0


def become_leaf(view: Tensor) -> None:
    """Make a view that requires grad since its base does a leaf that gets a gradient."""
    origin = view._node.origin
    view._node = AccumulateGrad(view)
    view._node.origin = origin


def _give_accumulator(tensor: Tensor) -> None:
    refresh_accumulator(tensor)
    if not hasattr(tensor, "_grad"):
        tensor._grad = None


entry_globals.install(
    record_node=record_node,
    below_autograd=below_autograd,
    without_history=without_history,
    require_grad=require_grad,
    refresh_accumulator=refresh_accumulator,
    record_subclass=record_subclass,
)
