"""SavedTensor: one tensor that a node saves, as `grad_fn._raw_saved_self` gives it, to which hooks can be attached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..context import FunctionNode
from ..graph import OpNode
from .derivative import RESULT
from .node import Node
from .saved import PACKED, Packed
from .saved_hooks import packed_argument, packed_result

_PREFIX = "_raw_saved_"


class SavedTensor:
    """A tensor that a node saves; `register_hooks` replaces it by what a hook returns for it."""

    def __init__(self, *args: Any) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    _node: Node
    # The slot, and the place in it if it holds a list.
    _slot: int
    _place: int | None

    @classmethod
    def _of(cls, node: Node, slot: int, place: int | None = None) -> SavedTensor:
        saved = object.__new__(cls)
        saved._node, saved._slot, saved._place = node, slot, place
        return saved

    def register_hooks(self, pack_hook: Any = None, unpack_hook: Any = None, /) -> None:
        """Save `pack_hook(tensor)` in place of the tensor; backward gets `unpack_hook` of that."""
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
                "    1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, arg1: "
                "collections.abc.Callable) -> None\n"
            )
        node = self._node
        if node.saved is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph "
                "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
                "through the graph a second time or if you need to access saved variables after calling backward."
            )
        pair = (pack_hook, unpack_hook)
        if isinstance(node, FunctionNode):
            slots = list(node.saved)
            slots[self._slot] = _packed(node, slots[self._slot], pair)
            node.saved = tuple(slots)
            return
        assert isinstance(node, OpNode)
        values: list[Any] = []
        for number, (kind, index, slot) in enumerate(node.slots()):
            if number != self._slot:
                values += slot
            elif kind == RESULT:
                values += _packed(node, (index, *slot), pair)[1:]
            elif self._place is None:
                values += _packed(node, slot, pair)
            else:
                listed = list(slot[0])
                listed[self._place] = _packed(node, listed[self._place], pair)
                values.append(listed)
        node.saved = tuple(values)


def _packed(node: Node, slot: tuple[Any, ...], pair: tuple[Callable[..., Any], Callable[..., Any]]) -> tuple[Any, ...]:
    """A slot with its tensor packed by a pair of hooks; RuntimeError if it holds none, or one that is packed already."""
    value = slot[0] if len(slot) == 2 else slot[1]
    if value is None:
        raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
    if isinstance(value, Packed) and slot[-1 if len(slot) == 2 else 3] == PACKED:
        raise RuntimeError(
            "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is "
            "allowed at a time."
        )
    node.own_hooks()  # so that a hook is run that the unpack hook registers on the node
    return packed_argument(slot, pair) if len(slot) == 2 else packed_result(node, slot, pair)


def raw_saved(node: OpNode, name: str) -> Any:
    """`_raw_saved_<name>` of an op's node: a SavedTensor, or a tuple of them; AttributeError for what is no tensor."""
    slot = node._saved_names().get("_saved_" + name[len(_PREFIX) :])
    if slot is None:
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")
    kind, index = node.plan.saved[slot]
    argument = None if kind == RESULT else node.plan.derivative.op.schema.arguments[index]
    if argument is not None and argument.is_tensor_list:
        return tuple(SavedTensor._of(node, slot, place) for place in range(len(node.slots()[slot][2][0])))
    if argument is not None and not argument.is_tensor:
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")
    return SavedTensor._of(node, slot)


def raw_saved_of_function(node: FunctionNode) -> tuple[SavedTensor, ...]:
    """`_raw_saved_tensors` of a custom Function's node."""
    node.unpacked()  # raises if they were freed
    return tuple(SavedTensor._of(node, slot) for slot in range(len(node.saved or ())))
