"""Adamax: Adam with the largest gradient in place of the root mean square."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import (
    by_dtype,
    check_betas,
    check_capturable,
    check_not_negative,
    check_rate,
    evaluate,
    new_step_count,
    one_step,
    value_of,
    view_as_real,
    with_decay,
    with_grad_mode,
)
from .optimizer import Optimizer, Params

__all__ = ["Adamax", "adamax"]


class Adamax(Optimizer):
    """`param -= lr * mean(gradients) / max(gradients)`."""

    def __init__(
        self,
        params: Params,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_not_negative(eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                capturable=capturable,
            ),
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            for name in ("maximize", "differentiable", "capturable"):
                group.setdefault(name, False)

    def _new_state(self, param: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": new_step_count(), "exp_avg": torch.zeros_like(param), "exp_inf": torch.zeros_like(param)}

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            params, grads, states = self._collect(group, "Adamax does not support sparse gradients")
            beta1, beta2 = group["betas"]
            adamax(
                params,
                grads,
                [s["exp_avg"] for s in states],
                [s["exp_inf"] for s in states],
                [s["step"] for s in states],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=any(p.is_complex() for p in params),
                eps=group["eps"],
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
            )
        return loss


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    if not params:
        return
    check_capturable(capturable)
    options: dict[str, Any] = dict(eps=eps, beta1=beta1, beta2=beta2, lr=lr, weight_decay=weight_decay, maximize=maximize)
    if foreach:
        _foreach(params, grads, exp_avgs, exp_infs, state_steps, has_complex, **options)
    else:
        _one_by_one(params, grads, exp_avgs, exp_infs, state_steps, differentiable, **options)


def _one_by_one(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_infs: list[Any],
    steps: list[Any],
    differentiable: bool,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    maximize: bool,
) -> None:
    for param, grad, mean, largest, step_t in zip(params, grads, exp_avgs, exp_infs, steps, strict=True):
        grad = -grad if maximize else grad
        step_t += 1
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if param.is_complex():
            param, grad, mean, largest = (t.view_as_real() for t in (param, grad, mean, largest))
        mean.lerp_(grad, 1 - beta1)
        if differentiable:
            largest.copy_(torch.maximum(largest.mul(beta2), grad.abs().add_(eps)))
        else:
            torch.maximum(largest.mul_(beta2), grad.abs().add_(eps), out=largest)
        param.addcdiv_(mean, largest, value=value_of(-(lr / (1 - beta1 ** step_t.item()))))


def _foreach(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_infs: list[Any],
    steps: list[Any],
    has_complex: bool,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    maximize: bool,
) -> None:
    for params_, grads_, means, largest, steps_ in by_dtype(params, grads, exp_avgs, exp_infs, steps):
        if has_complex:
            view_as_real(params_, grads_, means, largest)
        if maximize:
            grads_ = torch._foreach_neg(grads_)
        torch._foreach_add_(steps_, one_step(), alpha=1.0)
        grads_ = with_decay(grads_, params_, weight_decay, own=maximize)
        torch._foreach_lerp_(means, grads_, 1 - beta1)
        torch._foreach_mul_(largest, beta2)
        if maximize or weight_decay != 0:
            torch._foreach_abs_(grads_)
        else:
            grads_ = torch._foreach_abs(grads_)
        torch._foreach_add_(grads_, eps)
        torch._foreach_maximum_(largest, grads_)
        rates = [-(value_of(lr) / (1 - beta1 ** step.item())) for step in steps_]
        torch._foreach_addcdiv_(params_, means, largest, rates)
