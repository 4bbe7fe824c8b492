"""Writing history: the node that an op leaves behind when one of its inputs requires grad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor, make_alias, storage_of
from .._core.threads import threads
from .._dispatch import dispatcher, namespace
from .._dispatch.registry import OpSpec
from .derivative import ARG, DTYPE, NEEDS, RESULT, SHAPE, STRIDES, Derivative, derivative_of
from .node import AccumulateGrad, Node

_new = object.__new__


class Saved:
    """A tensor kept for backward, with the version it had; the result of its own node is kept without history."""

    __slots__ = ("is_result", "output_nr", "packed", "tensor", "unpack", "version")

    def __init__(self, tensor: Tensor, is_result: bool = False, output_nr: int = 0) -> None:
        self.is_result = is_result
        self.output_nr = output_nr
        self.unpack: Callable[[Any], Tensor] | None = None
        self.packed: Any = None
        hooks = threads.state.saved_tensor_hooks
        if hooks:
            pack, self.unpack = hooks[-1]
            self.packed = pack(make_alias(tensor._array, tensor) if is_result else tensor)
            self.tensor: Tensor | None = None
            self.version = 0
        else:
            self.tensor = make_alias(tensor._array, tensor) if is_result else tensor
            self.version = self.tensor._version

    def get(self, node: Node) -> Tensor:
        if self.unpack is not None:
            tensor = self.unpack(self.packed)
        else:
            assert self.tensor is not None
            tensor = self.tensor
            storage = tensor._storage
            if storage is not None and storage.version != self.version:
                raise RuntimeError(_modified(tensor, self, node))
        if self.is_result and threads.state.grad_enabled:
            connected = make_alias(tensor._array, tensor)
            connected._keys |= AUTOGRAD
            connected._node = node
            connected._output_nr = self.output_nr
            return connected
        return tensor


def _modified(tensor: Tensor, saved: Saved, node: Node) -> str:
    maker = node if saved.is_result else tensor.grad_fn
    source = "" if maker is None else f", which is output {saved.output_nr if saved.is_result else tensor.output_nr} of {maker.name()},"
    return ("one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{tensor.type()} {list(tensor.shape)}]{source} is at version {tensor._version}; "  # type: ignore[attr-defined]
            f"expected version {saved.version} instead. Hint: enable anomaly detection to find the operation that "
            "failed to compute its gradient, with torch.autograd.set_detect_anomaly(True).")


class OpNode(Node):
    """The node of a declared op; each op has a subclass with torch's name for it."""

    __slots__ = ("derivative", "needs", "plan", "saved")

    derivative: Derivative
    needs: tuple[bool, ...]
    saved: list[Any] | None

    def apply(self, grads: list[Tensor | None]) -> Sequence[Tensor | None]:
        if self.saved is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or "
                "if you need to access saved tensors after calling backward.")
        derivative = self.derivative
        values = [value.get(self) if value.__class__ is Saved else
                  [v.get(self) if v.__class__ is Saved else v for v in value] if value.__class__ is list else value
                  for value in self.saved]
        g: Any = grads[0] if self.outputs == 1 else grads if derivative_takes_all(derivative) else grads[0]
        if derivative.joint is not None:
            made = derivative.joint(g, *[values[i] for i in self.plan.formulas[0][2]])
            results = list(made) if isinstance(made, tuple | list) else [made]
        else:
            results = [None] * len(derivative.arguments)
            for position, formula, slots in self.plan.formulas:
                results[position] = formula(g, *[values[i] for i in slots])
        if not any(derivative.lists):
            return results
        flat: list[Tensor | None] = []
        for is_list, count, value in zip(derivative.lists, self._counts, results, strict=True):
            if is_list:
                flat += list(value) if value is not None else [None] * count
            else:
                flat.append(value)
        return flat

    def release(self) -> None:
        self.saved = None

    def __getattr__(self, name: str) -> Any:
        """`_saved_self`, `_saved_result`: what the node keeps, as torch names it."""
        if name.startswith("_saved_"):
            if self.saved is None:
                raise RuntimeError("Trying to access saved tensors after they have already been freed.")
            wanted = name[len("_saved_"):]
            index = {a.name: i for i, a in enumerate(self.derivative.op.schema.arguments)}
            for (kind, i), value in zip(self.plan.saved, self.saved, strict=True):
                if kind == ARG and index.get(wanted) == i or kind == RESULT and wanted in ("result", f"result{i}"):
                    return value.get(self) if isinstance(value, Saved) else value
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")


