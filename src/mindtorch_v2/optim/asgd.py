"""ASGD: stochastic gradient descent that also averages the parameters it has passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._core.tensor import Tensor
from .._ops.creation.from_data import as_tensor
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

__all__ = ["ASGD", "asgd"]


class ASGD(Optimizer):
    """Averaged stochastic gradient descent; the average is the state `ax`."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr,
                lambd=lambd,
                alpha=alpha,
                t0=t0,
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
        step = torch.zeros((), dtype=step_dtype(), device=param.device)
        rate = as_tensor(group["lr"], device=param.device, dtype=step_dtype()).clone().detach()
        return {
            "step": step,
            "eta": rate,
            "mu": torch.ones((), dtype=step_dtype(), device=param.device),
            "ax": torch.zeros_like(param),
        }

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            params, grads, states = self._collect(group, "ASGD does not support sparse gradients")
            asgd(
                params,
                grads,
                [s["ax"] for s in states],
                [s["mu"] for s in states],
                [s["eta"] for s in states],
                [s["step"] for s in states],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=any(p.is_complex() for p in params),
                lambd=group["lambd"],
                lr=group["lr"],
                t0=group["t0"],
                alpha=group["alpha"],
                weight_decay=group["weight_decay"],
            )
        return loss


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: Any,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    if not params:
        return
    check_capturable(capturable)
    options: dict[str, Any] = dict(lambd=lambd, lr=lr, t0=t0, alpha=alpha, weight_decay=weight_decay, maximize=maximize)
    if foreach and not differentiable:
        _foreach(params, grads, axs, mus, etas, state_steps, has_complex, **options)
    else:
        _one_by_one(params, grads, axs, mus, etas, state_steps, **options)


def _one_by_one(
    params: list[Any],
    grads: list[Any],
    axs: list[Any],
    mus: list[Any],
    etas: list[Any],
    steps: list[Any],
    *,
    lambd: float,
    lr: Any,
    t0: float,
    alpha: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    for param, grad, average, mu, eta, step_t in zip(params, grads, axs, mus, etas, steps, strict=True):
        grad = -grad if maximize else grad
        if param.is_complex():
            param, grad, average = (t.view_as_real() for t in (param, grad, average))
        step_t += 1
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        rate = eta.item()
        param.mul_(1 - lambd * rate)
        param.add_(grad, alpha=-rate)
        if mu.item() != 1:
            average.add_(param.sub(average).mul_(mu))
        else:
            average.copy_(param)
        step = step_t.item()
        eta.copy_(as_tensor(lr / (1 + lambd * lr * step) ** alpha))
        mu.copy_(as_tensor(1 / max(1, step - t0)))


def _foreach(
    params: list[Any],
    grads: list[Any],
    axs: list[Any],
    mus: list[Any],
    etas: list[Any],
    steps: list[Any],
    has_complex: bool,
    *,
    lambd: float,
    lr: Any,
    t0: float,
    alpha: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    lr = value_of(lr)
    for params_, grads_, averages, mus_, etas_, steps_ in by_dtype(params, grads, axs, mus, etas, steps):
        if has_complex:
            view_as_real(params_, grads_, averages)
        if maximize:
            grads_ = torch._foreach_neg(grads_)
        torch._foreach_add_(steps_, one_step(), alpha=1.0)
        # The pull towards zero, of strength lambd, joins the gradient.
        if weight_decay != 0:
            grads_ = with_decay(grads_, params_, weight_decay, own=maximize)
            torch._foreach_add_(grads_, params_, alpha=lambd)
        else:
            grads_ = torch._foreach_add(grads_, params_, alpha=lambd)
        torch._foreach_addcmul_(params_, grads_, etas_, value=-1)
        torch._foreach_addcmul_(averages, torch._foreach_sub(params_, averages), mus_)
        rates = [as_tensor(lr / (1 + lambd * lr * step) ** alpha, device=step.device) for step in steps_]
        weights = [as_tensor(1 / max(1, step.item() - t0), device=step.device) for step in steps_]
        torch._foreach_copy_(etas_, rates)
        torch._foreach_copy_(mus_, weights)
