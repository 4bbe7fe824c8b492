"""RMSprop: steps divided by a running root mean square of the gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import (
    by_dtype,
    check_capturable,
    check_not_negative,
    check_rate,
    evaluate,
    one_step,
    step_dtype,
    value_of,
    view_as_real,
    with_decay,
    with_grad_mode,
)
from .optimizer import Optimizer, Params

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(Optimizer):
    """`param -= lr * grad / rms(gradients)`; centered, the mean is taken out of the mean square."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_not_negative(eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                alpha=alpha,
                eps=eps,
                centered=centered,
                weight_decay=weight_decay,
                capturable=capturable,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
            ),
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("momentum", 0)
            group.setdefault("foreach", None)
            for name in ("centered", "maximize", "differentiable", "capturable"):
                group.setdefault(name, False)

    def _new_state(self, param: Any, group: dict[str, Any]) -> dict[str, Any]:
        state = {"step": torch.zeros((), dtype=step_dtype()), "square_avg": torch.zeros_like(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = torch.zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = torch.zeros_like(param)
        return state

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            params, grads, states = self._collect(group, "RMSprop does not support sparse gradients")
            rmsprop(
                params,
                grads,
                [s["square_avg"] for s in states],
                [s["grad_avg"] for s in states] if group["centered"] else [],
                [s["momentum_buffer"] for s in states] if group["momentum"] > 0 else [],
                [s["step"] for s in states],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=any(p.is_complex() for p in params),
                lr=group["lr"],
                alpha=group["alpha"],
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                centered=group["centered"],
            )
        return loss


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: Any,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    if not params:
        return
    check_capturable(capturable)
    lists = (params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps)
    options: dict[str, Any] = dict(
        lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum, centered=centered, maximize=maximize
    )
    if foreach:
        _foreach(*lists, has_complex, **options)
    else:
        _one_by_one(*lists, differentiable, **options)


def _one_by_one(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    grad_avgs: list[Any],
    buffers: list[Any],
    steps: list[Any],
    differentiable: bool,
    *,
    lr: Any,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    for i, param in enumerate(params):
        grad = -grads[i] if maximize else grads[i]
        square = square_avgs[i]
        steps[i] += 1
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        is_complex = param.is_complex()
        if is_complex:
            param, grad, square = (t.view_as_real() for t in (param, grad, square))
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if centered:
            mean = grad_avgs[i].view_as_real() if is_complex else grad_avgs[i]
            mean.lerp_(grad, 1 - alpha)
            deviation = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            deviation = square.sqrt()
        deviation = deviation.add(eps) if differentiable else deviation.add_(eps)
        if momentum > 0:
            buffer = buffers[i].view_as_real() if is_complex else buffers[i]
            buffer.mul_(momentum).addcdiv_(grad, deviation)
            param.add_(buffer, alpha=value_of(-lr))
        else:
            param.addcdiv_(grad, deviation, value=value_of(-lr))


def _foreach(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    grad_avgs: list[Any],
    buffers: list[Any],
    steps: list[Any],
    has_complex: bool,
    *,
    lr: Any,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    for group in by_dtype(params, grads, square_avgs, grad_avgs, buffers, steps):
        params_, grads_, squares, means, buffers_, steps_ = group
        if has_complex:
            view_as_real(params_, grads_, squares, means, buffers_)
        if maximize:
            grads_ = torch._foreach_neg(grads_)
        torch._foreach_add_(steps_, one_step(), alpha=1.0)
        grads_ = with_decay(grads_, params_, weight_decay, own=maximize)
        torch._foreach_mul_(squares, alpha)
        torch._foreach_addcmul_(squares, grads_, grads_, value=1 - alpha)
        if centered:
            torch._foreach_lerp_(means, grads_, 1 - alpha)
            deviations = torch._foreach_addcmul(squares, means, means, value=-1)
            torch._foreach_sqrt_(deviations)
        else:
            deviations = torch._foreach_sqrt(squares)
        torch._foreach_add_(deviations, eps)
        if momentum > 0:
            torch._foreach_mul_(buffers_, momentum)
            torch._foreach_addcdiv_(buffers_, grads_, deviations)
            torch._foreach_add_(params_, buffers_, alpha=value_of(-lr))
        else:
            torch._foreach_addcdiv_(params_, grads_, deviations, value=value_of(-lr))
