"""In-place ops on tensors with history, also through views: the tensor, its base and its other views get new nodes.

An op that writes into a tensor makes that tensor the output of its node. If the tensor is a view, its base becomes the output
of a CopySlices, which runs the op's node on the view's part of the gradient; if it has views, each of them becomes the output
of an AsStridedBackward0 on the new value of the base.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.cpython import REFCOUNT_WITH_OWNER, getrefcount, referrers
from .._core.keys import AUTOGRAD, CONJUGATED, LAZY, NEGATED
from .._core.strides import memory_of, overlaps
from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch import dispatcher, entry_globals, observer
from .._dispatch.registry import OpSpec, aten
from . import graph
from .context import FunctionNode
from .graph import (
    CUSTOM,
    FLOATING,
    INFERENCE,
    NO_GRAD,
    NoDerivative,
    derivative_of,
    fill_results,
    not_implemented_node,
    without_history,
)
from .nodes.accumulate import AccumulateGrad, empty_strided
from .nodes.node import Edge, Gradients, Node
from .nodes.node_compiler import make_for, mask_of
from .nodes.saved import freed, set_history, short_name

MANY = "many"
"""Of a view that an op returned together with others."""


def _ambiguous(block: str) -> str:
    return (
        "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
        f"the view and the inplace either both inside the {block} block (if you don't want the inplace to be tracked) or "
        "both outside (if you want the inplace to be tracked)."
    )


_REASONS = {
    MANY: "This view is the output of a function that returns multiple views. Such functions do not allow the output "
    "views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    CUSTOM: "This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
    "logic to handle view+inplace would override the custom backward associated with the custom Function, "
    "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the "
    "custom Function.",
    NO_GRAD: _ambiguous("no_grad"),
    INFERENCE: _ambiguous("inference_mode"),
}
"""Why a view must not be written into, by how it was taken."""


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
    message = why_not(view, _node_of(base), "is being")
    if message:
        raise RuntimeError(message)
    if view._keys & AUTOGRAD and base.is_leaf:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def _node_of(tensor: Tensor) -> Node | None:
    return tensor._node if tensor._keys & AUTOGRAD else None


def why_not(view: Tensor, end: Node | None, modified: str) -> str:
    """torch's message for a view that must not be written into, empty if it may be.

    That depends on how it was taken, or a view on the way to it; `end` is the node of the base when the view was taken: how the
    base was computed does not matter. `modified` says what was written into: "is being" for the view itself.
    """
    origin = "" if view._origin is None else view._origin[0]
    node: Node | None = _node_of(view)
    computed = node is not None and not node.is_accumulator
    if not origin:
        if not computed and view._base._keys & AUTOGRAD and not view._keys & AUTOGRAD:
            origin = NO_GRAD
        while node is not None and node is not end and not origin:
            if isinstance(node, AccumulateGrad):
                origin = node.origin
            elif isinstance(node, FunctionNode):
                origin = CUSTOM
            elif node.inputs.__class__ is list:
                origin = MANY
            edge = node.edges[0] if node.edges else None
            node = None if edge is None else edge[0]
    if not origin:
        return ""
    if computed and origin in (MANY, CUSTOM):
        start = f"Output {view._output_nr} of {short_name(view._node)} is a view and {modified} modified inplace."
    else:
        taken = f"Output {view._output_nr} of {short_name(view._node)} is a view of a view which" if computed else "A view"
        start = f"{taken} was created in " + (
            f"inference mode and {modified} modified inplace in normal mode."
            if origin == INFERENCE
            else f"no_grad mode and {modified} modified inplace with grad mode enabled."
        )
    return f"{start} {_REASONS[origin]}"


def run_in_place(
    op: OpSpec, args: tuple[Any, ...], execute: Callable[[OpSpec, tuple[Any, ...]], Any] = dispatcher.execute
) -> Any:
    """Run an in-place op on tensors with history: the target becomes the output of the op's node."""
    state = threads.state
    target = args[0]
    if op.stops_at_integers and target._array.dtype.kind not in FLOATING:
        return without_history(execute, (op, args), {})
    derivative = derivative_of(op)
    if isinstance(derivative, NoDerivative):
        if state.grad_enabled and dispatcher.keys_of(args) & AUTOGRAD:
            check_in_place(target)
            shared = may_have_views(target)
            without_history(execute, (op, args), {})
            if not op.nondiff and target._array.dtype.kind in FLOATING:
                unknown = not_implemented_node(op, args, (target,), state)
                unknown.inputs = (target._array.shape, target._array.dtype)
                _rebase(target, unknown, 0, shared)
            return target
        return without_history(execute, (op, args), {})
    mask = mask_of(derivative, args)
    if not state.grad_enabled or not mask:
        return without_history(execute, (op, args), {})
    check_in_place(target)
    node = make_for(derivative, mask)(args, state)
    without_history(execute, (op, args), {})
    array = target._array
    node.inputs = (array.shape, array.dtype)
    shared = may_have_views(target)  # asked before the node saves its result, which refers to the storage, too
    fill_results(node, (target,))
    if graph.has_node_listeners():
        graph.notify_node(node)
    _rebase(target, node, 0, shared, op.reshapes)
    return target


