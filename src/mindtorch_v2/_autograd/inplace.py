"""In-place ops on tensors with history, also through views: the tensor, its base and its views get new makers."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch import dispatcher, entry_globals, observer
from .._dispatch.registry import OpSpec, aten
from . import graph
from .accumulate import empty_strided
from .context import FunctionNode
from .graph import NoDerivative, derivative_of, fill_results, without_history
from .node import Edge, Gradients, Node
from .node_compiler import maker, mask_of
from .saved import freed, short_name, tie

_MANY = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output "
    "views to be modified inplace. You should replace the inplace operation by an out-of-place one."
)

_CUSTOM = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
    "logic to handle view+inplace would override the custom backward associated with the custom Function, "
    "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the "
    "custom Function."
)


def check_in_place(target: Tensor) -> None:
    """RuntimeError where torch forbids writing into a tensor."""
    if target._base is not None:
        check_view_in_place(target)
    if target._keys & AUTOGRAD and target._node.is_accumulator:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def check_view_in_place(view: Tensor) -> None:
    """RuntimeError where torch forbids writing into a view."""
    base = view._base
    assert base is not None
    if not view._keys & AUTOGRAD:
        if base._keys & AUTOGRAD:
            raise RuntimeError(
                "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that "
                "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
                "the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
                "tracked) or both outside (if you want the inplace to be tracked)."
            )
        return
    reason = _why_not(view, _maker(base))
    if reason:
        raise RuntimeError(
            f"Output {view._output_nr} of {short_name(view._node)} is a view and is being modified inplace. {reason}"
        )
    if base.is_leaf:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def _maker(base: Tensor) -> Node | None:
    return base._node if base._keys & AUTOGRAD else None


def _why_not(view: Tensor, end: Node | None) -> str:
    """Why a view with history must not be written into: what one of the views it was made through came from.

    `end` made the base when the view was taken: how the base came about does not matter.
    """
    node: Node | None = view._node
    while node is not None and node is not end:
        if isinstance(node, FunctionNode):
            return _CUSTOM
        if node.inputs.__class__ is list:
            return _MANY
        edge = node.edges[0] if node.edges else None
        node = None if edge is None else edge[0]
    return ""


def run_in_place(
    op: OpSpec, args: tuple[Any, ...], execute: Callable[[OpSpec, tuple[Any, ...]], Any] = dispatcher.execute
) -> Any:
    """An in-place op on tensors with history: the target becomes the result of the op's node."""
    state = threads.state
    target = args[0]
    derivative = derivative_of(op)
    if isinstance(derivative, NoDerivative):
        if state.grad_enabled and dispatcher.keys_of(args) & AUTOGRAD:
            check_in_place(target)
            without_history(execute, (op, args), {})
            derivative.record(args, target, state)
            return target
        return without_history(execute, (op, args), {})
    mask = mask_of(derivative, args)
    if not state.grad_enabled or not mask:
        return without_history(execute, (op, args), {})
    check_in_place(target)
    node = maker(derivative, mask)(args, state)
    without_history(execute, (op, args), {})
    array = target._array
    node.inputs = (array.shape, array.dtype)
    shared = _may_have_views(target)  # asked before the node saves its result, which holds the storage, too
    fill_results(node, (target,))
    if graph.watched():
        graph.tell(node)
    _rebase(target, node, 0, shared)
    return target


# ---------------------------------------------------------------- history


def rebase_history(target: Tensor, node: Node, number: int = 0) -> None:
    """Make `node` the maker of a tensor that was written in place; a view's base and its other views learn of it."""
    _rebase(target, node, number, _may_have_views(target))


def _may_have_views(target: Tensor) -> bool:
    """Whether somebody but a tensor that is written in place, and its base, holds their storage."""
    storage = target._storage
    # It is held by the target, by its base, by the variable and by the argument of getrefcount.
    return storage is not None and getrefcount(storage) > (3 if target._base is None else 4)


def _rebase(target: Tensor, node: Node, number: int, shared: bool) -> None:
    base = target._base
    before = _maker(target if base is None else base)
    if base is None:
        _move(target, node, number)
        base = target
    else:
        _move(base, CopySlices(base, target, node))
        _renew_view(target, base, before)
    if shared:
        for view in _live_views(base):
            if view is not target:
                _renew_view(view, base, before)


def _move(tensor: Tensor, node: Node, number: int = 0) -> None:
    """Give a tensor a new maker; a gradient that is to be kept is kept of the new value."""
    if tensor._keys & AUTOGRAD:
        hooks = tensor._node.hooks
        if hooks is not None:
            reference = hooks.retain.get(tensor._output_nr)
            if reference is not None and reference() is tensor:
                del hooks.retain[tensor._output_nr]
                node.own_hooks().retain[number] = reference
    tie(tensor, node, number)


def _live_views(base: Tensor) -> list[Tensor]:
    """The tensors that look at `base`. They are searched for, since views are made often and this is needed seldom."""
    return [held for held in gc.get_referrers(base) if isinstance(held, Tensor) and held._base is base]


def _renew_view(view: Tensor, base: Tensor, before: Node | None) -> None:
    """Make a view of a base that was written into a view of its new value; `before` made the old one."""
    reason = _why_not(view, before) if view._keys & AUTOGRAD else ""
    tie(view, StaleView(view, base, reason) if reason else AsStridedBackward0(view, base), 0)


