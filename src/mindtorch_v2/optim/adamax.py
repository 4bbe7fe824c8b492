"""Adamax: Adam with the largest gradient in place of the root mean square."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import one_step, value_of, view_as_real, with_decay
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_betas, check_rate, not_negative, step_count, zeros
from .optimizer import Params

__all__ = ["Adamax", "adamax"]


class Adamax(DeclarativeOptimizer):
    """`param -= lr * mean(gradients) / max(gradients)`."""

    _checks = (check_rate, not_negative("eps"), check_betas, not_negative("weight_decay"))
    _later_options: ClassVar = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _state: ClassVar = {"step": step_count, "exp_avg": zeros, "exp_inf": zeros}
    _rule_state = ("exp_avg", "exp_inf", "step")
    _unpacked: ClassVar = {"betas": ("beta1", "beta2")}
    _refuses_sparse = "Adamax does not support sparse gradients"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def _single_tensor(
        h: Hyperparameters, params: list[Any], grads: list[Any], means: list[Any], maxima: list[Any], steps: list[Any]
    ) -> None:
        for param, grad, mean, largest, step in zip(params, grads, means, maxima, steps, strict=True):
            grad = -grad if h.maximize else grad
            step += 1
            if h.weight_decay != 0:
                grad = grad.add(param, alpha=h.weight_decay)
            if param.is_complex():
                param, grad, mean, largest = (torch.view_as_real(t) for t in (param, grad, mean, largest))
            mean.lerp_(grad, 1 - h.beta1)
            if h.differentiable:
                largest.copy_(torch.maximum(largest.mul(h.beta2), grad.abs().add_(h.eps)))
            else:
                torch.maximum(largest.mul_(h.beta2), grad.abs().add_(h.eps), out=largest)
            param.addcdiv_(mean, largest, value=value_of(-(h.lr / (1 - h.beta1 ** step.item()))))

    @staticmethod
    def _multi_tensor(
        h: Hyperparameters, params: list[Any], grads: list[Any], means: list[Any], maxima: list[Any], steps: list[Any]
    ) -> None:
        if h.has_complex:
            view_as_real(params, grads, means, maxima)
        if h.maximize:
            grads = torch._foreach_neg(grads)
        torch._foreach_add_(steps, one_step(), alpha=1.0)
        grads = with_decay(grads, params, h.weight_decay, own=h.maximize)
        torch._foreach_lerp_(means, grads, 1 - h.beta1)
        torch._foreach_mul_(maxima, h.beta2)
        if h.maximize or h.weight_decay != 0:
            torch._foreach_abs_(grads)
        else:
            grads = torch._foreach_abs(grads)
        torch._foreach_add_(grads, h.eps)
        torch._foreach_maximum_(maxima, grads)
        rates = [-(value_of(h.lr) / (1 - h.beta1 ** step.item())) for step in steps]
        torch._foreach_addcdiv_(params, means, maxima, rates)


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
    lr: float | Tensor,
    weight_decay: float,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    options = Hyperparameters(
        foreach=foreach,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
        eps=eps,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
    )
    Adamax._update(options, params, grads, exp_avgs, exp_infs, state_steps)
