"""saved_tensors_hooks and what is built on it: hooks that store saved tensors elsewhere between forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..._core.cpython import without_signals_at_entry
from ..._core.keys import AUTOGRAD
from ..._core.restoring import Actions, carry_out, restoring
from ..._core.tensor import Tensor, storage_of
from ..._core.threads import ThreadState, threads
from ..._dispatch.registry import aten
from ..context import FunctionNode
from ..graph import FLOATING, OpNode, add_node_listener, remove_node_listener, without_history
from ..inference import check_savable, is_inference
from .derivative import ARG, RESULT
from .node import Node
from .saved import PACKED, Packed, set_history, unpack_result

# Messages of the open disable_saved_tensors_hooks blocks, by the id of the thread's state; () where none is open.
_disabled: dict[int, tuple[str, ...]] = {}


class saved_tensors_hooks:
    """A block in which nodes save `pack_hook(tensor)` in place of a tensor; backward gets `unpack_hook` of that."""

    __module__ = "mindtorch_v2.autograd.graph"

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        state = threads.state
        messages = _disabled.get(id(state))
        if messages:
            raise RuntimeError(messages[-1])
        hooks = state.saved_tensor_hooks
        pair = (self.pack_hook, self.unpack_hook)
        owner = _Listening()
        try:
            add_node_listener(owner, pack_saved)
        except BaseException:
            carry_out([lambda: remove_node_listener(owner)])
            raise
        state.saved_tensor_hooks = [*hooks, (pair, owner)]

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        state = threads.state
        hooks = state.saved_tensor_hooks
        if hooks:
            state.saved_tensor_hooks = hooks[:-1]
            carry_out([lambda: remove_node_listener(hooks[-1][1])])


class _Listening:
    """Who listens to new nodes for one open block."""


def restore_hooks(state: ThreadState, hooks: list[Any]) -> None:
    """Give a thread the hooks that it had before a backward pass in which a block was entered or left alone."""
    for _, owner in state.saved_tensor_hooks:
        remove_node_listener(owner)
    state.saved_tensor_hooks = hooks
    for _, owner in hooks:
        add_node_listener(owner, pack_saved)


class save_on_cpu(saved_tensors_hooks):
    """A block in which nodes save tensors on the CPU; backward copies them back to their device."""

    __module__ = "mindtorch_v2.autograd.graph"

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            if not pin_memory:
                return tensor.device, aten.to(tensor, device="cpu")
            return tensor.device, aten.copy_(aten.empty_like(tensor, device="cpu"), tensor)

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            moved: Tensor = aten.to(tensor, device=device, non_blocking=pin_memory)
            return moved

        super().__init__(pack, unpack)


@restoring
def disable_saved_tensors_hooks(undo: Actions, error_message: str) -> None:
    """A block in which saved_tensors_hooks raises RuntimeError with this message."""
    state = threads.state
    if state.saved_tensor_hooks:
        raise RuntimeError(error_message)
    thread, messages = id(state), _disabled.get(id(state), ())
    undo.append(partial(_disabled.__setitem__, thread, messages) if messages else partial(_disabled.pop, thread, None))
    _disabled[thread] = (*messages, error_message)


def hooks_disabled_message() -> str | None:
    """The message of the innermost open `disable_saved_tensors_hooks` block of this thread, None outside of one."""
    messages = _disabled.get(id(threads.state))
    return messages[-1] if messages else None


def increment_version(tensor: Any) -> None:
    """Increment the version of a tensor (or of several) whose memory was changed outside of ops."""
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not is_inference(each):
            storage_of(each).version += 1


# ---------------------------------------------------------------- packing


def pack_saved(node: Node) -> None:
    """Replace the saved tensors of a new node by what this thread's innermost pack hook returns for them."""
    hooks = threads.state.saved_tensor_hooks
    if not hooks:
        return
    pair = hooks[-1][0]
    node.own_hooks()  # so that a hook is run that an unpack hook registers on the node
    if isinstance(node, OpNode):
        if node.plan.saved:
            node.saved = _packed_slots(node, pair)
    elif isinstance(node, FunctionNode):
        node.saved = tuple(
            packed_result(node, slot, pair) if len(slot) == 5 else packed_argument(slot, pair) for slot in node.saved or ()
        )


def _packed_slots(node: OpNode, pair: Any) -> tuple[Any, ...]:
    """The `saved` of an op's node with its tensors packed by a pair of hooks."""
    arguments = node.plan.derivative.op.schema.arguments
    values: list[Any] = []
    for kind, index, slot in node.slots():
        if kind == RESULT:
            values += packed_result(node, (index, *slot), pair)[1:]
        elif kind == ARG and arguments[index].is_tensor:
            values += packed_argument(slot, pair)
        elif kind == ARG and arguments[index].is_tensor_list and slot[0] is not None:
            values.append([packed_argument(each, pair) for each in slot[0]])
        else:
            values += slot
    return tuple(values)


def packed_argument(slot: tuple[Any, Any], pair: Any) -> tuple[Any, Any]:
    """The slot (value, version) of an argument, packed if it is a tensor."""
    value = slot[0]
    if not isinstance(value, Tensor):
        return slot
    check_savable(value)
    edge = (value._node, value._output_nr) if value._keys & AUTOGRAD else None
    return without_history(Packed, (value, pair, edge, True), {}), PACKED


def packed_result(node: Node, slot: tuple[Any, ...], pair: Any) -> tuple[Any, ...]:
    """The slot (output number, array, storage, version, keys) of an output, packed."""
    number = slot[0]
    alias = without_history(unpack_result, (node, *slot), {})
    # The hook sees the output with its history. Afterwards the history is removed, since the hook may return its argument: the
    # node refers to what the hook returned, and would refer to itself.
    differentiable = alias._array.dtype.kind in FLOATING
    if differentiable:
        set_history(alias, node, number)
    try:
        packed = without_history(Packed, (alias, pair, None, False), {})
    finally:
        if differentiable:
            alias._keys &= ~AUTOGRAD
            del alias._node
    return number, packed, None, PACKED, 0