class Geometry:
    """Where a view lies in its base, in elements of the view's dtype."""

    __slots__ = ("as_real", "offset", "shape", "strides")

    def __init__(self, view: Tensor, base: Tensor) -> None:
        array, whole = view._array, base._array
        item = array.itemsize
        self.shape = array.shape
        self.strides = tuple(s // item for s in array.strides)
        self.offset = (array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]) // item
        # A part of complex numbers, seen as real ones.
        self.as_real = whole.dtype.kind == "c" and array.dtype.kind != "c"

    def narrowed(self, dims: list[int]) -> Geometry:
        """The same without repetition along some dims."""
        made = copy.copy(self)
        made.shape = tuple(1 if d in dims else n for d, n in enumerate(self.shape))
        return made

    def overlaps(self) -> bool:
        """Whether two elements may lie at one place, apart from dims of one element."""
        reach = 0
        for stride, size in sorted((s, n) for s, n in zip(self.strides, self.shape, strict=True) if n > 1):
            if stride <= reach:
                return True
            reach += stride * (size - 1)
        return False

    def of(self, tensor: Tensor) -> Tensor:
        """The same part of another tensor that is laid out like the base."""
        whole = aten.view_as_real(tensor) if self.as_real else tensor
        part: Tensor = aten.as_strided(whole, self.shape, self.strides, self.offset)
        return part


class Layout:
    """How a base lies in memory."""

    __slots__ = ("dtype", "shape", "strides")

    def __init__(self, base: Tensor) -> None:
        array = base._array
        self.shape = array.shape
        self.strides = tuple(s // array.itemsize for s in array.strides)
        self.dtype = base.dtype

    def empty(self, grad: Tensor) -> Tensor:
        """An uninitialised tensor that lies like the base, for gradients like `grad`."""
        return empty_strided(grad, self.shape, self.strides, self.dtype)


class CopySlices(Node):
    """A base after one of its views was written: runs the writing op's node on the view's part of the gradient."""

    __slots__ = ("base", "node", "view")

    title = "torch::autograd::CopySlices"

    def __init__(self, base: Tensor, view: Tensor, node: Node) -> None:
        state = threads.state
        array = base._array
        own: Edge | None = (base._node, base._output_nr) if base._keys & AUTOGRAD else None
        self.base = Layout(base)
        self.view = Geometry(view, base)
        self.node: Node | None = node
        self.edges = (own, *node.edges[1:])
        self.inputs = (array.shape, array.dtype)
        self.hooks = None
        self.sequence = state.sequence
        state.sequence += 1

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        grad = grads[0]
        if grad is None:
            return [None] * len(self.edges)
        if self.node is None:
            raise freed()
        whole = aten.copy_(self.base.empty(grad), grad)
        part = self.view.of(whole)
        results = self._run(aten.clone(part))
        if self.edges[0] is not None:
            if results[0] is not None:
                aten.copy_(part, results[0])
            results[0] = whole
        return results

    def _run(self, grad: Tensor) -> Gradients:
        """Run the writing op's node, which shows in a profile inside this one."""
        node = self.node
        assert node is not None
        start = observer.clock()
        try:
            results: Gradients = node.plan.run(node, grad, True)
            return results
        finally:
            span = threads.state.span
            if entry_globals.observers_active and span is not None:
                span(node.name(), observer.BACKWARD, start, observer.clock(), node.sequence)

    def release(self) -> None:
        self.node = None


class _ViewNode(Node):
    """A view whose base was written after the view was made."""

    __slots__ = ("base", "view")

    def __init__(self, view: Tensor, base: Tensor) -> None:
        state = threads.state
        array = view._array
        self.base = Layout(base)
        self.view = Geometry(view, base)
        self.edges = ((base._node, base._output_nr),)
        self.inputs = (array.shape, array.dtype)
        self.hooks = None
        self.sequence = state.sequence
        state.sequence += 1


class AsStridedBackward0(_ViewNode):
    """Puts the view's gradient where the view lies in the base."""

    __slots__ = ()

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        grad = grads[0]
        if grad is None:
            return [None]
        whole = aten.zero_(self.base.empty(grad))
        view = self.view
        # Dims along which the view repeats its elements: their gradients add up.
        sizes = zip(view.shape, view.strides, strict=True)
        repeated = [d for d, (size, stride) in enumerate(sizes) if size > 1 and not stride]
        if repeated:
            grad = aten.sum(grad, repeated, True)
            view = view.narrowed(repeated)
        if view.overlaps():
            raise NotImplementedError(
                "the gradient of a view whose elements overlap in memory (as those of unfold "
                "do), after its base was written in place"
            )
        aten.copy_(view.of(whole), grad)
        return [whole]


class StaleView(_ViewNode):
    """A view that must not be used any more, since its base was written: its gradient is not defined."""

    __slots__ = ("message",)

    def __init__(self, view: Tensor, base: Tensor, reason: str) -> None:
        self.message = (
            f"Output {view._output_nr} of {short_name(view._node)} is a view and its base or another view "
            f"of its base has been modified inplace. {reason}"
        )
        super().__init__(view, base)

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        raise RuntimeError(self.message)


entry_globals.install(run_in_place=run_in_place)
