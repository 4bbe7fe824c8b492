"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from .._ops.creation.from_data import tensor
from ._common import one_step, value_of, view_as_real, with_decay
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_betas, check_rate, not_negative, step_count, step_dtype, zeros
from .optimizer import Params

__all__ = ["NAdam", "nadam"]


def _initial_product(param: Any, group: dict[str, Any]) -> Tensor:
    return tensor(1.0, dtype=step_dtype())


def _momentum(h: Hyperparameters, step: float) -> float:
    """The momentum that is in force at a step."""
    momentum: float = h.beta1 * (1 - 0.5 * 0.96 ** (step * h.momentum_decay))
    return momentum


class NAdam(DeclarativeOptimizer):
    """Adam that looks one step of momentum ahead."""

    _checks = (check_rate, not_negative("eps"), check_betas, not_negative("weight_decay", "momentum_decay"))
    _later_options: ClassVar = {
        "foreach": None,
        "maximize": False,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }
    _state: ClassVar = {"step": step_count, "mu_product": _initial_product, "exp_avg": zeros, "exp_avg_sq": zeros}
    _counters = ("step", "mu_product")
    _rule_state = ("exp_avg", "exp_avg_sq", "mu_product", "step")
    _unpacked: ClassVar = {"betas": ("beta1", "beta2")}
    _reads_rate = True
    _refuses_sparse = "NAdam does not support sparse gradients"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
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
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def _single_tensor(
        h: Hyperparameters,
        params: list[Any],
        grads: list[Any],
        means: list[Any],
        squares: list[Any],
        products: list[Any],
        steps: list[Any],
    ) -> None:
        for param, grad, mean, square, product, step_t in zip(params, grads, means, squares, products, steps, strict=True):
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
            mu, next_mu = _momentum(h, step), _momentum(h, step + 1)
            product *= mu
            mean.lerp_(grad, 1 - h.beta1)
            square.mul_(h.beta2).addcmul_(grad, grad, value=1 - h.beta2)
            deviation = square.div(1 - h.beta2**step).sqrt()
            if h.differentiable:
                # The factors as tensors, so that gradients reach the product of the momenta, too.
                deviation = deviation.add(h.eps)
                param.addcdiv_(grad * (-h.lr * (1 - mu) / (1 - product)), deviation)
                param.addcdiv_(mean * (-h.lr * next_mu / (1 - product * next_mu)), deviation)
                continue
            next_product = product.item() * next_mu
            deviation.add_(h.eps)
            param.addcdiv_(grad, deviation, value=value_of(-h.lr * (1 - mu) / (1 - product.item())))
            param.addcdiv_(mean, deviation, value=value_of(-h.lr * next_mu / (1 - next_product)))

    @staticmethod
    def _multi_tensor(
        h: Hyperparameters,
        params: list[Any],
        grads: list[Any],
        means: list[Any],
        squares: list[Any],
        products: list[Any],
        steps: list[Any],
    ) -> None:
        if h.has_complex:
            view_as_real(params, grads, means, squares)
        if h.maximize:
            grads = torch._foreach_neg(grads)
        torch._foreach_add_(steps, one_step(), alpha=1.0)
        if h.decoupled_weight_decay and h.weight_decay != 0:
            torch._foreach_mul_(params, 1 - h.lr * h.weight_decay)
        else:
            grads = with_decay(grads, params, h.weight_decay, own=h.maximize)
        torch._foreach_lerp_(means, grads, 1 - h.beta1)
        torch._foreach_mul_(squares, h.beta2)
        torch._foreach_addcmul_(squares, grads, grads, 1 - h.beta2)
        deviations = torch._foreach_sqrt(squares)
        roots = [(1 - h.beta2 ** step.item()) ** 0.5 for step in steps]
        mus = [_momentum(h, step.item()) for step in steps]
        next_mus = [_momentum(h, step.item() + 1) for step in steps]
        torch._foreach_mul_(products, mus)
        torch._foreach_div_(deviations, roots)
        torch._foreach_add_(deviations, h.eps)
        for_grads = [-h.lr * (1 - mu) / (1 - product.item()) for product, mu in zip(products, mus, strict=True)]
        for_means = [-h.lr * mu / (1 - product.item() * mu) for product, mu in zip(products, next_mus, strict=True)]
        torch._foreach_addcdiv_(params, grads, deviations, for_grads)
        torch._foreach_addcdiv_(params, means, deviations, for_means)


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
    lr: float | Tensor,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    options = Hyperparameters(
        decoupled_weight_decay=decoupled_weight_decay,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        has_complex=has_complex,
        maximize=maximize,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        momentum_decay=momentum_decay,
        eps=eps,
    )
    NAdam._update(options, params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps)
