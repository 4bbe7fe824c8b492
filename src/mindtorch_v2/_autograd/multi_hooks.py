"""register_multi_grad_hook: one hook on the gradients of several tensors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

from .._core.cpython import without_signals_at_entry
from .._core.keys import AUTOGRAD
from .._core.restoring import carry_out
from .._core.tensor import Tensor
from .handles import Handle
from .running import running


class _MultiHandle:
    """Removes a hook from all its tensors, by `remove()` or at the end of a `with` block."""

    __module__ = "mindtorch_v2.autograd.graph"

    def __init__(self, handles: Sequence[Handle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove the hook from every tensor."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        carry_out([self.remove])


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: Literal["all", "any"] = "all"
) -> _MultiHandle:
    """Call `fn` once per backward pass: with the list of all gradients, None where there is none, or ("any") with the first."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of {('all', 'any')} but got {mode}")
    hooks = (_hooks_for_all if mode == "all" else _hooks_for_any)(tensors, fn)
    handles = [
        Handle(t._node.own_hooks().tensor.setdefault(t._output_nr, {}), hook)
        for t, hook in zip(tensors, hooks, strict=True)
        if t._keys & AUTOGRAD
    ]
    return _MultiHandle(handles)


def _will_run(tensor: Tensor, current: Tensor) -> bool:
    """Whether the backward pass under way, which is at the tensor `current`, runs the node of `tensor`."""
    if tensor is current:
        return True
    if not tensor._keys & AUTOGRAD:
        return False
    task = running.tasks[-1]
    node = tensor._node
    return node is current._node or (node in task.pending and (task.needed is None or node in task.needed))


def _hooks_for_all(tensors: Sequence[Tensor], fn: Callable[..., Any]) -> list[Callable[[Tensor], None]]:
    """A hook for each tensor; the last that a pass runs calls `fn`."""
    # Per pass: how many gradients have yet to arrive, and those that have.
    waiting: dict[int, tuple[list[int], list[Tensor | None]]] = {}
    lock = threading.Lock()

    def hook_of(index: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            task = running.tasks[-1].id
            with lock:
                if task not in waiting:
                    waiting[task] = [sum(_will_run(t, tensors[index]) for t in tensors)], [None] * len(tensors)
                left, grads = waiting[task]
                grads[index] = grad
                left[0] -= 1
                done = not left[0]
                if done:
                    del waiting[task]
            if done:
                fn(grads)

        return hook

    return [hook_of(index) for index in range(len(tensors))]


def _hooks_for_any(tensors: Sequence[Tensor], fn: Callable[..., Any]) -> list[Callable[[Tensor], None]]:
    """A hook for each tensor; the first that a pass runs calls `fn`."""
    ran: set[int] = set()
    lock = threading.Lock()

    def hook(grad: Tensor) -> None:
        task = running.tasks[-1]
        with lock:
            if task.id in ran:
                return
            ran.add(task.id)
            task.callbacks.append(lambda: ran.discard(task.id))
        fn(grad)

    return [hook] * len(tensors)
