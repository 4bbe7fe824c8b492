"""Inference tensors: what ops make inside inference_mode, which autograd must not meet later.

Ops do not look at the mode. While a thread is inside, the function with which entries make their results marks them;
while marked tensors live, new nodes are looked through for them. The version of their storage refuses to grow outside.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from .._core.storage import UNTRACKED
from .._core.tensor import Tensor, make_tensor
from .._core.threads import threads
from .._dispatch import entry_globals
from .context import FunctionNode
from .graph import OpNode, add_node_listener
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
        entry_globals.install(new=_new_marked, make_tensor=_make_marked)


def leave() -> None:
    """A thread comes out of it."""
    with _lock:
        _count.inside -= 1
        if not _count.inside:
            entry_globals.install(new=_plain_new, make_tensor=make_tensor)


def is_inference(tensor: Tensor) -> bool:
    """Whether a tensor was made inside inference_mode, or looks at the memory of one that was."""
    storage = tensor._storage
    return bool(tensor._inference) or (storage is not None and storage.version is UNTRACKED)


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
    tensor._inference = UNTRACKED
    with _lock:
        if not _alive:
            add_node_listener(_check, True)
        _alive.add(weakref.ref(tensor, _gone))


def _gone(reference: weakref.ref[Tensor]) -> None:
    with _lock:
        _alive.discard(reference)
        if not _alive:
            add_node_listener(_check, False)


def _check(node: Node) -> None:
    """RuntimeError if a node saved an inference tensor."""
    values: list[Any] = []
    if isinstance(node, OpNode) and node.plan.saved:
        for _, _, held in node.slots():
            values += [pair[0] for pair in held[0]] if held and isinstance(held[0], list) else held
    elif isinstance(node, FunctionNode):
        values += [kept[0] for kept in node.saved or ()]
    for value in values:
        if isinstance(value, Tensor):
            check_savable(value)


def check_savable(tensor: Tensor) -> None:
    """RuntimeError if a tensor is one that must not be saved for backward."""
    if is_inference(tensor):
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            "inference mode in computation tracked by autograd. To work around this, you can make a "
            "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
            "`torch.inference_mode()`."
        )
