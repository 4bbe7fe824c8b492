"""Rprop: steps that look at the sign of the gradient only, and grow while it stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import (
    by_dtype,
    check_capturable,
    check_rate,
    evaluate,
    one_step,
    step_dtype,
    value_of,
    view_as_real,
    with_grad_mode,
)
from .optimizer import Optimizer, Params

__all__ = ["Rprop", "rprop"]


class Rprop(Optimizer):
    """Resilient backpropagation: each element has a step size of its own."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            dict(
                lr=lr,
                etas=etas,
                step_sizes=step_sizes,
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
        step, previous = torch.zeros((), dtype=step_dtype()), torch.zeros_like(param)
        lr = value_of(group["lr"])
        return {
            "step": step,
            "prev": previous,
            "step_size": torch.full_like(param.grad, complex(lr, lr) if param.is_complex() else lr),
        }

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            params, grads, states = self._collect(group, "Rprop does not support sparse gradients")
            smaller, larger = group["etas"]
            lowest, highest = group["step_sizes"]
            rprop(
                params,
                grads,
                [s["prev"] for s in states],
                [s["step_size"] for s in states],
                [s["step"] for s in states],
                foreach=group["foreach"],
                capturable=group["capturable"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                has_complex=any(p.is_complex() for p in params),
                step_size_min=lowest,
                step_size_max=highest,
                etaminus=smaller,
                etaplus=larger,
            )
        return loss


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    if not params:
        return
    check_capturable(capturable)
    options: dict[str, Any] = dict(
        step_size_min=step_size_min, step_size_max=step_size_max, etaminus=etaminus, etaplus=etaplus, maximize=maximize
    )
    if foreach:
        _foreach(params, grads, prevs, step_sizes, state_steps, has_complex, **options)
    else:
        _one_by_one(params, grads, prevs, step_sizes, state_steps, differentiable, **options)


def _to_factors(sign: Any, etaminus: float, etaplus: float) -> None:
    """Turn signs into what the step sizes are multiplied by."""
    sign[sign.gt(0)] = etaplus
    sign[sign.lt(0)] = etaminus
    sign[sign.eq(0)] = 1


def _one_by_one(
    params: list[Any],
    grads: list[Any],
    prevs: list[Any],
    step_sizes: list[Any],
    steps: list[Any],
    differentiable: bool,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
    maximize: bool,
) -> None:
    for param, grad, previous, size, step in zip(params, grads, prevs, step_sizes, steps, strict=True):
        grad = -grad if maximize else grad
        step += 1
        if param.is_complex():
            param, grad, previous, size = (t.view_as_real() for t in (param, grad, previous, size))
        sign = grad.mul(previous.clone() if differentiable else previous).sign()
        _to_factors(sign, etaminus, etaplus)
        size.mul_(sign).clamp_(step_size_min, step_size_max)
        # Where the sign has changed, the step was too far: wait once before going back.
        grad = grad.clone()
        grad[sign.eq(etaminus)] = 0
        param.addcmul_(grad.sign(), size, value=-1)
        previous.copy_(grad)


def _foreach(
    params: list[Any],
    grads: list[Any],
    prevs: list[Any],
    step_sizes: list[Any],
    steps: list[Any],
    has_complex: bool,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
    maximize: bool,
) -> None:
    for params_, grads_, previous, sizes, steps_ in by_dtype(params, grads, prevs, step_sizes, steps):
        torch._foreach_add_(steps_, one_step(), alpha=1.0)
        if has_complex:
            view_as_real(params_, grads_, previous, sizes)
        signs = torch._foreach_mul(grads_, previous)
        if maximize:
            torch._foreach_neg_(signs)
        # From here on the gradients live where the previous ones did; the caller's stay as they are.
        torch._foreach_copy_(previous, grads_)
        if maximize:
            torch._foreach_neg_(previous)
        torch._foreach_sign_(signs)
        for sign in signs:
            _to_factors(sign, etaminus, etaplus)
        torch._foreach_mul_(sizes, signs)
        for size in sizes:
            size.clamp_(step_size_min, step_size_max)
        for sign, grad in zip(signs, previous, strict=True):
            grad.copy_(torch.where(sign.eq(etaminus), 0, grad))
        torch._foreach_addcmul_(params_, [grad.sign() for grad in previous], sizes, value=-1)
