"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._core.tensor import Tensor
from .._ops.creation.from_data import tensor
from ._common import (
    by_dtype,
    check_betas,
    check_capturable,
    check_not_negative,
    check_rate,
    evaluate,
    new_step_count,
    one_step,
    step_dtype,
    value_of,
    view_as_real,
    with_decay,
    with_grad_mode,
)
from .optimizer import Optimizer, Params

__all__ = ["NAdam", "nadam"]


class NAdam(Optimizer):
    """Adam that looks one step of momentum ahead."""

    def __init__(
        self,
        params: Params,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                momentum_decay=momentum_decay,
                decoupled_weight_decay=decoupled_weight_decay,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
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
        return {
            "step": new_step_count(),
            "mu_product": tensor(1.0, dtype=step_dtype()),
            "exp_avg": torch.zeros_like(param),
            "exp_avg_sq": torch.zeros_like(param),
        }

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            params, grads, states = self._collect(group, "NAdam does not support sparse gradients")
            beta1, beta2 = group["betas"]
            nadam(
                params,
                grads,
                [s["exp_avg"] for s in states],
                [s["exp_avg_sq"] for s in states],
                [s["mu_product"] for s in states],
                [s["step"] for s in states],
                decoupled_weight_decay=group["decoupled_weight_decay"],
                foreach=group["foreach"],
                capturable=group["capturable"],
                differentiable=group["differentiable"],
                has_complex=any(p.is_complex() for p in params),
                maximize=group["maximize"],
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                momentum_decay=group["momentum_decay"],
                eps=group["eps"],
            )
        return loss


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    if not params:
        return
    check_capturable(capturable)
    lists = (params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps)
    options: dict[str, Any] = dict(
        decoupled=decoupled_weight_decay,
        maximize=maximize,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        momentum_decay=momentum_decay,
        eps=eps,
    )
    if foreach:
        _foreach(*lists, has_complex, **options)
    else:
        _one_by_one(*lists, differentiable, **options)


def _momentum(beta1: float, step: float, decay: float) -> float:
    """The momentum that is in force at a step."""
    return beta1 * (1 - 0.5 * 0.96 ** (step * decay))


def _one_by_one(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    mu_products: list[Any],
    steps: list[Any],
    differentiable: bool,
    *,
    decoupled: bool,
    maximize: bool,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    for i, param in enumerate(params):
        grad = -grads[i] if maximize else grads[i]
        mean, square, product, step_t = exp_avgs[i], exp_avg_sqs[i], mu_products[i], steps[i]
        if param.is_complex():
            param, grad, mean, square = (t.view_as_real() for t in (param, grad, mean, square))
        step_t += 1
        step = step_t.item()
        if weight_decay != 0:
            if decoupled:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        mu, following = _momentum(beta1, step, momentum_decay), _momentum(beta1, step + 1, momentum_decay)
        product *= mu
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        deviation = square.div(1 - beta2**step).sqrt()
        if differentiable:
            mean = mean.clone()
        next_product = product.item() * following
        deviation = deviation.add(eps) if differentiable else deviation.add_(eps)
        param.addcdiv_(grad, deviation, value=value_of(-lr * (1 - mu) / (1 - product.item())))
        param.addcdiv_(mean, deviation, value=value_of(-lr * following / (1 - next_product)))


def _foreach(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    mu_products: list[Any],
    steps: list[Any],
    has_complex: bool,
    *,
    decoupled: bool,
    maximize: bool,
    beta1: float,
    beta2: float,
    lr: Any,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    lr = value_of(lr)
    for group in by_dtype(params, grads, exp_avgs, exp_avg_sqs, mu_products, steps):
        params_, grads_, means, squares, products, steps_ = group
        if has_complex:
            view_as_real(params_, grads_, means, squares)
        if maximize:
            grads_ = torch._foreach_neg(grads_)
        torch._foreach_add_(steps_, one_step(), alpha=1.0)
        if decoupled and weight_decay != 0:
            torch._foreach_mul_(params_, 1 - lr * weight_decay)
        else:
            grads_ = with_decay(grads_, params_, weight_decay, own=maximize)
        torch._foreach_lerp_(means, grads_, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, grads_, grads_, 1 - beta2)
        deviations = torch._foreach_sqrt(squares)
        roots = [(1 - beta2 ** step.item()) ** 0.5 for step in steps_]
        mus = [_momentum(beta1, step.item(), momentum_decay) for step in steps_]
        following = [_momentum(beta1, step.item() + 1, momentum_decay) for step in steps_]
        torch._foreach_mul_(products, mus)
        torch._foreach_div_(deviations, roots)
        torch._foreach_add_(deviations, eps)
        for_grads = [-lr * (1 - mu) / (1 - product.item()) for product, mu in zip(products, mus, strict=True)]
        for_means = [-lr * mu / (1 - product.item() * mu) for product, mu in zip(products, following, strict=True)]
        torch._foreach_addcdiv_(params_, grads_, deviations, for_grads)
        torch._foreach_addcdiv_(params_, means, deviations, for_means)
