"""Running hooks in torch's order: those on tensors, then a node's pre-hooks, the node, and its hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core.memory_format import contiguous_format
from .._core.tensor import Tensor
from .._dispatch.observer import call_user_code
from .._dispatch.registry import aten
from .nodes.node import Gradients, Node
from .running import running


def run_tensor_hooks(node: Node, grads: Gradients) -> None:
    """Run the hooks on the tensors whose gradients arrived, then store gradients on tensors with `retain_grad`."""
    hooks = node.hooks
    assert hooks is not None
    for number, registered in hooks.tensor.items():
        for hook in list(registered.values()):
            grad = grads[number]  # None for an output that got none, while another output of the node did
            changed = call_user_code(hook, grad)
            if changed is not None:
                grads[number] = _checked(hook, grad, changed)
    for number, reference in hooks.retain.items():
        tensor, grad = reference(), grads[number]
        if tensor is not None and grad is not None:
            total = getattr(tensor, "_grad", None)
            tensor._grad = aten.clone(grad, memory_format=contiguous_format) if total is None else aten.add(total, grad)


def run_before_hooks(node: Node, grads: Gradients) -> None:
    """Run a node's pre-hooks, which may replace the gradients that it takes."""
    assert node.hooks is not None
    for hook in list(node.hooks.before.values()):
        changed = call_user_code(hook, tuple(grads))
        if changed is not None:
            grads[:] = _checked_tuple(hook, grads, changed)


def run_after_hooks(node: Node, results: Sequence[Tensor | None], grads: Gradients) -> Gradients:
    """Run a node's hooks on its results and the gradients it took; returns the results, which hooks may have replaced."""
    assert node.hooks is not None
    gradients = list(results)
    for hook in list(node.hooks.after.values()):
        changed = call_user_code(hook, tuple(gradients), tuple(grads))
        if changed is not None:
            gradients = _checked_tuple(hook, gradients, changed)
    return gradients


def run_hooked(
    node: Node, waiting: list[Any], run: Callable[..., Any], retain: bool, with_tensor_hooks: bool = True
) -> Gradients:
    """Run a node with its hooks on the last item of `waiting`, its gradient or list of gradients."""
    hooks = node.hooks
    assert hooks is not None
    running.node = node
    single = node.inputs.__class__ is not list
    grads: Gradients = [waiting.pop()] if single else waiting.pop()
    if with_tensor_hooks:
        run_tensor_hooks(node, grads)
    run_before_hooks(node, grads)
    taken: Gradients = grads if hooks.after else [None] * len(grads)
    results: Gradients = run(node, grads[0] if single else grads, retain)
    running.node = node
    # A hook that was registered meanwhile, by an unpack hook, is not told the gradients that the node took.
    return run_after_hooks(node, results, taken) if hooks.after else results


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", None) or type(hook).__name__


def _type_name(tensor: Tensor) -> str:
    return str(tensor.type())


def _checked(hook: Any, before: Tensor | None, after: Any) -> Tensor | None:
    """What a hook returned for one gradient; RuntimeError if it has another dtype or shape."""
    if after is None:
        return None
    if not isinstance(after, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}'")
    if before is None:
        return after
    if before._array.dtype != after._array.dtype:
        raise RuntimeError(
            f"hook '{_name(hook)}' has changed the type of value (was {_type_name(before)} got {_type_name(after)})"
        )
    if before._array.shape != after._array.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")
    return after


def _checked_tuple(hook: Any, before: Gradients, after: Any) -> Gradients:
    """What a hook returned for several gradients, as a list; TypeError or RuntimeError if number or form do not match."""
    if isinstance(after, Tensor) or not isinstance(after, tuple | list):
        raise TypeError(f"expected tuple, but hook returned '{type(after).__name__}'")
    if len(after) != len(before):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(after)}, but expected {len(before)})"
        )
    return [_checked(hook, old, new) for old, new in zip(before, after, strict=True)]
