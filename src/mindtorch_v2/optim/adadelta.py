"""Adadelta: steps scaled by the ratio of two running averages, so that no learning rate is needed."""

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

__all__ = ["Adadelta", "adadelta"]


class Adadelta(Optimizer):
    """`param -= lr * rms(earlier steps) / rms(gradients) * grad`."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                rho=rho,
                eps=eps,
                weight_decay=weight_decay,
                maximize=maximize,
                capturable=capturable,
                foreach=foreach,
                differentiable=differentiable,
            ),
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            for name in ("maximize", "differentiable", "capturable"):
                group.setdefault(name, False)

    def _new_state(self, param: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": torch.zeros((), dtype=step_dtype()),
            "square_avg": torch.zeros_like(param),
            "acc_delta": torch.zeros_like(param),
        }

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            params, grads, states = self._collect(group, "Adadelta does not support sparse gradients")
            adadelta(
                params,
                grads,
                [s["square_avg"] for s in states],
                [s["acc_delta"] for s in states],
                [s["step"] for s in states],
                capturable=group["capturable"],
                foreach=group["foreach"],
                differentiable=group["differentiable"],
                has_complex=any(p.is_complex() for p in params),
                lr=group["lr"],
                rho=group["rho"],
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                maximize=group["maximize"],
            )
        return loss


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
    lr: Any,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    if not params:
        return
    check_capturable(capturable)
    options: dict[str, Any] = dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize)
    if foreach:
        _foreach(params, grads, square_avgs, acc_deltas, state_steps, has_complex, **options)
    else:
        _one_by_one(params, grads, square_avgs, acc_deltas, state_steps, differentiable, **options)


def _one_by_one(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    acc_deltas: list[Any],
    steps: list[Any],
    differentiable: bool,
    *,
    lr: Any,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    for param, grad, square, change, step in zip(params, grads, square_avgs, acc_deltas, steps, strict=True):
        step += 1
        grad = -grad if maximize else grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        is_complex = param.is_complex()
        if is_complex:
            grad, square, change = (t.view_as_real() for t in (grad, square, change))
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        deviation = square.add(eps).sqrt_()
        delta = change.add(eps).sqrt_()
        if differentiable:
            delta = delta.clone()
        delta.div_(deviation).mul_(grad)
        change.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        if is_complex:
            delta = delta.view_as_complex()
        param.add_(delta, alpha=value_of(-lr))


def _foreach(
    params: list[Any],
    grads: list[Any],
    square_avgs: list[Any],
    acc_deltas: list[Any],
    steps: list[Any],
    has_complex: bool,
    *,
    lr: Any,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    for params_, grads_, squares, changes, steps_ in by_dtype(params, grads, square_avgs, acc_deltas, steps):
        if has_complex:
            view_as_real(params_, grads_, squares, changes)
        torch._foreach_add_(steps_, one_step(), alpha=1.0)
        if maximize:
            grads_ = torch._foreach_neg(grads_)
        grads_ = with_decay(grads_, params_, weight_decay, own=maximize)
        torch._foreach_mul_(squares, rho)
        torch._foreach_addcmul_(squares, grads_, grads_, value=1 - rho)
        deviations = torch._foreach_add(squares, eps)
        torch._foreach_sqrt_(deviations)
        deltas = torch._foreach_add(changes, eps)
        torch._foreach_sqrt_(deltas)
        torch._foreach_div_(deltas, deviations)
        torch._foreach_mul_(deltas, grads_)
        torch._foreach_mul_(changes, rho)
        torch._foreach_addcmul_(changes, deltas, deltas, value=1 - rho)
        torch._foreach_add_(params_, deltas, alpha=value_of(-lr))
