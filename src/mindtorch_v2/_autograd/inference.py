"""Inference tensors: the results of ops inside inference_mode, which autograd must not save later.

Entries do not look at the mode. While a thread is inside, the function with which entries create their results marks them;
while marked tensors are alive, a node listener checks what new nodes save. Their version counter is `UNTRACKED`, which cannot
be incremented outside the mode.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from .._core.cpython import without_signals_at_entry
from .._core.restoring import carry_out
from .._core.storage import UNTRACKED
from .._core.tensor import Tensor, make_tensor
from .._core.threads import threads
from .._dispatch import entry_globals
from .context import FunctionNode
from .graph import OpNode, add_node_listener, remove_node_listener
from .nodes.derivative import ARG
from .nodes.node import Node

_plain_new = object.__new__
_lock = threading.RLock()
_alive: set[weakref.ref[Tensor]] = set()


_inside: set[Inside] = set()


class Inside:
    """One block of inference mode on one thread: while there is one, entries create results that may be marked."""

    def enter(self) -> None:
        """Begin the block."""
        _inside.add(self)
        self._connect()

    def leave(self) -> None:
        """End the block; nothing happens if it has ended or never begun."""
        _inside.discard(self)
        self._connect()

    def _connect(self) -> None:
        with _lock:
            if _inside:
                entry_globals.install(new=_new_marked, make_tensor=_make_marked)
            else:
                entry_globals.install(new=_plain_new, make_tensor=make_tensor)


def is_inference(tensor: Tensor) -> bool:
    """Whether a tensor was created inside inference_mode, or is a view of one that was."""
    storage = tensor._storage
    return bool(tensor._inference) or (storage is not None and storage.version is UNTRACKED)


def _new_marked(cls: type) -> Any:
    """`object.__new__`, with the result marked on a thread in inference mode."""
    tensor: Any = _plain_new(cls)
    if threads.state.inference:
        _mark(tensor)
    return tensor


def _make_marked(array: Any) -> Tensor:
    """`make_tensor`, with the result marked on a thread in inference mode."""
    tensor = make_tensor(array)
    if threads.state.inference:
        _mark(tensor)
    return tensor


def _mark(tensor: Any) -> None:
    """Make a new tensor an inference tensor, and check new nodes for as long as it lives."""
    tensor._inference = UNTRACKED
    first = not _alive
    _alive.add(weakref.ref(tensor, _forget))
    if first:
        _connect_check()


@without_signals_at_entry
def _forget(reference: weakref.ref[Tensor]) -> None:
    """Stop the checks when the last inference tensor is gone."""
    try:
        _alive.discard(reference)
    finally:
        if not _alive:
            carry_out([_connect_check])


def _connect_check() -> None:
    """Have new nodes checked while there is an inference tensor."""
    with _lock:
        if _alive:
            add_node_listener(_check, _check)
        else:
            remove_node_listener(_check)


def _check(node: Node) -> None:
    """RuntimeError if a new node saved an inference tensor."""
    values: list[Any] = []
    if isinstance(node, OpNode) and node.plan.saved:
        for kind, _, slot in node.slots():
            is_list = kind == ARG and isinstance(slot[0], list)
            values += [pair[0] for pair in slot[0]] if is_list else slot
    elif isinstance(node, FunctionNode):
        values += [slot[0] for slot in node.saved or ()]
    for value in values:
        if isinstance(value, Tensor):
            check_savable(value)


def check_savable(tensor: Tensor) -> None:
    """RuntimeError if a tensor is an inference tensor, which must not be saved for backward."""
    if is_inference(tensor):
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            "inference mode in computation tracked by autograd. To work around this, you can make a "
            "clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
            "`torch.inference_mode()`."
        )
