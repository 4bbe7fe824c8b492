"""Adadelta: steps scaled by the ratio of two running averages, so that no learning rate is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import one_step, value_of, view_as_real, with_decay
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_rate, not_negative, zero_step_count, zeros
from .optimizer import Params

__all__ = ["Adadelta", "adadelta"]


def _check_rho(options: Mapping[str, Any]) -> None:
    if not 0 <= options["rho"] <= 1:
        raise ValueError(f"Invalid rho value: {options['rho']}")


class Adadelta(DeclarativeOptimizer):
    """`param -= lr * rms(earlier steps) / rms(gradients) * grad`."""

    _checks = (check_rate, _check_rho, not_negative("eps", "weight_decay"))
    _later_options: ClassVar = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _state: ClassVar = {"step": zero_step_count, "square_avg": zeros, "acc_delta": zeros}
    _rule_state = ("square_avg", "acc_delta", "step")
    _refuses_sparse = "Adadelta does not support sparse gradients"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def _single_tensor(
        h: Hyperparameters, params: list[Any], grads: list[Any], squares: list[Any], changes: list[Any], steps: list[Any]
    ) -> None:
        for param, grad, square, change, step in zip(params, grads, squares, changes, steps, strict=True):
            step += 1
            grad = -grad if h.maximize else grad
            if h.weight_decay != 0:
                grad = grad.add(param, alpha=h.weight_decay)
            is_complex = param.is_complex()
            if is_complex:
                grad, square, change = (torch.view_as_real(t) for t in (grad, square, change))
            square.mul_(h.rho).addcmul_(grad, grad, value=1 - h.rho)
            deviation = square.add(h.eps).sqrt_()
            delta = change.add(h.eps).sqrt_()
            if h.differentiable:
                delta = delta.clone()
            delta.div_(deviation).mul_(grad)
            change.mul_(h.rho).addcmul_(delta, delta, value=1 - h.rho)
            if is_complex:
                delta = torch.view_as_complex(delta)
            param.add_(delta, alpha=value_of(-h.lr))

    @staticmethod
    def _multi_tensor(
        h: Hyperparameters, params: list[Any], grads: list[Any], squares: list[Any], changes: list[Any], steps: list[Any]
    ) -> None:
        if h.has_complex:
            view_as_real(params, grads, squares, changes)
        torch._foreach_add_(steps, one_step(), alpha=1.0)
        if h.maximize:
            grads = torch._foreach_neg(grads)
        grads = with_decay(grads, params, h.weight_decay, own=h.maximize)
        torch._foreach_mul_(squares, h.rho)
        torch._foreach_addcmul_(squares, grads, grads, value=1 - h.rho)
        deviations = torch._foreach_add(squares, h.eps)
        torch._foreach_sqrt_(deviations)
        deltas = torch._foreach_add(changes, h.eps)
        torch._foreach_sqrt_(deltas)
        torch._foreach_div_(deltas, deviations)
        torch._foreach_mul_(deltas, grads)
        torch._foreach_mul_(changes, h.rho)
        torch._foreach_addcmul_(changes, deltas, deltas, value=1 - h.rho)
        torch._foreach_add_(params, deltas, alpha=value_of(-h.lr))


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    options = Hyperparameters(
        capturable=capturable,
        foreach=foreach,
        differentiable=differentiable,
        has_complex=has_complex,
        lr=lr,
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
    )
    Adadelta._update(options, params, grads, square_avgs, acc_deltas, state_steps)
