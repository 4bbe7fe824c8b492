"""Inference tensors: what ops make inside inference_mode, which autograd must not meet later.

Ops do not look at the mode. While a thread is inside, the function with which entries make their results marks them;
while marked tensors live, new nodes are looked through for them. A storage of their own, whose version only grows inside
the mode, notices who writes into them outside; by then the values are written.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from .._core.storage import Storage, owner_of
from .._core.tensor import Tensor, make_tensor, make_view, storage_of
from .._core.threads import threads
from .._dispatch import namespace
from .context import FunctionNode
from .graph import OpNode, watch_nodes
from .node import Node

_plain_new = object.__new__
_lock = threading.RLock()
_alive: set[weakref.ref[Tensor]] = set()


class _Count:
    inside = 0


_count = _Count()


def enter() -> None:
    """A thread goes into inference mode."""
    with _lock:
        _count.inside += 1
        namespace.new = _new_marked
        namespace.make_tensor = _make_marked


def leave() -> None:
    """A thread comes out of it."""
    with _lock:
        _count.inside -= 1
        if not _count.inside:
            namespace.new = _plain_new
            namespace.make_tensor = make_tensor


def is_inference(tensor: Tensor) -> bool:
    """Whether a tensor was made inside inference_mode, or is a view of one that was."""
    base = tensor._base
    return bool((tensor if base is None else base)._inference)


class InferenceStorage(Storage):
    """The memory of inference tensors, which may be written inside of inference_mode only."""

    __slots__ = ("_version",)

    @property
    def version(self) -> int:
        return self._version

    @version.setter
    def version(self, value: int) -> None:
        if value and not threads.state.inference:
            raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone "
                               "to get a normal tensor before doing inplace update.See "
                               "https://github.com/pytorch/rfcs/pull/17 for more details.")
        self._version = value


def _storage_of(tensor: Tensor) -> Storage:
    storage = tensor._storage
    if storage is None and is_inference(tensor):
        storage = tensor._storage = InferenceStorage(owner_of(tensor._array))
    return storage_of(tensor) if storage is None else storage


def _make_view(array: Any, of: Tensor) -> Tensor:
    if of._storage is None:
        _storage_of(of)
    return make_view(array, of)


def _new_marked(cls: type) -> Any:
    made: Any = _plain_new(cls)
    if threads.state.inference:
        _mark(made)
    return made


def _make_marked(array: Any) -> Tensor:
    made = make_tensor(array)
    if threads.state.inference:
        _mark(made)
    return made


def _mark(tensor: Any) -> None:
    tensor._inference = True
    with _lock:
        if not _alive:
            watch_nodes(_check, True)
            namespace.storage_of, namespace.make_view = _storage_of, _make_view
        _alive.add(weakref.ref(tensor, _gone))


def _gone(reference: weakref.ref[Tensor]) -> None:
    with _lock:
        _alive.discard(reference)
        if not _alive:
            watch_nodes(_check, False)
            namespace.storage_of, namespace.make_view = storage_of, make_view


def _check(node: Node) -> None:
    """RuntimeError if a node saved an inference tensor."""
    values: list[Any] = []
    if isinstance(node, OpNode) and node.plan.saved:
        for _, _, held in node.slots():
            values += [pair[0] for pair in held[0]] if held and isinstance(held[0], list) else held
    elif isinstance(node, FunctionNode):
        values += [kept[0] for kept in node.saved or ()]
    if any(isinstance(value, Tensor) and is_inference(value) for value in values):
        raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use Tensors created in "
                           "inference mode in computation tracked by autograd. To work around this, you can make a "
                           "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
                           "`torch.inference_mode()`.")
