"""saved_tensors_hooks and its relatives: what becomes of tensors between the call that saves them and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor, storage_of
from .._core.threads import threads
from .._dispatch.registry import aten
from .context import FunctionNode
from .derivative import ARG, RESULT
from .graph import FLOATING, OpNode, add_node_listener, remove_node_listener, without_history
from .inference import check_savable, is_inference
from .node import Node
from .saved import PACKED, Packed, set_history, unpack_result

# Messages of the disable_saved_tensors_hooks blocks that are open, by thread.
_disabled: dict[int, list[str]] = {}


class saved_tensors_hooks:
    """Inside, a tensor saved for backward is replaced by `pack_hook(tensor)`; backward gets `unpack_hook` of that."""

    __module__ = "mindtorch_v2.autograd.graph"

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        state = threads.state
        messages = _disabled.get(id(state))
        if messages:
            raise RuntimeError(messages[-1])
        state.saved_tensor_hooks.append((self.pack_hook, self.unpack_hook))
        add_node_listener(pack_saved)

    def __exit__(self, *exc: Any) -> None:
        threads.state.saved_tensor_hooks.pop()
        remove_node_listener(pack_saved)


class save_on_cpu(saved_tensors_hooks):
    """Inside, tensors saved for backward are kept on the CPU and brought back to their device when needed."""

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


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, saved_tensors_hooks cannot be used."""
    state = threads.state
    if state.saved_tensor_hooks:
        raise RuntimeError(error_message)
    messages = _disabled.setdefault(id(state), [])
    messages.append(error_message)
    try:
        yield
    finally:
        messages.pop()
        if not messages:
            del _disabled[id(state)]


class _Copies:
    """The handle that allow_mutation_on_saved_tensors gives."""

    def __init__(self) -> None:
        self.cloned: list[Tensor] = []

    def clear(self) -> None:
        self.cloned.clear()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Copies]:
    """Inside, tensors saved for backward may be changed in place afterwards: they are copied as they are saved."""
    copies = _Copies()

    def pack(tensor: Tensor) -> Tensor:
        copies.cloned.append(aten.clone(tensor))
        return copies.cloned[-1]

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        try:
            yield copies
        finally:
            copies.clear()


def increment_version(tensor: Any) -> None:
    """Count a change of a tensor (or of several) that was made where autograd does not see it."""
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not is_inference(each):
            storage_of(each).version += 1


# ---------------------------------------------------------------- packing


def pack_saved(node: Node) -> None:
    """Put what a new node saved through this thread's innermost hooks."""
    hooks = threads.state.saved_tensor_hooks
    if not hooks:
        return
    pair = hooks[-1]
    if isinstance(node, OpNode):
        if node.plan.saved:
            node.saved = _packed_slots(node, pair)
    elif isinstance(node, FunctionNode):
        node.saved = tuple(
            _packed_result(node, kept, pair) if len(kept) == 5 else _packed_pair(kept, pair) for kept in node.saved or ()
        )


def _packed_slots(node: OpNode, pair: Any) -> tuple[Any, ...]:
    arguments = node.plan.derivative.op.schema.arguments
    values: list[Any] = []
    for kind, index, held in node.slots():
        if kind == RESULT:
            values += _packed_result(node, (index, *held), pair)[1:]
        elif kind == ARG and arguments[index].is_tensor:
            values += _packed_pair(held, pair)
        elif kind == ARG and arguments[index].is_tensor_list and held[0] is not None:
            values.append([_packed_pair(each, pair) for each in held[0]])
        else:
            values += held
    return tuple(values)


def _packed_pair(kept: tuple[Any, Any], pair: Any) -> tuple[Any, Any]:
    value, version = kept
    if not isinstance(value, Tensor):
        return kept
    check_savable(value)
    edge = (value._node, value._output_nr) if value._keys & AUTOGRAD else None
    return without_history(Packed, (value, pair, edge), {}), PACKED


def _packed_result(node: Node, kept: tuple[Any, ...], pair: Any) -> tuple[Any, ...]:
    number, array, storage, version, keys = kept
    alias = without_history(unpack_result, (node, number, array, storage, version, keys), {})
    # The hook sees which node made the result. Afterwards it must not matter if it kept what it was given: the node holds
    # what the hook returned, and would hold itself.
    differentiable = alias._array.dtype.kind in FLOATING
    if differentiable:
        set_history(alias, node, number)
    try:
        packed = without_history(Packed, (alias, pair, None), {})
    finally:
        if differentiable:
            alias._keys &= ~AUTOGRAD
            del alias._node
    return number, packed, None, PACKED, 0
