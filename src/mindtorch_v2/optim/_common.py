"""Helpers of the update rules: grad mode, closures, and work on lists of tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .. import _surface as torch
from .._autograd.grad_mode import enable_grad
from .._core.tensor import Tensor
from .._core.threads import threads
from .._ops.creation.from_data import tensor

Step = TypeVar("Step", bound=Callable[..., Any])


def value_of(number: Any) -> Any:
    """A number that may be a tensor of one element, as a Python number."""
    return number.item() if isinstance(number, Tensor) else number


def one_step() -> Tensor:
    """The 1 that a list of step counters is raised by: as a tensor it need not be wrapped once per counter."""
    return tensor(1.0, device="cpu")


# The property of plain tensors. Where a tensor's class has this one, the slot `_grad` can be read and set as well, which
# spares the call of a Python function: that costs ten times as much while Python calls are recorded.
GRAD: Any = Tensor.grad


def with_gradients(params: list[Any]) -> tuple[list[Any], list[Any]]:
    """The parameters that have a gradient, and their gradients."""
    having: list[Any] = []
    grads: list[Any] = []
    for param in params:
        try:
            grad = param._grad if param.__class__.grad is GRAD else None
        except AttributeError:  # a tensor that never required grad
            grad = None
        if grad is None:
            grad = param.grad  # which warns where there is never one
        if grad is not None:
            having += (param,)
            grads += (grad,)
    return having, grads


def with_grad_mode(step: Step) -> Step:
    """Run a step without history, unless the optimizer is differentiable."""

    @functools.wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        # What `enable_grad()` or `no_grad()` does, written out: as a block it would be six calls more to record.
        defaults, state = self.defaults, threads.state
        differentiable = bool(defaults.get("differentiable"))
        before = state.grad_enabled
        try:
            state.grad_enabled = differentiable
            return step(self, *args, **kwargs)
        finally:
            state.grad_enabled = before

    return run  # type: ignore[return-value]


def evaluate(closure: Callable[[], Any] | None) -> Any:
    """The loss that a step's closure computes, or None without one."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def view_as_real(*lists: list[Any]) -> None:
    """Replace complex tensors in the lists by real views of them, so that formulas need to know real numbers only."""
    for tensors in lists:
        for i, each in enumerate(tensors):
            if isinstance(each, Tensor) and each.is_complex():
                tensors[i] = torch.view_as_real(each)


def by_dtype(first: list[Tensor], *others: list[Any]) -> list[tuple[list[Any], ...]]:
    """The lists cut into groups in which the first one's tensors have one device and dtype, for foreach ops."""
    groups: dict[Any, list[int]] = {}
    for i, each in enumerate(first):
        groups.setdefault((each.device, each.dtype), []).append(i)
    if len(groups) == 1:
        return [tuple(list(each) for each in (first, *others))]
    return [tuple([each[i] for i in chosen] if each else [] for each in (first, *others)) for chosen in groups.values()]


def with_decay(grads: list[Any], params: list[Any], weight_decay: float, own: bool) -> list[Any]:
    """Gradients with weight decay added: in place if the list is the step's own, since callers keep theirs."""
    if weight_decay == 0:
        return grads
    if own:
        torch._foreach_add_(grads, params, alpha=weight_decay)
        return grads
    return torch._foreach_add(grads, params, alpha=weight_decay)
