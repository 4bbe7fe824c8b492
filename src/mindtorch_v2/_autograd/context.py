"""`ctx` of a custom Function, on which forward saves what backward reads, and the node that calls its backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .._core import dtype as dt
from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .._dispatch.observer import call_user_code
from .._dispatch.registry import aten
from .handles import Handle
from .nodes.node import Gradients, Node
from .nodes.saved import freed, result_parts, set_history, unpack_one, unpack_result, version_of
from .running import running


class FunctionCtx:
    """The `ctx` argument of a Function's `forward` and `backward`. Any attribute may be set on it."""

    __module__ = "mindtorch_v2.autograd.function"

    to_save: tuple[Any, ...] | None = None
    saved_for_forward: tuple[Any, ...] | None = None
    dirty_tensors: tuple[Any, ...] | None = None
    non_differentiable: tuple[Any, ...] | None = None
    materialize_grads = True
    _materialize_non_diff_grads = True
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Save tensors (or None) for backward, where `ctx.saved_tensors` returns them."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors for jvp, where `ctx.saved_tensors` returns them."""
        for tensor in tensors:
            if not (isinstance(tensor, Tensor) or tensor is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Declare which inputs forward changed in place; it has to return them."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing: storages are tracked without it."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. Note "
            "that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Declare which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (the default) or None for outputs that were not used."""
        self.materialize_grads = value


class BackwardCFunction(FunctionCtx):
    """The `ctx` of one call of a Function; each Function has a subclass named after it."""

    __module__ = "mindtorch_v2.autograd.function"

    _forward_cls: Any
    # Whether jvp is running.
    _pushing = False
    _node: Callable[[], FunctionNode | None] = staticmethod(lambda: None)

    def apply(self, *args: Any) -> Any:
        """Call the Function's backward (or vjp) with the gradients of its outputs."""
        return self._forward_cls._derivative()(self, *args)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors of `save_for_backward`; RuntimeError if they were freed, or modified in place since."""
        if self._pushing:
            return self.saved_for_forward or ()
        node = self._node()
        if node is None:
            return self.to_save or ()
        return node.unpacked()

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """Deprecated name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def _keep_saved(self, node: FunctionNode) -> None:
        """Move the tensors of `save_for_backward` to the node, with their versions."""
        saved: list[Any] = []
        for position, value in enumerate(self.to_save or ()):
            if value is None:
                saved.append((None, None))
            elif not isinstance(value, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {position} is of type {type(value).__name__}"
                )
            elif value._keys & AUTOGRAD and value._node is node:
                saved.append((value._output_nr, *result_parts(value)))
            else:
                saved.append((value, version_of(value)))
        node.saved = tuple(saved)
        self.to_save = None

    def _own_node(self) -> FunctionNode:
        node = self._node()
        if node is None:
            raise RuntimeError(
                "Attribute is invalid for this instance of _C._FunctionBase: the Function was run without history"
            )
        return node

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return self._own_node().next_functions

    @property
    def metadata(self) -> dict[str, Any]:
        return self._own_node().metadata

    def _sequence_nr(self) -> int:
        return self._own_node().sequence

    def register_hook(self, fn: Callable[..., Any]) -> Handle:
        return self._own_node().register_hook(fn)

    def register_prehook(self, fn: Callable[..., Any]) -> Handle:
        return self._own_node().register_prehook(fn)


class FunctionNode(Node):
    """The node of one call of a custom Function. Attributes that it lacks are looked up on its `ctx`."""

    __slots__ = ("__weakref__", "constants", "ctx", "devices", "is_tensor", "saved")

    ctx: BackwardCFunction
    # Device of each output, and which arguments of forward were tensors; edges are those of the tensors.
    devices: Sequence[Any]
    is_tensor: tuple[bool, ...]
    # The numbers of the outputs that were marked as not differentiable.
    constants: Sequence[int]
    # (tensor, version), or (output number, array, storage, version, keys) of a tensor that is an output of this node.
    saved: tuple[Any, ...] | None

    def __getattr__(self, name: str) -> Any:
        if name == "_raw_saved_tensors":
            from .nodes.saved_tensor import raw_saved_of_function  # loaded for the few programs that look

            return raw_saved_of_function(self)
        if name in ("constants", "ctx", "devices", "inputs", "is_tensor", "saved"):
            raise AttributeError(name)
        return getattr(self.ctx, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of its ctx: in torch the two are one object, an instance of the Function's `_backward_cls`."""
        return self.ctx.__class__

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at 0x{id(self):x}>"

    def unpacked(self) -> tuple[Any, ...]:
        """The saved tensors; one that is an output of this node gets its history back."""
        if self.saved is None:
            raise freed()
        values = []
        for slot in self.saved:
            if len(slot) == 2:
                values.append(unpack_one(self, *slot))
            else:
                values.append(unpack_result(self, *slot))
                set_history(values[-1], self, slot[0])
        return tuple(values)

    def release(self) -> None:
        if self.saved:
            self.saved = None

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        ctx = self.ctx
        if ctx.materialize_grads:
            left = () if ctx._materialize_non_diff_grads else self.constants
            grads = [self._zeros(number) if grad is None and number not in left else grad for number, grad in enumerate(grads)]
        running.node = self
        returned = call_user_code(ctx.apply, *grads)
        results = list(returned) if isinstance(returned, tuple) else [returned]
        expected = len(self.is_tensor)
        if len(results) > expected and all(extra is None for extra in results[expected:]):
            del results[expected:]
        if len(results) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got {len(results)})"
            )
        gradients: list[Tensor | None] = []
        for position, (is_tensor, result) in enumerate(zip(self.is_tensor, results, strict=True)):
            if is_tensor:
                if not isinstance(result, Tensor) and result is not None:
                    raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
                gradients.append(result)
            elif result is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position "
                    f"{position + 1}, but the corresponding forward input was not a Variable"
                )
        return gradients

    def _zeros(self, number: int) -> Tensor | None:
        """The gradient of an output that no other op used."""
        form = self.inputs[number]
        if form is None:
            return None
        shape, np_dtype = form
        zeros: Tensor = aten.zeros(shape, dtype=dt.from_numpy(np_dtype), device=self.devices[number])
        return zeros
