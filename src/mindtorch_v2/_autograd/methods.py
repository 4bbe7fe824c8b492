"""Methods and properties of Tensor that belong to autograd: backward, grad, hooks, grad_fn, data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._core import dtype as dt
from .._core.copy_on_write import own_memory
from .._core.cpython import getrefcount
from .._core.keys import AUTOGRAD, META, SPARSE
from .._core.storage import SHARED, Storage
from .._core.tensor import Tensor, make_alias, storage_of, storage_with
from .._dispatch.observer import call_untraced
from .._dispatch.registry import aten
from . import anomaly, graph
from . import backward as _backward
from .handles import Handle
from .inference import is_inference
from .inplace import StaleView, live_views, may_have_views, why_not
from .nodes.node import Node
from .running import forward_levels


def backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Compute the gradients of this tensor with respect to the leaves and add them to their `.grad`."""
    call_untraced(_backward.backward, self, gradient, retain_graph, create_graph, None, inputs)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set whether ops on this leaf are recorded; returns the tensor."""
    held = getrefcount(self) > _IN_METHOD
    _require_grad(self, requires_grad, held)
    return self


def _requires_grad(self: Tensor) -> bool:
    if not self._keys & AUTOGRAD:
        return False
    if forward_levels:  # where tensors have a history for their tangents, too
        from .forward_ad import has_history

        return has_history(self)
    return True


def _set_requires_grad(self: Tensor, value: bool) -> None:
    held = getrefcount(self) > _IN_SETTER
    _require_grad(self, value, held)


def _require_grad(tensor: Tensor, on: bool, held: bool) -> None:
    """Set whether ops on a leaf are recorded; views that were taken of it before then require grad, too.

    They are searched for, which takes long, where `held` says that more than one variable refers to the tensor.
    """
    had = tensor._keys & AUTOGRAD
    graph.require_grad(tensor, on)
    if on and had and tensor._origin is not None and tensor._node.is_accumulator and tensor._node.variable is None:
        graph.become_leaf(tensor)
    if on and not had and held and tensor._base is None and may_have_views(tensor):
        for view in live_views(tensor):
            if not view._keys & AUTOGRAD and view._array.dtype.kind in graph.FLOATING:
                graph.require_grad(view)


class _Probe:
    """Measures the references to an object that one variable refers to, seen from its method and from its setter."""

    def in_method(self) -> int:
        return getrefcount(self)

    @property
    def in_setter(self) -> int:
        raise NotImplementedError

    @in_setter.setter
    def in_setter(self, counts: list[int]) -> None:
        counts.append(getrefcount(self))


_counts: list[int] = []
_probe = _Probe()
_probe.in_setter = _counts
_IN_METHOD, _IN_SETTER = _probe.in_method(), _counts[0]


def retain_grad(self: Tensor) -> None:
    """Have backward passes store the gradient of this tensor in its `.grad`, also if it is no leaf."""
    if not self._keys & AUTOGRAD:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    _backward.retain_grad(self)


def register_hook(self: Tensor, hook: Callable[..., Any]) -> Handle:
    """Call `hook(grad)` when the gradient of this tensor is computed; it may return another gradient."""
    if not self._keys & AUTOGRAD:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    hooks = self._node.own_hooks().tensor
    return Handle(hooks.setdefault(self._output_nr, {}), hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[..., Any]) -> Handle:
    """Call `hook(tensor)` after a gradient was added to this leaf's `.grad`."""
    if not self._keys & AUTOGRAD:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not self._node.is_accumulator:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return Handle(self._node.own_hooks().post_accumulate, hook)


def _get_grad(self: Tensor) -> Tensor | None:
    """`.grad`; torch's warning for a tensor that never gets one."""
    try:
        grad: Tensor | None = self._grad
    except AttributeError:
        grad = None
    if grad is None and self._keys & AUTOGRAD and not self._node.is_accumulator and not _retains_grad(self):
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
            "attribute won't be populated during autograd.backward(). If you indeed want the .grad field to "
            "be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access "
            "the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
            "github.com/pytorch/pytorch/pull/30531 for more informations.",
            stacklevel=2,
        )
    return grad


def _set_grad(self: Tensor, value: Tensor | None) -> None:
    """Set `.grad`; TypeError or RuntimeError for a gradient of another dtype or size."""
    if value is not None:
        if not isinstance(value, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        wanted = self._grad_dtype or self.dtype
        if (value._keys ^ self._keys) & META:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device type "
                f"'{self.device.type}'. Please ensure that the gradient and the tensor are on the same device"
            )
        if value.dtype != wanted:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{_c_name(value)}' to a tensor with grad_dtype "
                f"'{wanted.scalar_name}'. The gradient must match the tensor's grad_dtype (defaults to the "
                "tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to "
                "allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may "
                "break downstream systems that assume they match."
            )
        if value._array.shape != self._array.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
                f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same "
                "size"
            )
    self._grad = value


def _c_name(tensor: Tensor) -> str:
    """How torch's messages name the dtype of a gradient: as C++ does."""
    return {"Float": "float", "Double": "double", "Int": "int", "Long": "long int"}.get(
        tensor.dtype.scalar_name, tensor.dtype.scalar_name
    )


def _get_grad_dtype(self: Tensor) -> dt.dtype:
    """The dtype of a leaf's gradient: the leaf's own, unless another was set."""
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self._grad_dtype or self.dtype


