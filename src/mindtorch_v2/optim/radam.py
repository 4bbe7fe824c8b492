"""RAdam: Adam whose adaptive part waits until its variance can be told."""

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

__all__ = ["RAdam", "radam"]


class RAdam(Optimizer):
    """Rectified Adam."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                decoupled_weight_decay=decoupled_weight_decay,
                differentiable=differentiable,
            ),
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            for name in ("maximize", "capturable", "differentiable", "decoupled_weight_decay"):
                group.setdefault(name, False)

    def _new_state(self, param: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": new_step_count(), "exp_avg": torch.zeros_like(param), "exp_avg_sq": torch.zeros_like(param)}

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            params, grads, states = self._collect(group, "RAdam does not support sparse gradients")
            beta1, beta2 = group["betas"]
            radam(
                params,
                grads,
                [s["exp_avg"] for s in states],
                [s["exp_avg_sq"] for s in states],
                [s["step"] for s in states],
                decoupled_weight_decay=group["decoupled_weight_decay"],
                foreach=group["foreach"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=any(p.is_complex() for p in params),
                maximize=group["maximize"],
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
            )
        return loss


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    eps: float,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    if not params:
        return
    check_capturable(capturable)
    lists = (params, grads, exp_avgs, exp_avg_sqs, state_steps)
    options: dict[str, Any] = dict(
        decoupled=decoupled_weight_decay, maximize=maximize, beta1=beta1, beta2=beta2, lr=lr, weight_decay=weight_decay, eps=eps
    )
    if foreach:
        _foreach(*lists, has_complex, **options)
    else:
        _one_by_one(*lists, differentiable, **options)


def _rectification(rho: float, rho_inf: float) -> float:
    """How far the variance of the adaptive part can be trusted after so many steps: a factor, 0 for not yet."""
    if rho <= 5:
        return 0.0
    return ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5


def _one_by_one(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    steps: list[Any],
    differentiable: bool,
    *,
    decoupled: bool,
    maximize: bool,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    eps: float,
) -> None:
    rho_inf = 2 / (1 - beta2) - 1
    for param, grad, mean, square, step_t in zip(params, grads, exp_avgs, exp_avg_sqs, steps, strict=True):
        grad = -grad if maximize else grad
        if param.is_complex():
            param, grad, mean, square = (t.view_as_real() for t in (param, grad, mean, square))
        step_t += 1
        step = step_t.item()
        if weight_decay != 0:
            if decoupled:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction2 = 1 - beta2**step
        rectification = _rectification(rho_inf - 2 * step * beta2**step / correction2, rho_inf)
        change = mean / (1 - beta1**step) * lr
        if rectification:
            deviation = square.sqrt()
            deviation = deviation.add(eps) if differentiable else deviation.add_(eps)
            change = change * (correction2**0.5 / deviation) * rectification
        param.add_(change, alpha=-1.0)


def _foreach(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    steps: list[Any],
    has_complex: bool,
    *,
    decoupled: bool,
    maximize: bool,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    eps: float,
) -> None:
    lr = value_of(lr)
    rho_inf = 2 / (1 - beta2) - 1
    for params_, grads_, means, squares, steps_ in by_dtype(params, grads, exp_avgs, exp_avg_sqs, steps):
        torch._foreach_add_(steps_, one_step(), alpha=1.0)
        if has_complex:
            view_as_real(params_, grads_, means, squares)
        if maximize:
            grads_ = torch._foreach_neg(grads_)
        rhos = [rho_inf - 2 * step.item() * beta2 ** step.item() / (1 - beta2 ** step.item()) for step in steps_]
        if decoupled and weight_decay != 0:
            torch._foreach_mul_(params_, 1 - lr * weight_decay)
        else:
            grads_ = with_decay(grads_, params_, weight_decay, own=maximize)
        torch._foreach_lerp_(means, grads_, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, grads_, grads_, 1 - beta2)
        factors = [_rectification(rho, rho_inf) for rho in rhos]
        rates = [-lr / (1 - beta1 ** step.item()) for step in steps_]
        adaptive = [
            (1 - beta2 ** step.item()) ** 0.5 * rate * factor for step, rate, factor in zip(steps_, rates, factors, strict=True)
        ]
        plain = [0.0 if factor else rate for rate, factor in zip(rates, factors, strict=True)]
        # Both kinds of step in one formula: dividing by a factor of 0 gives inf, of which the reciprocal is 0 again.
        scales = torch._foreach_sqrt(squares)
        torch._foreach_add_(scales, eps)
        torch._foreach_div_(scales, adaptive)
        torch._foreach_reciprocal_(scales)
        torch._foreach_add_(scales, plain)
        torch._foreach_addcmul_(params_, means, scales)
