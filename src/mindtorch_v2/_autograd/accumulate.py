"""AccumulateGrad: where a path of the graph ends in a leaf, and when a gradient may be taken over or added to."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

from .._core.keys import AUTOGRAD, SPARSE
from .._core.memory_format import contiguous_format
from .._core.tensor import Tensor
from .._dispatch.observer import call_user_code
from .._dispatch.registry import aten
from .node import Gradients, Node

# Runs as soon as it is ready: larger than any forward op's number.
ACCUMULATE_SEQUENCE = 1 << 62

# Two threads may bring gradients to one leaf at a time. Hooks and subclasses may start another backward inside.
_lock = threading.RLock()


class AccumulateGrad(Node):
    """Adds what arrives to a leaf's `.grad`. The leaf owns it, so it holds the leaf weakly."""

    __slots__ = ("_variable",)

    is_accumulator = True
    title = "torch::autograd::AccumulateGrad"

    def __init__(self, variable: Tensor) -> None:
        self._variable = weakref.ref(variable)
        self.edges = ()
        self.inputs = (variable._array.shape, _gradient_dtype(variable))
        self.sequence = ACCUMULATE_SEQUENCE
        self.hooks = None

    @property
    def variable(self) -> Tensor | None:
        return self._variable()

    def fits(self, variable: Tensor) -> bool:
        """Whether the leaf still looks as it did; it may have been given other data since."""
        shape, dtype = self.inputs
        return bool(variable._array.shape == shape and _gradient_dtype(variable) == dtype)

    def apply(self, grads: Gradients) -> Sequence[Tensor | None]:
        self.accumulate(grads, False)
        return ()

    def accumulate(self, waiting: list[Any], create_graph: bool) -> None:
        """Add the gradient that `waiting` ends with, and holds alone if nobody else has it."""
        variable = self._variable()
        grad = waiting.pop()
        if variable is None or grad is None:
            return
        with _lock:
            held = variable._grad
            if held is None:
                if not create_graph and getrefcount(grad) <= HELD_ALONE and may_steal(grad, variable):
                    variable._grad = aten.detach(grad)
                else:
                    variable._grad = copy_like(grad, variable)
            elif create_graph or (held._keys | grad._keys) & SPARSE:
                variable._grad = aten.add(held, grad)
            else:
                aten.add_(held, grad)
        if self.hooks is not None:
            for hook in list(self.hooks.post_accumulate.values()):
                call_user_code(hook, variable)

    def _sequence_nr(self) -> int:
        return (1 << 64) - 1


def _gradient_dtype(variable: Tensor) -> Any:
    """The NumPy dtype of a leaf's gradient."""
    chosen = variable._grad_dtype
    return variable._array.dtype if chosen is None else chosen.np


def _known() -> tuple[int, int]:
    """What getrefcount says of an object that one variable holds, and of one that something else holds as well.

    Interpreters differ in whether the call itself counts.
    """
    alone = object()
    holder = [object()]
    shared = holder[0]
    return getrefcount(alone), getrefcount(shared)


HELD_ALONE, HELD_ONCE_MORE = _known()


def may_steal(grad: Tensor, variable: Tensor) -> bool:
    """Whether a gradient that nobody else holds can become `.grad` as it is: laid out like the leaf, its own memory."""
    return grad._array.strides == variable._array.strides and not grad._keys and owns_memory(grad)


def owns_memory(tensor: Tensor) -> bool:
    """Whether no other tensor looks at this one's memory: it has its own, or its base is known to it alone."""
    base, storage = tensor._base, tensor._storage
    if base is None:
        return storage is None or getrefcount(storage) <= HELD_ONCE_MORE
    # The storage is held by the base as well.
    return getrefcount(base) <= HELD_ONCE_MORE and getrefcount(storage) <= HELD_ONCE_MORE + 1


def copy_like(grad: Tensor, variable: Tensor) -> Tensor:
    """A copy of a gradient, laid out like its leaf if the leaf is dense."""
    array = variable._array
    if grad._keys & ~AUTOGRAD or not is_dense(array):
        copied: Tensor = aten.clone(grad, memory_format=contiguous_format)
        return copied
    return copied_into(empty_strided(grad, array.shape, [s // array.itemsize for s in array.strides]), grad)


def copied_into(target: Tensor, grad: Tensor) -> Tensor:
    aten.copy_(target, grad)
    return target


def is_dense(array: Any) -> bool:
    """Whether an array fills its memory without gaps or overlaps, in some order of dims."""
    if array.flags.forc:
        return True
    step = array.itemsize
    for stride, size in sorted((s, n) for s, n in zip(array.strides, array.shape, strict=True) if n != 1):
        if stride != step:
            return False
        step *= size
    return True


def empty_strided(like: Tensor, shape: Any, strides: Any, dtype: Any = None) -> Tensor:
    """An uninitialised tensor with these sizes and strides."""
    made: Tensor = aten.new_empty_strided(like, shape, strides, dtype=dtype)
    return made