def _set_grad_dtype(self: Tensor, value: Any) -> None:
    """Set the dtype in which this leaf's gradient is accumulated."""
    if value is None:
        raise NotImplementedError("grad_dtype = None: a gradient has the dtype of its leaf or the one that is set")
    if not isinstance(value, dt.dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    grad = getattr(self, "_grad", None)
    if grad is not None and grad.dtype != value:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{value.scalar_name}' because there is already a gradient with dtype "
            f"'{_c_name(grad)}'. Please clear the gradient (.grad = None) before changing grad_dtype, or ensure "
            "the new grad_dtype matches the existing gradient's dtype."
        )
    self._grad_dtype = value
    if self._keys & AUTOGRAD:
        self._node.inputs = (self._array.shape, value.np)


def _retains_grad(self: Tensor) -> bool:
    """Whether `retain_grad` was called on a tensor that is no leaf."""
    if not self._keys & AUTOGRAD or self._node.hooks is None:
        return False
    reference = self._node.hooks.retain.get(self._output_nr)
    return reference is not None and reference() is self


def _grad_fn(self: Tensor) -> Node | None:
    """The node of which this tensor is an output; None for a leaf."""
    if not self._keys & AUTOGRAD:
        return None
    if self._node.is_accumulator:
        if self._origin is not None and self._base is not None and self._version != self._origin[1]:
            raise RuntimeError(why_not(self, None, "its base or another view of its base has been"))
        return None
    node: Node = self._node
    if isinstance(node, StaleView):
        raise RuntimeError(node.message)
    return node


def _set_grad_fn(self: Tensor, value: None) -> None:
    """Drop the history; RuntimeError for a node."""
    if value is not None:
        raise RuntimeError("_grad_fn can be only set to None")
    aten.detach_(self)


def _get_backward_hooks(self: Tensor) -> dict[int, Callable[..., Any]] | None:
    """The hooks of `register_hook` by their numbers; None where there never was one."""
    if not self._keys & AUTOGRAD:
        return self.__dict__.get("_backward_hooks")
    hooks = self._node.hooks
    return None if hooks is None else hooks.tensor.get(self._output_nr)


def _set_backward_hooks(self: Tensor, hooks: dict[Any, Callable[..., Any]] | None) -> None:
    """Replace the hooks; those of a tensor that does not require grad are kept and never called."""
    if not self._keys & AUTOGRAD:
        self.__dict__["_backward_hooks"] = hooks
    elif hooks is None:
        self._node.own_hooks().tensor.pop(self._output_nr, None)
    else:
        self._node.own_hooks().tensor[self._output_nr] = hooks


def _refuse_deletion(message: str) -> Callable[[Tensor], None]:
    def delete(self: Tensor) -> None:
        raise RuntimeError(message)

    return delete


def _get_data(self: Tensor) -> Tensor:
    """The same memory without history; a write into it does not increment this tensor's version."""
    own = storage_of(self)
    own_memory(own)  # two counts of versions do not share memory with lazy copies
    alias = make_alias(self._array, self)
    alias._storage = Storage(own.owner, external=own.external or SHARED, device=own.place)
    return alias


def _set_data(self: Tensor, value: Tensor) -> None:
    """Let this tensor share the memory of another one; its history stays."""
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if (self._keys ^ value._keys) & (META | SPARSE):
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
        )
    if self._keys & AUTOGRAD and value._array.dtype.kind not in graph.FLOATING:
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
    for storage in (storage_of(self), storage_of(value)):
        own_memory(storage)  # two counts of versions do not share memory with lazy copies
    self._storage = storage_with(self, storage_of(value))
    self._array = value._array
    self._base = None
    self._keys = value._keys & ~AUTOGRAD | self._keys & AUTOGRAD
    if self._keys & AUTOGRAD:
        graph.refresh_accumulator(self)


def _volatile(self: Tensor) -> bool:
    """False, with torch's warning: what this said in early releases `no_grad()` says."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


def _set_volatile(self: Tensor, value: Any) -> None:
    """Nothing but torch's warning."""
    warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2)


METHODS: dict[str, Any] = {
    function.__name__: function
    for function in (
        backward,
        requires_grad_,
        retain_grad,
        register_hook,
        register_post_accumulate_grad_hook,
        is_inference,
    )
}

PROPERTIES: dict[str, property] = {
    "data": property(_get_data, _set_data, _refuse_deletion("Deleting tensor data is not allowed. Delete tensor instead!")),
    "grad_fn": property(_grad_fn),
    "_grad_fn": property(_grad_fn, _set_grad_fn, _refuse_deletion("Deletion of _grad_fn not allowed. Detach tensor instead!")),
    "_backward_hooks": property(
        _get_backward_hooks, _set_backward_hooks, _refuse_deletion("Deletion of _backwards_hooks not allowed!")
    ),
    "grad_dtype": property(_get_grad_dtype, _set_grad_dtype),
    "grad": property(_get_grad, _set_grad, lambda self: _set_grad(self, None)),
    "requires_grad": property(_requires_grad, _set_requires_grad, _refuse_deletion("requires_grad must be a bool")),
    "retains_grad": property(_retains_grad),
    "volatile": property(_volatile, _set_volatile),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "is_anomaly_check_nan_enabled": anomaly.is_anomaly_check_nan_enabled,
    "is_anomaly_enabled": anomaly.is_anomaly_enabled,
}
