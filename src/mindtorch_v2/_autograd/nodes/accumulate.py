"""AccumulateGrad, the node at which a path of the graph ends in a leaf, and when `.grad` may take a gradient's memory over."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.cpython import REFCOUNT_OF_LOCAL, REFCOUNT_WITH_OWNER, getrefcount
from ..._core.keys import AUTOGRAD, SPARSE
from ..._core.memory_format import contiguous_format
from ..._core.sparse import SparseTensor
from ..._core.strides import is_dense
from ..._core.tensor import Tensor
from ..._dispatch.observer import call_user_code
from ..._dispatch.registry import aten
from .node import Gradients, Node

# Runs as soon as it is ready: larger than any forward op's number.
ACCUMULATE_SEQUENCE = 1 << 62

# Two threads may add gradients to one leaf at a time. Reentrant: hooks and subclasses may start another backward inside.
_lock = threading.RLock()


class LeafRef(weakref.ref[Tensor]):
    """The reference of an AccumulateGrad to its leaf; of a class of its own, so that others tell it from a program's."""

    __slots__ = ()


def _no_variable() -> None:
    """The reference of a node that has no leaf."""


class AccumulateGrad(Node):
    """Adds the gradient that arrives to a leaf's `.grad`. The leaf owns this node, which refers to it weakly."""

    __slots__ = ("_variable", "origin")

    is_accumulator = True
    title = "torch::autograd::AccumulateGrad"

    def __init__(self, variable: Tensor) -> None:
        self._variable: Callable[[], Tensor | None] = LeafRef(variable)
        self.edges = ()
        self.inputs = (variable._array.shape, _gradient_dtype(variable))
        self.sequence = ACCUMULATE_SEQUENCE
        self.hooks = None
        # How the leaf was taken, if it is a view that must not be written into: see `inplace`.
        self.origin = ""

    @property
    def variable(self) -> Tensor | None:
        """The leaf, None once it is gone."""
        return self._variable()

    @property
    def is_end(self) -> bool:
        """Whether gradients end here without a leaf that gets them."""
        return self._variable is _no_variable

    def become_end(self, origin: str) -> None:
        """Become the node of a view that must not be written into: as in torch it requires grad, and gets none."""
        self.origin = origin
        self._variable = _no_variable

    def fits(self, variable: Tensor) -> bool:
        """Whether the leaf still has the shape and gradient dtype of this node; `.data` may have replaced its memory."""
        shape, dtype = self.inputs
        return bool(variable._array.shape == shape and _gradient_dtype(variable) == dtype)

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        self.accumulate(grads, False)
        return ()

    def accumulate(self, waiting: list[Any], create_graph: bool) -> None:
        """Add the last item of `waiting`, a gradient, to the leaf's `.grad`.

        It is taken out of the list, so that its reference count tells whether anything but this call refers to it: then its
        memory becomes that of `.grad`, else it is copied.
        """
        variable = self._variable()
        grad = waiting.pop()
        if variable is None or not variable._keys & AUTOGRAD:  # it is gone, or asks for no gradient any more
            return
        if grad is None:
            if self.hooks is not None:
                self._run_post_accumulate(variable)
            return
        with _lock:
            total = variable._grad
            if total is None:
                # The node's own hooks see what it took; as in torch, they do not keep the leaf from taking it over.
                shown = self.hooks is not None and bool(self.hooks.after)
                if not create_graph and getrefcount(grad) <= REFCOUNT_OF_LOCAL + shown and may_steal(grad, variable):
                    variable._grad = grad.detach() if grad._keys & SPARSE else aten.detach(grad)
                else:
                    variable._grad = copy_like(grad, variable)
            elif create_graph or (total._keys & SPARSE and not grad._keys & SPARSE):
                variable._grad = aten.add(total, grad)
            else:
                aten.add_(total, grad)
        if self.hooks is not None:
            self._run_post_accumulate(variable)

    def _run_post_accumulate(self, variable: Tensor) -> None:
        """Call the hooks of `register_post_accumulate_grad_hook`."""
        assert self.hooks is not None
        for hook in list(self.hooks.post_accumulate.values()):
            if call_user_code(hook, variable) is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")

    def _sequence_nr(self) -> int:
        return (1 << 64) - 1


def _gradient_dtype(variable: Tensor) -> Any:
    """The NumPy dtype of a leaf's gradient."""
    grad_dtype = variable._grad_dtype
    return variable._array.dtype if grad_dtype is None else grad_dtype.np


def may_steal(grad: Tensor, variable: Tensor) -> bool:
    """Whether a gradient that only the caller refers to can become `.grad` as it is: laid out like the leaf, its own memory."""
    if type(grad) is SparseTensor:
        parts = grad._coordinates._array, grad._entries._array
        return bool(parts[0].flags.c_contiguous and parts[1].flags.c_contiguous)
    array = grad._array
    # An array in which a dim repeats one place is not writeable, and the next gradient is to be added to it.
    return array.strides == variable._array.strides and not grad._keys and array.flags.writeable and owns_memory(grad)


def owns_memory(tensor: Tensor) -> bool:
    """Whether no other tensor shares this one's memory: it has its own, or only this tensor refers to its base."""
    base, storage = tensor._base, tensor._storage
    if base is None:
        return storage is None or getrefcount(storage) <= REFCOUNT_WITH_OWNER
    # The base refers to the storage as well.
    return getrefcount(base) <= REFCOUNT_WITH_OWNER and getrefcount(storage) <= REFCOUNT_WITH_OWNER + 1


def copy_like(grad: Tensor, variable: Tensor) -> Tensor:
    """A copy of a gradient, laid out like its leaf if the leaf is dense."""
    array = variable._array
    if grad._keys & ~AUTOGRAD or not is_dense(array):
        copied: Tensor = aten.clone(grad, memory_format=contiguous_format)
        return copied
    copied = empty_strided(grad, array.shape, [s // array.itemsize for s in array.strides])
    aten.copy_(copied, grad)
    return copied


def empty_strided(like: Tensor, shape: Any, strides: Any, dtype: Any = None) -> Tensor:
    """An uninitialized tensor with these sizes and strides, on the device of `like`."""
    empty: Tensor = aten.new_empty_strided(like, shape, strides, dtype=dtype)
    return empty