# ---------------------------------------------------------------- history


def rebase_history(target: Tensor, node: Node, number: int = 0) -> None:
    """Make a tensor that was written in place the output `number` of `node`, and update its base and the views of that."""
    _rebase(target, node, number, may_have_views(target))


def may_have_views(target: Tensor) -> bool:
    """Whether anything but a tensor that is written in place, and its base, refers to their storage."""
    storage = target._storage
    return storage is not None and getrefcount(storage) > REFCOUNT_WITH_OWNER + (target._base is not None)


def _rebase(target: Tensor, node: Node, number: int, shared: bool, reshaped: bool = False) -> None:
    """`rebase_history`, where the caller knows whether the storage may be shared with further views, and whether the target got
    another shape and its memory stayed as it was."""
    base = target._base
    before = _node_of(target if base is None else base)
    if base is None or reshaped:
        _replace_history(target, node, number)
        base = target if base is None else base
    else:
        _replace_history(base, CopySlices(base, target, node))
        _update_view(target, base, before)
    if shared:
        for view in live_views(base):
            if view is not target:
                _update_view(view, base, before)


def _replace_history(tensor: Tensor, node: Node, number: int = 0) -> None:
    """Make a tensor the output of another node; `retain_grad` then means the gradient of the new value."""
    if tensor._keys & AUTOGRAD:
        hooks = tensor._node.hooks
        if hooks is not None:
            reference = hooks.retain.get(tensor._output_nr)
            if reference is not None and reference() is tensor:
                del hooks.retain[tensor._output_nr]
                node.own_hooks().retain[number] = reference
    set_history(tensor, node, number)


def live_views(base: Tensor) -> list[Tensor]:
    """The views of `base` that are alive. They are searched for: views are made often, and this is needed seldom."""
    return [tensor for tensor in referrers(base, Tensor) if tensor._base is base]


def _update_view(view: Tensor, base: Tensor, before: Node | None) -> None:
    """Make a view that of the base's new value; `before` is the node of the old one."""
    message = why_not(view, before, "its base or another view of its base has been") if view._keys & AUTOGRAD else ""
    _replace_history(view, StaleView(view, base, message) if message else AsStridedBackward0(view, base))


