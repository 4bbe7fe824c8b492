"""torch.autograd.Function: ops whose forward and backward the user writes."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor, storage_of
from .._core.threads import ThreadState, threads
from .._dispatch import entry_globals, observer
from .._dispatch.registry import aten
from . import graph
from .context import BackwardCFunction, FunctionCtx, FunctionNode
from .graph import FLOATING
from .inplace import check_view_in_place, rebase_history
from .nodes.node import Gradients, Node
from .nodes.saved import set_history
from .running import forward_levels

_new = object.__new__


class FunctionMeta(type):
    """Gives every Function its classes of contexts and nodes, both named `<name>Backward`."""

    __module__ = "mindtorch_v2.autograd.function"

    _backward_cls: type[BackwardCFunction]
    _node_cls: type[FunctionNode]

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        cls._node_cls = type(name + "Backward", (FunctionNode,), {"__slots__": ()})
        super().__init__(name, bases, attrs)


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Subclass it with static `forward(ctx, *args)` and `backward(ctx, *grads)`, then call `apply`.

    `backward` returns one gradient (or None) for each argument of `forward`. Instead of a `ctx` in forward there may be
    a static `setup_context(ctx, inputs, output)`.
    """

    __module__ = "mindtorch_v2.autograd.function"

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so "
            "you should invoke them on the class itself. Instantiating an autograd function will raise an "
            "error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; runs with grad mode off."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Set on `ctx` what backward needs, for a forward that takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of forward's arguments from those of its outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute the tangents of the outputs from those of forward's arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Compute the outputs for a batch, and say along which dims they are batched."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def _derivative(cls) -> Callable[..., Any]:
        """The subclass's `backward` or `vjp`; RuntimeError if it has both."""
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        return cls.vjp if cls.vjp is not Function.vjp else cls.backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and record a node that runs backward if an argument requires grad."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        state = threads.state
        number = state.sequence
        state.sequence += 1
        recorded = entry_globals.observers_active and state.span is not None
        start = observer.clock() if recorded else 0
        try:
            return _apply(cls, args, kwargs, state, number, separate)
        finally:
            if recorded and state.span is not None:
                end, inputs = observer.clock(), () if state.capture_by_op is None else _outline(args)
                state.span(cls.__name__, observer.OP, start, end, number, inputs)


_NUMBERS = (bool, int, float, complex)


def _outline(args: tuple[Any, ...]) -> observer.InputOutline:
    """Outlines of forward's arguments, for a recording with shapes. As in torch, strings and other objects are left out."""
    outlines: list[tuple[Any, ...] | None] = []
    for value in args:
        if isinstance(value, Tensor):
            outlines.append((value._array.shape, value._array.strides, value._array.dtype))
        elif type(value) in _NUMBERS:
            outlines.append((type(value), value))
        elif value is None or isinstance(value, tuple | dict):
            outlines.append(None)
        elif isinstance(value, list) and value and all(type(item) in _NUMBERS for item in value):
            outlines.append((list, *[(type(item), item) for item in value]))
    return tuple(outlines)


def _apply(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], state: ThreadState, number: int, separate: bool) -> Any:
    """Function.apply inside its span: `number` is the node's sequence number, `separate` says there is a setup_context."""
    ctx = cls._backward_cls()
    ctx.needs_input_grad = tuple(isinstance(a, Tensor) and bool(a._keys & AUTOGRAD) for a in args)
    enabled = state.grad_enabled
    tangents = None
    if forward_levels:
        from .function_jvp import push_tangents, require_jvp, tangents_of  # forward mode is loaded when it is used

        if cls.jvp is Function.jvp:
            require_jvp(args)
        else:
            tangents = tangents_of(args)
    node: FunctionNode | None = None
    if enabled and True in ctx.needs_input_grad:
        node = _new(cls._node_cls)
        node.ctx = ctx
        node.is_tensor = tuple(isinstance(a, Tensor) for a in args)
        node.edges = tuple((a._node, a._output_nr) if a._keys & AUTOGRAD else None for a in args if isinstance(a, Tensor))
        node.sequence = number
        node.hooks = None
        node.saved = ()
        ctx._node = weakref.ref(node)
    state.grad_enabled = None
    try:
        if separate:
            output = cls.forward(*args, **kwargs)
            cls.setup_context(ctx, args, output)
        else:
            output = cls.forward(ctx, *args, **kwargs)
        single = not isinstance(output, tuple)
        outputs = _set_histories((output,) if single else output, args, ctx, node, enabled)
    finally:
        state.grad_enabled = enabled
    if tangents is not None:
        push_tangents(cls, ctx, args, tangents, outputs)
    if node is not None:
        ctx._keep_saved(node)
        if graph.has_node_listeners():
            graph.notify_node(node)
    return outputs[0] if single else outputs