def derivative_takes_all(derivative: Derivative) -> bool:
    """Whether the derivative wants the gradients of all outputs: its first parameter is called `grads`."""
    known = getattr(derivative.op, "tags", ())
    return "all_grads" in known


def attach(op: OpSpec, args: tuple[Any, ...], result: Any) -> None:
    """Record that `result` came from `op(*args)`, if grad mode is on and the op has a derivative."""
    state = threads.state
    if not state.grad_enabled:
        return
    derivative = op.derivative or derivative_of(op, OpNode)
    if derivative is None:
        if not op.nondiff:
            _no_derivative(op, args, result)
        return
    node = make_node(derivative, args, state)
    if node is None:
        return
    outputs = result if result.__class__ is not Tensor and isinstance(result, tuple | list) else (result,)
    node.outputs = len(outputs)
    for number, output in enumerate(outputs):
        if output._array.dtype.kind in "fcV":
            output._keys |= AUTOGRAD
            output._node = node
            output._output_nr = number
            output._grad = None
    if node.plan.saves_result:
        for slot, (kind, index) in enumerate(node.plan.saved):
            if kind == RESULT:
                node.saved[slot] = Saved(outputs[index], True, index)  # type: ignore[index]


def make_node(derivative: Derivative, args: tuple[Any, ...], state: Any) -> Any:
    """The node of one call with edges and saved arguments, or None if no input with a formula requires grad."""
    edges: list[Any] = []
    inputs: list[Any] = []
    needs: list[bool] = []
    counts: list[int] = []
    for i, is_list in zip(derivative.arguments, derivative.lists, strict=True):
        value = args[i]
        if is_list:
            wanted = False
            for item in value or ():
                if item is not None and item._keys & AUTOGRAD:
                    wanted = True
                    edges.append((item._node, item._output_nr))
                    inputs.append((item._array.shape, item._array.dtype))
                else:
                    edges.append(None)
                    inputs.append(None)
            counts.append(len(value or ()))
            needs.append(wanted)
        elif isinstance(value, Tensor) and value._keys & AUTOGRAD:
            array = value._array
            edges.append((value._node, value._output_nr))
            inputs.append((array.shape, array.dtype))
            needs.append(True)
            counts.append(1)
        else:
            edges.append(None)
            inputs.append(None)
            needs.append(False)
            counts.append(1)
    if True not in needs:
        return None
    node = _new(derivative.node_type)
    node.derivative = derivative
    node.edges = edges
    node.inputs = inputs
    node.needs = tuple(needs)
    node.hooks = None
    node.sequence = state.sequence
    state.sequence += 1
    if any(derivative.lists):
        node._counts = counts
    plan = node.plan = derivative.plan(node.needs)
    saved: list[Any] = []
    for kind, i in plan.saved:
        if kind == ARG:
            value = args[i]
            if isinstance(value, Tensor):
                saved.append(Saved(value))
            elif value.__class__ in (list, tuple) and any(isinstance(v, Tensor) for v in value):
                saved.append([Saved(v) if isinstance(v, Tensor) else v for v in value])
            else:
                saved.append(value)
        elif kind == SHAPE:
            value = args[i]
            saved.append([v._array.shape for v in value] if value.__class__ in (list, tuple) else
                         value._array.shape if isinstance(value, Tensor) else None)
        elif kind == STRIDES:
            saved.append(args[i]._array.strides)
        elif kind == DTYPE:
            saved.append(args[i].dtype)
        elif kind == NEEDS:
            saved.append(node.needs)
        else:
            saved.append(None)  # the result, filled in by the caller
    node.saved = saved
    return node


class NotImplementedNode(Node):
    """Stands where an op has no derivative: the forward is fine, a gradient asked of it is an error."""

    __slots__ = ("op_name",)

    title = "NotImplemented"

    def apply(self, grads: list[Tensor | None]) -> Sequence[Tensor | None]:
        raise RuntimeError(f"derivative for {self.op_name} is not implemented")