def _steps(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements. NumPy's may be negative along dims without or with one element, where they mean nothing."""
    return tuple(abs(s) // array.itemsize for s in array.strides)


class Geometry:
    """Offset, sizes and strides of a view in its base, in elements of the view's dtype."""

    __slots__ = ("as_complex", "as_real", "lazy", "offset", "shape", "strides")

    def __init__(self, view: Tensor, base: Tensor) -> None:
        array, whole = view._array, base._array
        item = array.itemsize
        self.shape = array.shape
        self.strides = _steps(array)
        # Counted in the memory of each: `set_` may have put the view on another.
        self.offset = (memory_of(array)[1] - memory_of(whole)[1]) // item
        # A view of real or imaginary parts.
        self.as_real = whole.dtype.kind == "c" and array.dtype.kind != "c"
        # A view of pairs of numbers as complex ones.
        self.as_complex = whole.dtype.kind != "c" and array.dtype.kind == "c"
        # Whether the view shows the base's values conjugated or negated.
        lazy = (view._keys ^ base._keys) & LAZY
        self.lazy = lazy & ~CONJUGATED if self.as_real else lazy

    def narrowed(self, dims: list[int]) -> Geometry:
        """The same with size 1 along `dims`, along which elements repeat."""
        narrowed = copy.copy(self)
        narrowed.shape = tuple(1 if d in dims else n for d, n in enumerate(self.shape))
        return narrowed

    def of(self, tensor: Tensor) -> Tensor:
        """The same part of another tensor that is laid out like the base."""
        part: Tensor
        if self.as_complex:
            strides = (*[2 * step for step in self.strides], 1)
            part = aten.view_as_complex(aten.as_strided(tensor, (*self.shape, 2), strides, 2 * self.offset))
        else:
            whole = aten.view_as_real(tensor) if self.as_real else tensor
            part = aten.as_strided(whole, self.shape, self.strides, self.offset)
        if self.lazy & CONJUGATED:
            part = aten._conj(part)
        return aten._neg_view(part) if self.lazy & NEGATED else part


class Layout:
    """Sizes, strides and dtype of a base."""

    __slots__ = ("dtype", "shape", "strides")

    def __init__(self, base: Tensor) -> None:
        array = base._array
        self.shape = array.shape
        self.strides = _steps(array)
        self.dtype = base.dtype

    def empty(self, grad: Tensor) -> Tensor:
        """An uninitialized tensor that is laid out like the base, on the device of `grad`."""
        return empty_strided(grad, self.shape, self.strides, self.dtype)


class CopySlices(Node):
    """The node of a base of which a view was written in place: runs the op's node on the view's part of the gradient."""

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
        """Run the op's node, with a span inside that of this node."""
        node = self.node
        assert node is not None
        start = observer.clock()
        try:
            results: Gradients = node.plan.run(node, [grad] if node.inputs.__class__ is list else grad, True)
            return results
        finally:
            span = threads.state.span
            if entry_globals.observers_active and span is not None:
                span(node.name(), observer.BACKWARD, start, observer.clock(), node.sequence)

    def release(self) -> None:
        self.node = None


class _ViewNode(Node):
    """The node of a view whose base was written in place after the view was taken."""

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
    """Copies the gradient of a view to its place in a zero gradient of the base."""

    __slots__ = ()

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        grad = grads[0]
        if grad is None:
            return [None]
        whole = aten.zero_(self.base.empty(grad))
        view = self.view
        # Along these dims the view repeats its elements: their gradients add up.
        sizes = zip(view.shape, view.strides, strict=True)
        repeated = [d for d, (size, stride) in enumerate(sizes) if size > 1 and not stride]
        if repeated:
            grad = aten.sum(grad, repeated, True)
            view = view.narrowed(repeated)
        if overlaps(view.shape, view.strides):
            return [self._added_up(view, grad)]
        aten.copy_(view.of(whole), grad)
        return [whole]

    def _added_up(self, view: Geometry, grad: Tensor) -> Tensor:
        """The gradient of the base where elements of the view overlap in memory, as those of unfold do."""
        if view.as_real or view.lazy:
            raise NotImplementedError(
                "the gradient of a view whose elements overlap in memory, and that shows a complex base otherwise than it is, "
                "after the base was written in place"
            )
        shape, strides = self.base.shape, self.base.strides
        count = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        places = aten.as_strided(aten.arange(count), view.shape, view.strides, view.offset)
        memory = aten.new_zeros(grad, (count,), dtype=self.base.dtype)
        added = aten.index_add(memory, 0, aten.reshape(places, (-1,)), aten.reshape(grad, (-1,)))
        whole: Tensor = aten.as_strided(added, shape, strides)
        return whole


class StaleView(_ViewNode):
    """The node of a view that has no gradient any more, since its base was written in place: its backward raises."""

    __slots__ = ("message",)

    def __init__(self, view: Tensor, base: Tensor, message: str) -> None:
        self.message = message
        super().__init__(view, base)

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        raise RuntimeError(self.message)


def record_unknown(op: OpSpec, args: tuple[Any, ...], targets: tuple[Tensor, ...], moved: bool = False) -> None:
    """Make tensors that an op without a derivative has written the outputs of a node that raises in backward. Where it has
    `moved` them to another memory, views may lie in the old one."""
    floating = [target._array.dtype.kind in FLOATING for target in targets]
    if any(floating):
        node = not_implemented_node(op, args, targets, threads.state)
        for number, target in enumerate(targets):
            if floating[number]:
                _rebase(target, node, number, moved or may_have_views(target))


entry_globals.install(run_in_place=run_in_place, check_in_place=check_in_place, record_unknown=record_unknown)