def _set_histories(
    outputs: tuple[Any, ...], args: tuple[Any, ...], ctx: Any, node: FunctionNode | None, enabled: bool | None
) -> tuple[Any, ...]:
    """Make the tensors that forward returned outputs of its node; an input that is not dirty becomes a view of itself.

    `enabled` is the grad mode around the call.
    """
    dirty = _tensor_ids(ctx.dirty_tensors)
    plain = _tensor_ids(ctx.non_differentiable)
    inputs = _tensor_ids(args)
    if any(id(t) not in _tensor_ids(outputs) for t in ctx.dirty_tensors or ()):
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The "
            "inputs that are modified inplace must all be outputs of the Function."
        )
    results: list[Any] = []
    forms: list[Any] = []
    written: list[tuple[Tensor, int]] = []
    for number, returned in enumerate(outputs):
        output = returned
        if isinstance(output, Tensor):
            modified = id(returned) in dirty
            if modified:
                _check_written(output, id(returned) in inputs, len(outputs))
                storage_of(output).version += 1
            elif id(returned) in inputs:
                output = aten.view_as(output, output)
            differentiable = node is not None and id(returned) not in plain and output._array.dtype.kind in FLOATING
            if differentiable and modified:
                written.append((output, number))
            elif differentiable:
                assert node is not None
                set_history(output, node, number)
            elif output._keys & AUTOGRAD and not modified:
                output = aten.detach(output)
            if output._base is not None and not modified:
                _mark_view(output, enabled)
            forms.append((output._array.shape, output._array.dtype))
        else:
            forms.append(None)
        results.append(output)
    if node is not None:
        node.inputs = forms
        node.constants = [number for number, each in enumerate(outputs) if id(each) in plain]
        node.devices = [result.device if isinstance(result, Tensor) else None for result in results]
        for tensor, number in written:
            rebase_history(tensor, node, number)
    return tuple(results)


def _mark_view(output: Tensor, enabled: bool | None) -> None:
    """Note that a view was taken inside a Function; outside of grad mode it becomes a leaf, as other views do."""
    graph.set_origin(output, graph.CUSTOM)
    if enabled is False and output._base._keys & AUTOGRAD and output._array.dtype.kind in FLOATING:
        graph.require_grad(output)
        output._node.become_end(graph.CUSTOM)


def _tensor_ids(values: Sequence[Any] | None) -> set[int]:
    return {id(value) for value in values or () if isinstance(value, Tensor)}


def _check_written(output: Tensor, is_input: bool, count: int) -> None:
    """RuntimeError or warning where torch has one for a tensor marked dirty, of a Function with `count` outputs."""
    if output._keys & AUTOGRAD and output._node.is_accumulator:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if not is_input:
        warnings.warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
            "mutated should be passed to ctx.mark_dirty().",
            stacklevel=5,
        )
    if output._base is not None:
        check_view_in_place(output)
        if count > 1:
            raise RuntimeError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
                "return more than one Tensor. This is not supported by the current autograd engine. You should either "
                "make sure the input is not a view (using .clone() for example) or make your Function only return one "
                "Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single "
                "Tensor and a second one that does the other operations). You can ask on the forum "
                "https://discuss.pytorch.org/ if you need help to do this change."
            )


# ---------------------------------------------------------------- helpers for subclasses


class Error(Node):
    """The node of gradients that must not be differentiated again: its backward raises."""

    __slots__ = ("message",)

    title = "torch::autograd::Error"
    message: str

    def apply(self, grads: Gradients) -> Gradients:
        raise RuntimeError(self.message)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a `backward` that is not differentiable: it runs with grad mode off, and a second derivative raises."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        enabled = threads.state.grad_enabled
        outputs = graph.without_history(fn, (ctx, *args), {})
        if not enabled or not any(isinstance(a, Tensor) and a._keys & AUTOGRAD for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        leaves = tuple(map(_leaf, (outputs,) if single else outputs))
        results = delayed_errors(leaves, "trying to differentiate twice a function that was marked with @once_differentiable")
        return results[0] if single else results

    return wrapper


def delayed_errors(tensors: Sequence[Any], message: str) -> tuple[Any, ...]:
    """The same memory as outputs of one node that raises a RuntimeError in backward; what is no tensor stays."""
    state = threads.state
    node = _new(Error)
    node.message, node.hooks = message, None
    node.edges = tuple((t._node, t._output_nr) if isinstance(t, Tensor) and t._keys & AUTOGRAD else None for t in tensors)
    node.inputs = [(t._array.shape, t._array.dtype) if isinstance(t, Tensor) else None for t in tensors]
    node.sequence = state.sequence
    state.sequence += 1
    results: list[Any] = []
    for number, tensor in enumerate(tensors):
        result = tensor
        if isinstance(tensor, Tensor) and tensor._array.dtype.kind in FLOATING:
            result = aten.detach(tensor)
            set_history(result, node, number)
        results.append(result)
    return tuple(results)


def _leaf(output: Any) -> Any:
    """A leaf that requires grad on the memory of a floating-point tensor; anything else as it is."""
    if not isinstance(output, Tensor) or output._array.dtype.kind not in FLOATING:
        return output
    leaf = aten.detach(output)
    graph.require_grad(leaf)
    return leaf


class InplaceFunction(Function):
    """A Function with an `inplace` flag, which torch keeps for old code."""

    __module__ = "mindtorch_v2.autograd.function"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
