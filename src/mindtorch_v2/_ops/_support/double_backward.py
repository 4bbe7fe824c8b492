"""Derivatives of backward ops: by differentiating the same function composed of ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._autograd.backward import grad
from ..._autograd.grad_mode import enable_grad
from ..._core.keys import AUTOGRAD
from ..._core.threads import threads
from ..._dispatch.registry import aten


def asked_for(gradients: Sequence[Any], needs: Sequence[bool]) -> tuple[Any, ...]:
    """A backward op's results with None for the gradients that are not needed, which the op returns empty."""
    return tuple(g if needed else None for g, needed in zip(gradients, needs, strict=True))


def _leaf(tensor: Any) -> Any:
    """A tensor to differentiate by: a leaf of its own, or while a graph is being made an alias, so that third derivatives
    reach the tensor. Not the tensor itself: another one may depend on it, and what comes that way is the engine's to add."""
    if tensor is None:
        return None
    if threads.state.grad_enabled and tensor._keys & AUTOGRAD:
        return aten.alias(tensor)
    return aten.detach(tensor).requires_grad_()


def backward_of_backward(
    forward: Callable[..., Any], inputs: Sequence[Any], grad_output: Any, grads: Sequence[Any]
) -> tuple[list[Any], Any]:
    """The gradients for `inputs` and for `grad_output` of a backward op that was given gradients `grads`.

    `forward(*inputs)` must be made of ops that are differentiable twice; inputs and grads may hold None. What the
    backward op returned is differentiated again, once more kept in the graph if one is being made.
    """
    more = threads.state.grad_enabled
    leaves, seed = [_leaf(t) for t in inputs], _leaf(grad_output)
    wanted = [t for t in leaves if t is not None]
    with enable_grad():
        outputs = forward(*leaves)
        first = iter(grad(outputs, wanted, seed, create_graph=True, allow_unused=True))
        first_grads = [None if t is None else next(first) for t in leaves]
        pairs = [
            (f, g) for f, g in zip(first_grads, grads, strict=True) if f is not None and g is not None and f._keys & AUTOGRAD
        ]
        if not pairs:
            return [None] * len(leaves), None
        results = grad([f for f, _ in pairs], [*wanted, seed], [g for _, g in pairs], create_graph=more, allow_unused=True)
    following = iter(results[:-1])
    return [None if t is None else next(following) for t in leaves], results[-1]
