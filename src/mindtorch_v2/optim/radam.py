"""RAdam: Adam whose adaptive part waits until its variance can be told."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import one_step, view_as_real, with_decay
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_betas, check_rate, not_negative, step_count, zeros
from .optimizer import Params

__all__ = ["RAdam", "radam"]


def _rectification(rho: float, rho_inf: float) -> float:
    """How far the variance of the adaptive part can be trusted after so many steps: a factor, 0 for not yet."""
    if rho <= 5:
        return 0.0
    return ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5


class RAdam(DeclarativeOptimizer):
    """Rectified Adam: plain momentum in the first steps, Adam's scaling once enough gradients were seen."""

    _checks = (check_rate, not_negative("eps"), check_betas, not_negative("weight_decay"))
    _later_options: ClassVar = {
        "foreach": None,
        "maximize": False,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }
    _state: ClassVar = {"step": step_count, "exp_avg": zeros, "exp_avg_sq": zeros}
    _rule_state = ("exp_avg", "exp_avg_sq", "step")
    _unpacked: ClassVar = {"betas": ("beta1", "beta2")}
    _reads_rate = True
    _refuses_sparse = "RAdam does not support sparse gradients"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
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
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def _single_tensor(
        h: Hyperparameters, params: list[Any], grads: list[Any], means: list[Any], squares: list[Any], steps: list[Any]
    ) -> None:
        rho_inf = 2 / (1 - h.beta2) - 1
        for param, grad, mean, square, step_t in zip(params, grads, means, squares, steps, strict=True):
            grad = -grad if h.maximize else grad
            if param.is_complex():
                param, grad, mean, square = (torch.view_as_real(t) for t in (param, grad, mean, square))
            step_t += 1
            step = step_t.item()
            if h.weight_decay != 0:
                if h.decoupled_weight_decay:
                    param.mul_(1 - h.lr * h.weight_decay)
                else:
                    grad = grad.add(param, alpha=h.weight_decay)
            mean.lerp_(grad, 1 - h.beta1)
            square.mul_(h.beta2).addcmul_(grad, grad, value=1 - h.beta2)
            correction2 = 1 - h.beta2**step
            rectification = _rectification(rho_inf - 2 * step * h.beta2**step / correction2, rho_inf)
            change = mean / (1 - h.beta1**step) * h.lr
            if rectification:
                deviation = square.sqrt()
                deviation = deviation.add(h.eps) if h.differentiable else deviation.add_(h.eps)
                change = change * (correction2**0.5 / deviation) * rectification
            param.add_(change, alpha=-1.0)

    @staticmethod
    def _multi_tensor(
        h: Hyperparameters, params: list[Any], grads: list[Any], means: list[Any], squares: list[Any], steps: list[Any]
    ) -> None:
        lr, beta2 = h.lr, h.beta2
        rho_inf = 2 / (1 - beta2) - 1
        torch._foreach_add_(steps, one_step(), alpha=1.0)
        if h.has_complex:
            view_as_real(params, grads, means, squares)
        if h.maximize:
            grads = torch._foreach_neg(grads)
        rhos = [rho_inf - 2 * step.item() * beta2 ** step.item() / (1 - beta2 ** step.item()) for step in steps]
        if h.decoupled_weight_decay and h.weight_decay != 0:
            torch._foreach_mul_(params, 1 - lr * h.weight_decay)
        else:
            grads = with_decay(grads, params, h.weight_decay, own=h.maximize)
        torch._foreach_lerp_(means, grads, 1 - h.beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        factors = [_rectification(rho, rho_inf) for rho in rhos]
        rates = [-lr / (1 - h.beta1 ** step.item()) for step in steps]
        adaptive = [
            (1 - beta2 ** step.item()) ** 0.5 * rate * factor for step, rate, factor in zip(steps, rates, factors, strict=True)
        ]
        plain = [0.0 if factor else rate for rate, factor in zip(rates, factors, strict=True)]
        # Both kinds of step in one formula: dividing by a factor of 0 gives inf, of which the reciprocal is 0 again.
        scales = torch._foreach_sqrt(squares)
        torch._foreach_add_(scales, h.eps)
        torch._foreach_div_(scales, adaptive)
        torch._foreach_reciprocal_(scales)
        torch._foreach_add_(scales, plain)
        torch._foreach_addcmul_(params, means, scales)


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
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    options = Hyperparameters(
        decoupled_weight_decay=decoupled_weight_decay,
        foreach=foreach,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
        maximize=maximize,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
    )
    RAdam._update(options, params, grads, exp_avgs, exp_avg_sqs, state_steps)
