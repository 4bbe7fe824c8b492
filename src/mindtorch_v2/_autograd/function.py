"""Function: ops with a derivative written by the user."""

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
from .node import Gradients, Node
from .saved import tie

_new = object.__new__


class FunctionMeta(type):
    """Gives every Function the classes of its contexts and nodes, which are called `<name>Backward`."""

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
        """The op itself, run without history."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Note on `ctx` what backward needs, where forward takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of forward's arguments, given those of its outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Forward-mode derivative."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The op on a batch."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def _derivative(cls) -> Callable[..., Any]:
        """The `backward` or `vjp` that the subclass wrote."""
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        return cls.vjp if cls.vjp is not Function.vjp else cls.backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and tie its results to backward."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        state = threads.state
        number = state.sequence
        state.sequence += 1
        watched = entry_globals.observers_active and state.span is not None
        start = observer.clock() if watched else 0
        try:
            return _apply(cls, args, kwargs, state, number, separate)
        finally:
            if watched and state.span is not None:
                end, inputs = observer.clock(), () if state.capture_by_op is None else _outline(args)
                state.span(cls.__name__, observer.OP, start, end, number, inputs)


_NUMBERS = (bool, int, float, complex)


def _outline(args: tuple[Any, ...]) -> observer.InputOutline:
    """What forward was given, for a recording that wants to know. As in torch, texts and other objects leave no trace."""
    made: list[tuple[Any, ...] | None] = []
    for value in args:
        if isinstance(value, Tensor):
            made.append((value._array.shape, value._array.strides, value._array.dtype))
        elif type(value) in _NUMBERS:
            made.append((type(value), value))
        elif value is None or isinstance(value, tuple | dict):
            made.append(None)
        elif isinstance(value, list) and value and all(type(one) in _NUMBERS for one in value):
            made.append((list, *[(type(one), one) for one in value]))
    return tuple(made)


def _apply(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], state: ThreadState, number: int, separate: bool) -> Any:
    ctx = cls._backward_cls()
    ctx.needs_input_grad = tuple(isinstance(a, Tensor) and bool(a._keys & AUTOGRAD) for a in args)
    enabled = state.grad_enabled
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
    state.grad_enabled = False
    try:
        if separate:
            output = cls.forward(*args, **kwargs)
            cls.setup_context(ctx, args, output)
        else:
            output = cls.forward(ctx, *args, **kwargs)
        single = not isinstance(output, tuple)
        outputs = _tie((output,) if single else output, args, ctx, node)
    finally:
        state.grad_enabled = enabled
    if node is not None:
        ctx._keep_saved(node)
        if graph.watched():
            graph.tell(node)
    return outputs[0] if single else outputs


def _tie(outputs: tuple[Any, ...], args: tuple[Any, ...], ctx: Any, node: FunctionNode | None) -> tuple[Any, ...]:
    """Make a node the maker of what forward returned; what is returned as it came in becomes a view of itself."""
    dirty = _among(ctx.dirty_tensors)
    plain = _among(ctx.non_differentiable)
    inputs = _among(args)
    if any(id(t) not in _among(outputs) for t in ctx.dirty_tensors or ()):
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The "
            "inputs that are modified inplace must all be outputs of the Function."
        )
    tied: list[Any] = []
    forms: list[Any] = []
    written: list[tuple[Tensor, int]] = []
    for number, output in enumerate(outputs):
        if isinstance(output, Tensor):
            modified = id(output) in dirty
            if modified:
                _check_written(output, id(output) in inputs, len(outputs))
                storage_of(output).version += 1
            elif id(output) in inputs:
                output = aten.view_as(output, output)
            differentiable = node is not None and id(outputs[number]) not in plain and output._array.dtype.kind in FLOATING
            if differentiable and modified:
                written.append((output, number))
            elif differentiable:
                assert node is not None
                tie(output, node, number)
            elif output._keys & AUTOGRAD and not modified:
                output = aten.detach(output)
            forms.append((output._array.shape, output._array.dtype))
        else:
            forms.append(None)
        tied.append(output)
    if node is not None:
        node.inputs = forms
        node.devices = [output.device if isinstance(output, Tensor) else None for output in tied]
        for output, number in written:
            rebase_history(output, node, number)
    return tuple(tied)


def _among(values: Sequence[Any] | None) -> set[int]:
    return {id(value) for value in values or () if isinstance(value, Tensor)}


def _check_written(output: Tensor, is_input: bool, count: int) -> None:
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


class ErrorNode(Node):
    """Stands where a second derivative was ruled out."""

    __slots__ = ("message",)

    title = "torch::autograd::Error"
    message: str

    def apply(self, grads: Gradients) -> Gradients:
        raise RuntimeError(self.message)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a `backward` that is not differentiable: it runs without history; a second derivative is an error."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        enabled = threads.state.grad_enabled
        outputs = graph.without_history(fn, (ctx, *args), {})
        if not enabled or not any(isinstance(a, Tensor) and a._keys & AUTOGRAD for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        made = tuple(
            _poisoned(o) if isinstance(o, Tensor) and o._array.dtype.kind in FLOATING else o
            for o in ((outputs,) if single else outputs)
        )
        return made[0] if single else made

    return wrapper


def _poisoned(output: Tensor) -> Tensor:
    state = threads.state
    node = _new(ErrorNode)
    node.message = "trying to differentiate twice a function that was marked with @once_differentiable"
    node.edges, node.hooks, node.inputs = (), None, (output._array.shape, output._array.dtype)
    node.sequence = state.sequence
    state.sequence += 1
    alias: Tensor = aten.detach(output)
    tie(alias, node, 0)
    return alias


class InplaceFunction(Function):
    """A Function that remembers whether it is to work in place."""

    __module__ = "mindtorch_v2.autograd.function"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
