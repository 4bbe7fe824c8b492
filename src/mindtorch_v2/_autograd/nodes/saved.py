"""Saved tensors: the tensors that a node saves for backward, with the version they had, or packed by a hook.

A node has its saved values in one tuple, `saved`. A tensor takes two places there, itself and its version; an output of the
node's own op takes four (array, storage, version, keys), so that there is no reference cycle of node and tensor. Of an output
that never became a tensor there is only the array.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.keys import AUTOGRAD
from ..._core.storage import DETACHED, Storage, owner_of
from ..._core.tensor import Tensor, make_alias, storage_of
from ..._core.threads import threads
from ..._dispatch.observer import call_user_code
from ..._dispatch.registry import aten
from ..running import running
from .node import Edge, Node

# The version of a value that a hook has packed.
PACKED = -1

_new = object.__new__
_ndarray = np.ndarray


class Packed:
    """What the pack hook of a saved_tensors_hooks pair returned for a tensor, and the tensor's edge."""

    __slots__ = ("edge", "is_argument", "unpack", "value")

    # As of a tensor without a storage, whose version is 0: never PACKED, so that the version test leads to `unpack_saved`.
    _storage = None

    def __init__(
        self, tensor: Tensor, hooks: tuple[Callable[..., Any], Callable[..., Any]], edge: Edge | None, is_argument: bool
    ) -> None:
        pack, self.unpack = hooks
        self.edge = edge
        self.is_argument = is_argument
        version = tensor._version
        self.value = pack(tensor)
        if tensor._version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to "
                "pack hook can not be modified by in-place operations as this can lead to unexpected "
                "side-effects. Please open an issue if you need to perform in-place operations on the "
                "input to a pack hook."
            )

    def get(self, node: Node) -> Tensor:
        """What the unpack hook returns, without history; TypeError if that is no tensor. Itself, if none had any."""
        running.node = node
        tensor = call_user_code(self.unpack, self.value)
        if not isinstance(tensor, Tensor):
            raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor)}")
        if self.edge is None and self.is_argument and not tensor._keys & AUTOGRAD:
            return tensor
        return make_alias(tensor._array, tensor)


class SavedSubclass:
    """A detached output of a subclass, in place of the array of a plain one: only its class knows how to alias it."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def unpack_saved(node: Node, value: Any, version: int) -> Tensor:
    """A saved argument with another version than it was saved with: unpacked by its hook, or RuntimeError: it was modified."""
    if version == PACKED and value.__class__ is Packed:
        tensor: Tensor = value.get(node)
        if value.edge is not None:
            set_history(tensor, *value.edge)
        return tensor
    if value._storage is not None and value._storage.version - version >= DETACHED:
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
            "This is not supported, please use out-of-place `.detach()` instead"
        )
    raise RuntimeError(modified_message(value, version, value.grad_fn, value.output_nr))


def unpack_result(node: Node, number: int, array: Any, storage: Storage | None, version: int, keys: int) -> Tensor:
    """The node's own output `number` as a tensor again, with history in grad mode; RuntimeError if it was modified."""
    if array.__class__ is Packed:
        tensor: Tensor = array.get(node)
    elif array.__class__ is SavedSubclass:
        tensor = aten.detach(array.tensor)
    else:
        tensor = _new(Tensor)
        tensor._array = array
        tensor._keys = keys
        tensor._storage = storage
        tensor._base = None
        if storage is not None and storage.version != version:
            raise RuntimeError(modified_message(tensor, version, node, number))
    if threads.state.grad_enabled:
        set_history(tensor, node, number)
    return tensor


def set_history(tensor: Tensor, node: Node, number: int) -> None:
    """Make a tensor the output `number` of a node, so that it requires grad."""
    tensor._keys |= AUTOGRAD
    tensor._node = node
    tensor._output_nr = number


def save_list(values: Sequence[Any] | None) -> list[Any] | None:
    """The tensors (and None) of a list in pairs with their versions."""
    if values is None:
        return None
    return [(value, version_of(value)) if isinstance(value, Tensor) else (value, None) for value in values]


def version_of(tensor: Tensor) -> int:
    """The version to save a tensor with. Inference tensors, which have none, are refused once the node is recorded."""
    storage = tensor._storage
    return 0 if storage is None else storage.version


def unpack_list(node: Node, saved: list[Any] | None) -> list[Any] | None:
    """The tensors of `save_list`, each unpacked or checked."""
    if saved is None:
        return None
    return [
        value if version is None or (value._storage is None and version == 0) else unpack_one(node, value, version)
        for value, version in saved
    ]


def unpack_one(node: Node, value: Any, version: int | None) -> Any:
    """A saved argument, checked or unpacked if it is a tensor; a number or None is saved with the version None."""
    if version is None:
        return value
    storage = value._storage
    return value if version == (0 if storage is None else storage.version) else unpack_saved(node, value, version)


def result_parts(tensor: Tensor) -> tuple[Any, Storage, int, int]:
    """The four values as which a node saves an output of its own op."""
    storage = storage_of(tensor)
    return tensor._array, storage, storage.version, tensor._keys & ~AUTOGRAD


def fresh_storage(tensor: Tensor) -> Storage:
    """As storage_of, for a tensor that has no storage yet; inline, since every node that saves its result calls this."""
    array = tensor._array
    storage = _new(Storage)
    base = array.base
    storage.owner = array if base is None else base if base.__class__ is _ndarray and base.base is None else owner_of(array)
    storage.version = 0
    storage.external = 0
    storage.place = "cpu"
    tensor._storage = storage
    return storage


def modified_message(tensor: Tensor, version: int, node: Node | None, output_nr: int) -> str:
    """torch's message for a saved tensor, output `output_nr` of `node`, that was modified after it was saved."""
    source = "" if node is None else f", which is output {output_nr} of {short_name(node)},"
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{tensor.type()} {list(tensor.shape)}]{source} is at version "
        f"{tensor._version}; "
        f"expected version {version} instead. {_ADVICE[state.anomaly]}"
    )


def short_name(node: Node) -> str:
    """A node's name as torch's messages have it, without `Backward0`."""
    return re.sub(r"Backward\d*$", "", node.name())


class _Advice:
    """Whether anomaly mode is on, which changes the hint at the end of messages."""

    anomaly = False


state = _Advice()
_ADVICE = {
    True: "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in "
    "question was changed in there or anywhere later. Good luck!",
    False: "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False).",
}


def freed() -> RuntimeError:
    """torch's error for a second backward pass through nodes whose saved values are freed."""
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward."
    )