def _no_derivative(op: OpSpec, args: tuple[Any, ...], result: Any) -> None:
    outputs = result if isinstance(result, tuple | list) else (result,)
    if not any(isinstance(o, Tensor) and o._array.dtype.kind in "fcV" for o in outputs):
        return
    node = _new(NotImplementedNode)
    node.op_name = op.name
    node.edges, node.inputs, node.hooks, node.outputs = [], [], None, len(outputs)
    node.sequence = threads.state.sequence
    threads.state.sequence += 1
    for number, output in enumerate(outputs):
        if isinstance(output, Tensor) and output._array.dtype.kind in "fcV":
            output._keys |= AUTOGRAD
            output._node, output._output_nr, output._grad = node, number, None


# ---------------------------------------------------------------- in place


def check_in_place(target: Tensor) -> None:
    """RuntimeError where torch forbids writing into a tensor."""
    if target._keys & AUTOGRAD and target._node.is_accumulator:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    base = target._base
    if base is not None and base._keys & AUTOGRAD and base._node.is_accumulator:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def run_in_place(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """An in-place op on tensors with history: the target becomes the result of the op's node."""
    state = threads.state
    target = args[0]
    keys = dispatcher.keys_of(args)
    if not state.grad_enabled or not keys & AUTOGRAD:
        return without_history(dispatcher.execute, (op, args), {})
    check_in_place(target)
    derivative = op.derivative or derivative_of(op, OpNode)
    node = None
    if derivative is not None:
        saved_args = args
        needs = derivative_needs(derivative, args)
        if any(kind == ARG and i == 0 for kind, i in derivative.plan(needs).saved):
            # The formula wants the target as it was.
            copy = make_alias(target._array.copy(), target)
            copy._storage = None
            copy._keys = target._keys
            if target._keys & AUTOGRAD:
                copy._node, copy._output_nr = target._node, target._output_nr
            saved_args = (copy, *args[1:])
        node = make_node(derivative, saved_args, state)
    without_history(dispatcher.execute, (op, args), {})
    if node is None:
        if derivative is None and not op.nondiff:
            _no_derivative(op, args, target)
        return target
    node.outputs = 1
    rebase_history(target, node)
    for slot, (kind, _) in enumerate(node.plan.saved):
        if kind == RESULT:
            node.saved[slot] = Saved(target, True, 0)
    return target


def derivative_needs(derivative: Derivative, args: tuple[Any, ...]) -> tuple[bool, ...]:
    """Which of the derivative's arguments require grad."""
    return tuple(any(v is not None and v._keys & AUTOGRAD for v in args[i] or ()) if is_list else
                 isinstance(args[i], Tensor) and bool(args[i]._keys & AUTOGRAD)
                 for i, is_list in zip(derivative.arguments, derivative.lists, strict=True))


def rebase_history(target: Tensor, node: Node) -> None:
    """Make `node` the maker of a tensor that was written in place; a view's base learns of it, too."""
    base = target._base
    if base is not None:
        namespace.copy_slices(base, target, node)  # type: ignore[attr-defined]
    else:
        target._keys |= AUTOGRAD
        target._node = node
        target._output_nr = 0
        target._grad = None


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
        if tensor._array.dtype.kind not in "fcV":
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        if not tensor._keys & AUTOGRAD:
            tensor._keys |= AUTOGRAD
            tensor._grad = None
            tensor._node = AccumulateGrad(tensor)
            tensor._output_nr = 0
    elif tensor._keys & AUTOGRAD:
        if not tensor._node.is_accumulator:
            raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed "
                               "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().")
        tensor._keys &= ~AUTOGRAD
        storage_of(tensor)


namespace.attach = attach  # type: ignore[attr-defined]
namespace.run_in_place = run_in_place  # type: ignore[attr-defined]
namespace.below_autograd = below_autograd  # type: ignore[attr-defined]
namespace.without_history = without_history  # type: ignore[attr-defined]
namespace.require_grad = require_grad  # type: ignore[attr-defined]
